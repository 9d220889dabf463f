// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package fakecli

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/provider"
)

// call makes one call of the protocol, which itself must not fail.
func call[Request, Response any](ctx context.Context, c *CLI, method func(context.Context, Request) (Response, error), request Request) Response {
	c.T.Helper()
	var response Response
	var err error
	send := func(ctx context.Context) { response, err = method(ctx, request) }
	name := strings.TrimSuffix(reflect.TypeFor[Request]().Elem().Name(), "Request")
	if c.Carry == nil {
		send(ctx)
	} else {
		c.Carry(name, send)
	}
	if err != nil {
		c.T.Fatal(err)
	}
	for _, field := range reflect.ValueOf(response).Elem().Fields() {
		switch field := field.Interface().(type) {
		case []*tfprotov6.Diagnostic:
			for _, d := range field {
				c.check(d, !strings.HasPrefix(name, "Validate") && !strings.HasPrefix(name, "Configure"))
			}
		case *tfprotov6.DynamicValue:
			if field != nil && name != "ValidateProviderConfig" { // whose response is the configuration
				c.searchForKey(name, field.MsgPack)
			}
		case []byte: // private data, whose values the framework encodes
			var values map[string][]byte
			_ = json.Unmarshal(field, &values)
			c.searchForKey(name, slices.Concat(field, bytes.Join(slices.Collect(maps.Values(values)), nil)))
		}
	}
	return response
}

// searchForKey fails the test if what is stored or shown holds the key that the provider is configured with.
func (c *CLI) searchForKey(where string, text []byte) {
	c.T.Helper()
	if c.key != "" && bytes.Contains(text, []byte(c.key)) {
		c.T.Errorf("the key is in %s: %q", where, text)
	}
}

// Schemas are the provider's, as the CLI asks for them.
func (c *CLI) Schemas() *tfprotov6.GetProviderSchemaResponse {
	c.T.Helper()
	return call(c.T.Context(), c, c.Server.GetProviderSchema, &tfprotov6.GetProviderSchemaRequest{})
}

// Data validates and reads the data source agent_job and returns its state.
func (c *CLI) Data(ctx context.Context, config Attrs) (tftypes.Value, []*tfprotov6.Diagnostic) {
	c.T.Helper()
	kind := c.Schemas().DataSourceSchemas["agent_job"].ValueType().(tftypes.Object)
	wanted := c.Dynamic(Object(kind, config))
	valid := call(ctx, c, c.Server.ValidateDataResourceConfig, &tfprotov6.ValidateDataResourceConfigRequest{TypeName: "agent_job", Config: wanted})
	if Failed(valid.Diagnostics) {
		return tftypes.NewValue(kind, nil), valid.Diagnostics
	}
	resp := call(ctx, c, c.Server.ReadDataSource, &tfprotov6.ReadDataSourceRequest{TypeName: "agent_job", Config: wanted})
	return c.unmarshal(resp.State, kind), resp.Diagnostics
}

// Listed is one result of a query.
type Listed struct{ ID, Name, Status, JobName string }

// List queries the list resource agent_job, with the record of each job if include is set.
func (c *CLI) List(ctx context.Context, include bool) (listed []Listed, diags []*tfprotov6.Diagnostic) {
	c.T.Helper()
	server := c.Server.(tfprotov6.ListResourceServer)
	config := c.Dynamic(Object(c.Schemas().ListResourceSchemas["agent_job"].ValueType().(tftypes.Object), nil))
	valid := call(ctx, c, server.ValidateListResourceConfig, &tfprotov6.ValidateListResourceConfigRequest{TypeName: "agent_job", Config: config})
	if Failed(valid.Diagnostics) {
		return nil, valid.Diagnostics
	}
	stream := call(ctx, c, server.ListResource, &tfprotov6.ListResourceRequest{TypeName: "agent_job", Config: config, IncludeResource: include, Limit: 100})
	for result := range stream.Results {
		diags = append(diags, result.Diagnostics...)
		for _, d := range result.Diagnostics {
			c.check(d, true)
		}
		if result.Identity == nil {
			continue
		}
		one := Listed{Name: result.DisplayName}
		one.ID, _ = c.Attribute(c.unmarshal(result.Identity.IdentityData, identityType), "id").(string)
		if include {
			one.Status, _ = c.Attribute(c.Decode(result.Resource), "status").(string)
			one.JobName, _ = c.Attribute(c.Decode(result.Resource), "name").(string)
		}
		listed = append(listed, one)
	}
	return listed, diags
}

