// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
)

// standIn is a provider with one resource type, which can hold a given state and do nothing.
type standIn struct {
	typeName string
	schema   schema.Schema
}

// startStandIn serves a stand-in until the test ends, and returns what
// TF_REATTACH_PROVIDERS must be for a CLI to use it.
func startStandIn(t *testing.T, address, typeName string, version int64, attributes map[string]json.RawMessage) string {
	t.Helper()
	p := &standIn{typeName, schema.Schema{Version: version, Attributes: map[string]schema.Attribute{}}}
	for name, value := range attributes {
		p.schema.Attributes[name] = attributeFor(t, value)
	}
	t.Setenv("TF_LOG_SDK", "off")
	ctx, cancel := context.WithCancel(t.Context())
	ready, closed := channelFor(tf6server.WithDebug), make(chan struct{})
	served := make(chan error, 1)
	go func() {
		served <- tf6server.Serve(address, func() tfprotov6.ProviderServer { return providerserver.NewProtocol6(p)() },
			tf6server.WithDebug(ctx, ready, closed))
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

// attributeFor makes an attribute that can hold the value.
func attributeFor(t *testing.T, value json.RawMessage) schema.Attribute {
	t.Helper()
	var of any
	if err := json.Unmarshal(value, &of); err != nil {
		t.Fatal(err)
	}
	switch of := of.(type) {
	case bool:
		return schema.BoolAttribute{Optional: true}
	case []any:
		return schema.ListAttribute{Optional: true, ElementType: types.StringType}
	case map[string]any:
		if _, dynamic := of["type"]; dynamic {
			return schema.DynamicAttribute{Optional: true}
		}
		return schema.MapAttribute{Optional: true, ElementType: types.StringType}
	}
	return schema.StringAttribute{Optional: true}
}

func (p *standIn) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName, _, _ = strings.Cut(p.typeName, "_")
}
func (p *standIn) Schema(context.Context, provider.SchemaRequest, *provider.SchemaResponse) {}
func (p *standIn) DataSources(context.Context) []func() datasource.DataSource               { return nil }
func (p *standIn) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{func() resource.Resource { return standInResource{p} }}
}

// Configure fails: a move needs no configuration of the old provider.
func (p *standIn) Configure(_ context.Context, _ provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	resp.Diagnostics.AddError("configured", "A move must not need that.")
}

type standInResource struct{ *standIn }

func (r standInResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = r.typeName
}

func (r standInResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = r.schema
}
func (standInResource) Create(context.Context, resource.CreateRequest, *resource.CreateResponse) {}
func (standInResource) Read(context.Context, resource.ReadRequest, *resource.ReadResponse)       {}
func (standInResource) Update(context.Context, resource.UpdateRequest, *resource.UpdateResponse) {}
func (standInResource) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}
