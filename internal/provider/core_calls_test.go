// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/plugin"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
)

// Schemas are the provider's, as the CLI asks for them.
func (c *core) Schemas() *tfprotov6.GetProviderSchemaResponse {
	c.T.Helper()
	schemas, err := c.Server.GetProviderSchema(c.T.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		c.T.Fatal(err)
	}
	return schemas
}

// learn takes over the schema of the resource.
func (c *core) learn(schema *tfprotov6.Schema) {
	c.Resource = schema.ValueType().(tftypes.Object)
	c.Computed = nil
	for _, attribute := range schema.Block.Attributes {
		if attribute.Computed {
			c.Computed = append(c.Computed, attribute.Name)
		}
	}
}

// Data validates and reads the data source agent_job and returns its state.
func (c *core) Data(ctx context.Context, config attrs) (tftypes.Value, []*tfprotov6.Diagnostic) {
	c.T.Helper()
	kind := c.Schemas().DataSourceSchemas["agent_job"].ValueType().(tftypes.Object)
	wanted := c.Dynamic(object(kind, config))
	valid, err := c.Server.ValidateDataResourceConfig(ctx, &tfprotov6.ValidateDataResourceConfigRequest{TypeName: "agent_job", Config: wanted})
	if err != nil {
		c.T.Fatal(err)
	}
	if failed(valid.Diagnostics) {
		return tftypes.NewValue(kind, nil), valid.Diagnostics
	}
	resp, err := c.Server.ReadDataSource(ctx, &tfprotov6.ReadDataSourceRequest{TypeName: "agent_job", Config: wanted})
	if err != nil {
		c.T.Fatal(err)
	}
	state, err := resp.State.Unmarshal(kind)
	if err != nil {
		c.T.Fatal(err)
	}
	return state, resp.Diagnostics
}

// lines collects what an action reports while it runs.
type lines struct {
	mu   sync.Mutex
	All  []string
	Seen chan struct{} // closed by the first line
}

func (l *lines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.All = append(l.All, line)
	if len(l.All) == 1 {
		close(l.Seen)
	}
}

func (l *lines) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.All)
}

// Invoke validates, plans and runs an action, as one apply does.
func (c *core) Invoke(ctx context.Context, action string, config attrs) ([]string, []*tfprotov6.Diagnostic) {
	c.T.Helper()
	l := &lines{Seen: make(chan struct{})}
	diags := c.InvokeInto(ctx, l, action, config)
	return l.All, diags
}

// PlanAction validates and plans an action.
func (c *core) PlanAction(ctx context.Context, action string, config attrs) (*tfprotov6.DynamicValue, []*tfprotov6.Diagnostic) {
	c.T.Helper()
	server := c.Server.(tfprotov6.ProviderServerWithActions)
	wanted := c.Dynamic(object(c.Schemas().ActionSchemas[action].Schema.ValueType().(tftypes.Object), config))
	valid, err := server.ValidateActionConfig(ctx, &tfprotov6.ValidateActionConfigRequest{ActionType: action, Config: wanted})
	if err != nil {
		c.T.Fatal(err)
	}
	plan, err := server.PlanAction(ctx, &tfprotov6.PlanActionRequest{ActionType: action, Config: wanted})
	if err != nil {
		c.T.Fatal(err)
	}
	return wanted, append(valid.Diagnostics, plan.Diagnostics...)
}

func (c *core) InvokeInto(ctx context.Context, l *lines, action string, config attrs) []*tfprotov6.Diagnostic {
	c.T.Helper()
	wanted, diags := c.PlanAction(ctx, action, config)
	if failed(diags) {
		return diags
	}
	stream, err := c.Server.(tfprotov6.ProviderServerWithActions).InvokeAction(ctx, &tfprotov6.InvokeActionRequest{ActionType: action, Config: wanted})
	if err != nil {
		c.T.Fatal(err)
	}
	completed := 0
	for event := range stream.Events {
		switch event := event.Type.(type) {
		case tfprotov6.ProgressInvokeActionEventType:
			l.add(event.Message)
		case tfprotov6.CompletedInvokeActionEventType:
			completed++
			diags = append(diags, event.Diagnostics...)
		}
	}
	if completed != 1 {
		c.T.Errorf("the action completed %d times", completed)
	}
	return diags
}

// keepsPlan asserts, as the CLI does, that the state has all that the plan promised.
func (c *core) keepsPlan() {
	c.T.Helper()
	planned, got := map[string]tftypes.Value{}, map[string]tftypes.Value{}
	if err := errors.Join(c.Planned.As(&planned), c.State.As(&got)); err != nil {
		c.T.Fatal(err)
	}
	for name, value := range planned {
		if value.IsFullyKnown() && !value.Equal(got[name]) {
			c.T.Errorf("inconsistent result after apply: %s was planned as %s and is %s", name, value, got[name])
		}
	}
}

// Stop is what the CLI does at the first Ctrl-C.
func (c *core) Stop() {
	c.T.Helper()
	if _, err := c.Server.StopProvider(c.T.Context(), &tfprotov6.StopProviderRequest{}); err != nil {
		c.T.Fatal(err)
	}
}

// Call calls a function of the provider.
func (c *core) Call(name string, argument tftypes.Value) (tftypes.Value, *tfprotov6.FunctionError) {
	c.T.Helper()
	kind := c.Schemas().Functions[name].Return.Type
	resp, err := c.Server.CallFunction(c.T.Context(), &tfprotov6.CallFunctionRequest{Name: name, Arguments: []*tfprotov6.DynamicValue{c.Dynamic(argument)}})
	if err != nil {
		c.T.Fatal(err)
	}
	if resp.Error != nil {
		return tftypes.NewValue(kind, nil), resp.Error
	}
	result, err := resp.Result.Unmarshal(kind)
	if err != nil {
		c.T.Fatal(err)
	}
	return result, nil
}

// unconfigured is a core whose provider has no configuration.
func unconfigured(t *testing.T) *core {
	t.Helper()
	c := &core{T: t, Server: plugin.NewServer(provider.New("test", provider.Options{}))}
	c.learn(c.Schemas().ResourceSchemas["agent_job"])
	return c
}

// checkProvider validates a provider configuration and configures with it.
func checkProvider(t *testing.T, config attrs) []*tfprotov6.Diagnostic {
	t.Helper()
	c := &core{T: t}
	configured := c.Connect(config)
	schemas, err := c.Server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Server.ValidateProviderConfig(t.Context(), &tfprotov6.ValidateProviderConfigRequest{
		Config: c.Dynamic(object(schemas.Provider.ValueType().(tftypes.Object), config)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return append(resp.Diagnostics, configured...)
}