// PlanAction validates and plans an action.
func (c *CLI) PlanAction(ctx context.Context, action string, config Attrs) (*tfprotov6.DynamicValue, []*tfprotov6.Diagnostic) {
	c.T.Helper()
	server := c.Server.(tfprotov6.ProviderServerWithActions)
	wanted := c.Dynamic(Object(c.Schemas().ActionSchemas[action].Schema.ValueType().(tftypes.Object), config))
	valid := call(ctx, c, server.ValidateActionConfig, &tfprotov6.ValidateActionConfigRequest{ActionType: action, Config: wanted})
	plan := call(ctx, c, server.PlanAction, &tfprotov6.PlanActionRequest{ActionType: action, Config: wanted})
	return wanted, append(valid.Diagnostics, plan.Diagnostics...)
}

// Invoke validates, plans and runs an action, as one apply does.
func (c *CLI) Invoke(ctx context.Context, action string, config Attrs) (progress []string, diags []*tfprotov6.Diagnostic) {
	c.T.Helper()
	wanted, diags := c.PlanAction(ctx, action, config)
	if Failed(diags) {
		return nil, diags
	}
	return c.InvokeUnplanned(ctx, action, wanted)
}

// InvokeUnplanned runs an action whose plan knew other values.
func (c *CLI) InvokeUnplanned(ctx context.Context, action string, wanted *tfprotov6.DynamicValue) (progress []string, diags []*tfprotov6.Diagnostic) {
	c.T.Helper()
	server := c.Server.(tfprotov6.ProviderServerWithActions)
	stream := call(ctx, c, server.InvokeAction, &tfprotov6.InvokeActionRequest{ActionType: action, Config: wanted})
	completed := 0
	for event := range stream.Events {
		switch event := event.Type.(type) {
		case tfprotov6.ProgressInvokeActionEventType:
			progress = append(progress, event.Message)
		case tfprotov6.CompletedInvokeActionEventType:
			completed++
			diags = append(diags, event.Diagnostics...)
			for _, d := range event.Diagnostics {
				c.check(d, true)
			}
		}
	}
	if completed != 1 {
		c.T.Errorf("the action completed %d times", completed)
	}
	return progress, diags
}

// Stop is what the CLI does at the first Ctrl-C.
func (c *CLI) Stop() {
	c.T.Helper()
	call(c.T.Context(), c, c.Server.StopProvider, &tfprotov6.StopProviderRequest{})
}

// Call calls a function of the provider with one argument, as it is sent.
func (c *CLI) Call(name string, argument *tfprotov6.DynamicValue) (tftypes.Value, *tfprotov6.FunctionError) {
	c.T.Helper()
	kind := c.Schemas().Functions[name].Return.Type
	resp := call(c.T.Context(), c, c.Server.CallFunction, &tfprotov6.CallFunctionRequest{Name: name, Arguments: []*tfprotov6.DynamicValue{argument}})
	if resp.Error != nil {
		return tftypes.NewValue(kind, nil), resp.Error
	}
	return c.unmarshal(resp.Result, kind), nil
}

// Unconfigured is a CLI whose provider has no configuration.
func Unconfigured(t *testing.T) *CLI {
	t.Helper()
	c := &CLI{T: t}
	c.start(t.Context(), provider.New("test", provider.Options{}))
	return c
}

// CheckProvider validates a provider configuration and configures with it.
func CheckProvider(t *testing.T, config Attrs) []*tfprotov6.Diagnostic {
	t.Helper()
	c := &CLI{T: t}
	configured := c.Connect(config)
	resp := call(t.Context(), c, c.Server.ValidateProviderConfig, &tfprotov6.ValidateProviderConfigRequest{
		Config: c.Dynamic(Object(c.Schemas().Provider.ValueType().(tftypes.Object), config)),
	})
	return append(resp.Diagnostics, configured...)
}
