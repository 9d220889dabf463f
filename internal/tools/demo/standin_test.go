// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// standIn is a provider that has a schema and nothing else: a move must not
// even configure it.
type standIn struct {
	tfprotov6.ProviderServer // nil, so that any other call ends the test

	schemas map[string]*tfprotov6.Schema
}

func (s standIn) GetProviderSchema(context.Context, *tfprotov6.GetProviderSchemaRequest) (*tfprotov6.GetProviderSchemaResponse, error) {
	return &tfprotov6.GetProviderSchemaResponse{Provider: &tfprotov6.Schema{Block: &tfprotov6.SchemaBlock{}}, ResourceSchemas: s.schemas}, nil
}

func (s standIn) GetResourceIdentitySchemas(context.Context, *tfprotov6.GetResourceIdentitySchemasRequest) (*tfprotov6.GetResourceIdentitySchemasResponse, error) {
	return &tfprotov6.GetResourceIdentitySchemasResponse{}, nil
}

func (s standIn) StopProvider(context.Context, *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	return &tfprotov6.StopProviderResponse{}, nil
}

// startStandIn serves a provider whose resource can hold the attributes, until
// the test ends. It returns what TF_REATTACH_PROVIDERS must be for a CLI to use it.
func startStandIn(t *testing.T, address, typeName string, version int64, attributes map[string]json.RawMessage) string {
	t.Helper()
	block := &tfprotov6.SchemaBlock{}
	for name, value := range attributes {
		block.Attributes = append(block.Attributes, &tfprotov6.SchemaAttribute{Name: name, Type: typeOf(t, value), Optional: true})
	}
	server := standIn{schemas: map[string]*tfprotov6.Schema{typeName: {Version: version, Block: block}}}
	t.Setenv("TF_LOG_SDK", "off")
	ctx, cancel := context.WithCancel(t.Context())
	ready, closed := channelFor(tf6server.WithDebug), make(chan struct{})
	served := make(chan error, 1)
	go func() {
		served <- tf6server.Serve(address, func() tfprotov6.ProviderServer { return server }, tf6server.WithDebug(ctx, ready, closed))
	}()
	t.Cleanup(func() {
		cancel()
		<-closed
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	reattach := <-ready
	text, err := json.Marshal(map[string]any{address: map[string]any{
		"Protocol": string(reattach.Protocol), "ProtocolVersion": 6, "Pid": reattach.Pid, "Test": true,
		"Addr": map[string]string{"Network": reattach.Addr.Network(), "String": reattach.Addr.String()},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// channelFor spares an import of the package that has the type.
func channelFor[T any](func(context.Context, chan T, chan struct{}) tf6server.ServeOpt) chan T {
	return make(chan T)
}

// typeOf is the type of an attribute that can hold the value.
func typeOf(t *testing.T, value json.RawMessage) tftypes.Type {
	t.Helper()
	var of any
	if err := json.Unmarshal(value, &of); err != nil {
		t.Fatal(err)
	}
	switch of := of.(type) {
	case bool:
		return tftypes.Bool
	case []any:
		return tftypes.List{ElementType: tftypes.String}
	case map[string]any:
		if _, dynamic := of["type"]; dynamic {
			return tftypes.DynamicPseudoType
		}
		return tftypes.Map{ElementType: tftypes.String}
	}
	return tftypes.String
}
