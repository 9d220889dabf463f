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

// schemas are the provider's, as the CLI asks for them.
func (c *core) schemas() *tfprotov6.GetProviderSchemaResponse {
	c.t.Helper()
	schemas, err := c.server.GetProviderSchema(c.t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		c.t.Fatal(err)
	}
	return schemas
}

// learn takes over the schema of the resource.
func (c *core) learn(schema *tfprotov6.Schema) {
	c.resource = schema.ValueType().(tftypes.Object)
	c.computed = nil
	for _, attribute := range schema.Block.Attributes {
		if attribute.Computed {
			c.computed = append(c.computed, attribute.Name)
		}
	}
}

// data validates and reads the data source agent_job and returns its state.
func (c *core) data(ctx context.Context, config attrs) (tftypes.Value, []*tfprotov6.Diagnostic) {
	c.t.Helper()
	kind := c.schemas().DataSourceSchemas["agent_job"].ValueType().(tftypes.Object)
	wanted := c.dynamic(object(kind, config))
	valid, err := c.server.ValidateDataResourceConfig(ctx, &tfprotov6.ValidateDataResourceConfigRequest{TypeName: "agent_job", Config: wanted})
	if err != nil {
		c.t.Fatal(err)
	}
	if failed(valid.Diagnostics) {
		return tftypes.NewValue(kind, nil), valid.Diagnostics
	}
	resp, err := c.server.ReadDataSource(ctx, &tfprotov6.ReadDataSourceRequest{TypeName: "agent_job", Config: wanted})
	if err != nil {
		c.t.Fatal(err)
	}
	state, err := resp.State.Unmarshal(kind)
	if err != nil {
		c.t.Fatal(err)
	}
	return state, resp.Diagnostics
}

// lines collects what an action reports while it runs.
type lines struct {
	mu   sync.Mutex
	all  []string
	seen chan struct{} // closed by the first line
}

func (l *lines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
	if len(l.all) == 1 {
		close(l.seen)
	}
}

func (l *lines) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}

// invoke validates, plans and runs an action, as one apply does.
func (c *core) invoke(ctx context.Context, action string, config attrs) ([]string, []*tfprotov6.Diagnostic) {
	c.t.Helper()
	l := &lines{seen: make(chan struct{})}
	diags := c.invokeInto(ctx, l, action, config)
	return l.all, diags
}

// planAction validates and plans an action.
func (c *core) planAction(ctx context.Context, action string, config attrs) (*tfprotov6.DynamicValue, []*tfprotov6.Diagnostic) {
	c.t.Helper()
	server := c.server.(tfprotov6.ProviderServerWithActions)
	wanted := c.dynamic(object(c.schemas().ActionSchemas[action].Schema.ValueType().(tftypes.Object), config))
	valid, err := server.ValidateActionConfig(ctx, &tfprotov6.ValidateActionConfigRequest{ActionType: action, Config: wanted})
	if err != nil {
		c.t.Fatal(err)
	}
	plan, err := server.PlanAction(ctx, &tfprotov6.PlanActionRequest{ActionType: action, Config: wanted})
	if err != nil {
		c.t.Fatal(err)
	}
	return wanted, append(valid.Diagnostics, plan.Diagnostics...)
}

func (c *core) invokeInto(ctx context.Context, l *lines, action string, config attrs) []*tfprotov6.Diagnostic {
	c.t.Helper()
	wanted, diags := c.planAction(ctx, action, config)
	if failed(diags) {
		return diags
	}
	stream, err := c.server.(tfprotov6.ProviderServerWithActions).InvokeAction(ctx, &tfprotov6.InvokeActionRequest{ActionType: action, Config: wanted})
	if err != nil {
		c.t.Fatal(err)
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
		c.t.Errorf("the action completed %d times", completed)
	}
	return diags
}

// keepsPlan asserts, as the CLI does, that the state has all that the plan promised.
func (c *core) keepsPlan() {
	c.t.Helper()
	planned, got := map[string]tftypes.Value{}, map[string]tftypes.Value{}
	if err := errors.Join(c.planned.As(&planned), c.state.As(&got)); err != nil {
		c.t.Fatal(err)
	}
	for name, value := range planned {
		if value.IsFullyKnown() && !value.Equal(got[name]) {
			c.t.Errorf("inconsistent result after apply: %s was planned as %s and is %s", name, value, got[name])
		}
	}
}

// stop is what the CLI does at the first Ctrl-C.
func (c *core) stop() {
	c.t.Helper()
	if _, err := c.server.StopProvider(c.t.Context(), &tfprotov6.StopProviderRequest{}); err != nil {
		c.t.Fatal(err)
	}
}

// call calls a function of the provider.
func (c *core) call(name string, argument tftypes.Value) (tftypes.Value, *tfprotov6.FunctionError) {
	c.t.Helper()
	kind := c.schemas().Functions[name].Return.Type
	resp, err := c.server.CallFunction(c.t.Context(), &tfprotov6.CallFunctionRequest{Name: name, Arguments: []*tfprotov6.DynamicValue{c.dynamic(argument)}})
	if err != nil {
		c.t.Fatal(err)
	}
	if resp.Error != nil {
		return tftypes.NewValue(kind, nil), resp.Error
	}
	result, err := resp.Result.Unmarshal(kind)
	if err != nil {
		c.t.Fatal(err)
	}
	return result, nil
}

// unconfigured is a core whose provider has no configuration.
func unconfigured(t *testing.T) *core {
	t.Helper()
	c := &core{t: t, server: plugin.NewServer(provider.New("test", provider.Options{}))}
	c.learn(c.schemas().ResourceSchemas["agent_job"])
	return c
}

// checkProvider validates a provider configuration and configures with it.
func checkProvider(t *testing.T, config attrs) []*tfprotov6.Diagnostic {
	t.Helper()
	c := &core{t: t}
	configured := c.connect(config)
	schemas, err := c.server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.server.ValidateProviderConfig(t.Context(), &tfprotov6.ValidateProviderConfigRequest{
		Config: c.dynamic(object(schemas.Provider.ValueType().(tftypes.Object), config)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return append(resp.Diagnostics, configured...)
}
