// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"context"
	"testing"

	frameworkprovider "github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/plugin"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
)

// core plays Terraform's part for one resource over the plugin protocol: it
// keeps state, private state and taint between the calls, as the CLI does.
type core struct {
	t        testing.TB
	server   tfprotov6.ProviderServer
	resource tftypes.Object
	computed []string // attributes of the resource that the provider may set

	state    tftypes.Value
	private  []byte
	ident    *tfprotov6.ResourceIdentityData
	tainted  bool
	planned  tftypes.Value
	planPriv []byte
	replace  bool
	because  []string // the attributes that ask for it
}

// newCore configures a provider of its own.
func newCore(t testing.TB, providerConfig attrs) *core {
	t.Helper()
	c := &core{t: t}
	c.connect(providerConfig)
	c.state = tftypes.NewValue(c.resource, nil)
	return c
}

// connect starts a fresh provider, as the next command of the CLI does.
func (c *core) connect(providerConfig attrs) []*tfprotov6.Diagnostic {
	c.t.Helper()
	return c.connectTo(c.t.Context(), provider.New("test", provider.Options{}), providerConfig)
}

func (c *core) connectTo(ctx context.Context, agent frameworkprovider.Provider, providerConfig attrs) []*tfprotov6.Diagnostic {
	c.t.Helper()
	server := plugin.NewServer(agent)
	schemas, err := server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		c.t.Fatal(err)
	}
	c.server = server
	c.learn(schemas.ResourceSchemas["agent_job"])
	config := c.dynamic(object(schemas.Provider.ValueType().(tftypes.Object), providerConfig))
	resp, err := server.ConfigureProvider(ctx, &tfprotov6.ConfigureProviderRequest{TerraformVersion: "1.16.0", Config: config})
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.Diagnostics
}

func (c *core) dynamic(v tftypes.Value) *tfprotov6.DynamicValue {
	c.t.Helper()
	d, err := tfprotov6.NewDynamicValue(v.Type(), v)
	if err != nil {
		c.t.Fatal(err)
	}
	return &d
}

func (c *core) decode(d *tfprotov6.DynamicValue) tftypes.Value {
	c.t.Helper()
	if d == nil {
		return tftypes.NewValue(c.resource, nil)
	}
	v, err := d.Unmarshal(c.resource)
	if err != nil {
		c.t.Fatal(err)
	}
	return v
}

// get is one attribute of the state, in Go's types; nil is null.
func (c *core) get(name string) any {
	c.t.Helper()
	return c.attribute(c.state, name)
}

func (c *core) attribute(object tftypes.Value, name string) any {
	c.t.Helper()
	if object.IsNull() {
		return nil
	}
	values := map[string]tftypes.Value{}
	if err := object.As(&values); err != nil {
		c.t.Fatal(err)
	}
	v := values[name]
	switch {
	case v.IsNull():
		return nil
	case !v.IsKnown():
		return unknown{}
	}
	var text string
	if err := v.As(&text); err != nil {
		return v.String()
	}
	return text
}

// refresh reads the resource.
func (c *core) refresh(ctx context.Context) []*tfprotov6.Diagnostic {
	c.t.Helper()
	if c.state.IsNull() {
		return nil
	}
	resp, err := c.server.ReadResource(ctx, &tfprotov6.ReadResourceRequest{
		TypeName: "agent_job", CurrentState: c.dynamic(c.state), Private: c.private, CurrentIdentity: c.ident,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	if !failed(resp.Diagnostics) {
		c.state, c.private, c.ident = c.decode(resp.NewState), resp.Private, resp.NewIdentity
	}
	return resp.Diagnostics
}

// importState imports a job by its id, as "terraform import" does, and reads it.
func (c *core) importState(ctx context.Context, id string) []*tfprotov6.Diagnostic {
	c.t.Helper()
	resp, err := c.server.ImportResourceState(ctx, &tfprotov6.ImportResourceStateRequest{TypeName: "agent_job", ID: id})
	if err != nil {
		c.t.Fatal(err)
	}
	if failed(resp.Diagnostics) {
		return resp.Diagnostics
	}
	imported := resp.ImportedResources[0]
	c.state, c.private, c.ident = c.decode(imported.State), imported.Private, imported.Identity
	return append(resp.Diagnostics, c.refresh(ctx)...)
}

// validate checks a configuration as "terraform validate" does.
func (c *core) validate(config attrs) []*tfprotov6.Diagnostic {
	c.t.Helper()
	resp, err := c.server.ValidateResourceConfig(c.t.Context(), &tfprotov6.ValidateResourceConfigRequest{
		TypeName: "agent_job", Config: c.dynamic(object(c.resource, config)),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.Diagnostics
}

// plan plans the configuration against the state and keeps the outcome for apply.
func (c *core) plan(ctx context.Context, config attrs) []*tfprotov6.Diagnostic {
	c.t.Helper()
	prior, private := c.state, c.private
	resp := c.planAgainst(ctx, config, prior, private)
	c.replace = !prior.IsNull() && (c.tainted || len(resp.RequiresReplace) > 0)
	c.because = nil
	for _, path := range resp.RequiresReplace {
		c.because = append(c.because, path.String())
	}
	diags := resp.Diagnostics
	if c.replace && !failed(diags) {
		resp = c.planAgainst(ctx, config, tftypes.NewValue(c.resource, nil), nil)
		diags = append(diags, resp.Diagnostics...)
	}
	if !failed(diags) {
		c.planned, c.planPriv = c.decode(resp.PlannedState), resp.PlannedPrivate
	}
	return diags
}

func (c *core) planAgainst(ctx context.Context, config attrs, prior tftypes.Value, private []byte) *tfprotov6.PlanResourceChangeResponse {
	c.t.Helper()
	wanted := object(c.resource, config)
	resp, err := c.server.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{
		TypeName: "agent_job", PriorState: c.dynamic(prior), ProposedNewState: c.dynamic(c.proposed(wanted, prior)),
		Config: c.dynamic(wanted), PriorPrivate: private, PriorIdentity: c.ident,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return resp
}

// proposed merges configuration and prior state: what the configuration leaves
// out keeps its prior value when the provider may compute it.
func (c *core) proposed(config, prior tftypes.Value) tftypes.Value {
	c.t.Helper()
	if prior.IsNull() {
		return config
	}
	wanted, had := map[string]tftypes.Value{}, map[string]tftypes.Value{}
	if err := config.As(&wanted); err != nil {
		c.t.Fatal(err)
	}
	if err := prior.As(&had); err != nil {
		c.t.Fatal(err)
	}
	for _, name := range c.computed {
		if wanted[name].IsNull() {
			wanted[name] = had[name]
		}
	}
	return tftypes.NewValue(c.resource, wanted)
}

// empty reports whether the plan changes nothing.
func (c *core) empty() bool { return !c.replace && c.planned.Equal(c.state) }

// apply applies what was planned.
func (c *core) apply(ctx context.Context, config attrs) []*tfprotov6.Diagnostic {
	c.t.Helper()
	var diags []*tfprotov6.Diagnostic
	if c.replace {
		diags = append(diags, c.destroy(ctx)...)
	} else if c.empty() {
		return nil
	}
	creating := c.state.IsNull()
	resp, err := c.server.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: "agent_job", PriorState: c.dynamic(c.state), PlannedState: c.dynamic(c.planned),
		Config: c.dynamic(object(c.resource, config)), PlannedPrivate: c.planPriv, PlannedIdentity: c.ident,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.state, c.private, c.ident = c.decode(resp.NewState), resp.Private, resp.NewIdentity
	c.tainted = creating && failed(resp.Diagnostics) && !c.state.IsNull()
	if !c.state.IsFullyKnown() {
		c.t.Errorf("the state after apply has unknown values: %s", c.state)
	}
	if !failed(resp.Diagnostics) {
		c.keepsPlan()
	}
	return append(diags, resp.Diagnostics...)
}

func (c *core) destroy(ctx context.Context) []*tfprotov6.Diagnostic {
	c.t.Helper()
	nothing := tftypes.NewValue(c.resource, nil)
	resp, err := c.server.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: "agent_job", PriorState: c.dynamic(c.state), PlannedState: c.dynamic(nothing), Config: c.dynamic(nothing),
		PlannedPrivate: c.private,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.state, c.private, c.ident, c.tainted = c.decode(resp.NewState), nil, nil, false
	return resp.Diagnostics
}

// run is a whole "terraform apply": refresh, plan, apply. It stops at an error.
func (c *core) run(ctx context.Context, config attrs) []*tfprotov6.Diagnostic {
	c.t.Helper()
	diags := c.refresh(ctx)
	if !failed(diags) {
		diags = append(diags, c.plan(ctx, config)...)
	}
	if !failed(diags) {
		diags = append(diags, c.apply(ctx, config)...)
	}
	return diags
}
