// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package fakecli plays the CLI over the plugin protocol, in the process of the test.
package fakecli

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"testing"

	frameworkprovider "github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/agentjobs/terraform-provider-agent/internal/plugin"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
)

// CLI plays Terraform's part for one resource over the plugin protocol: it
// keeps state, private state and taint between the calls, as the CLI does.
type CLI struct {
	T        testing.TB
	Server   tfprotov6.ProviderServer
	Resource tftypes.Object
	Computed []string // attributes of the resource that the provider may set
	Forced   bool     // Plan replaces, as with -replace
	Ignored  []string // attributes with ignore_changes: a plan has them as the state has them

	// Carry, if set, makes each call: send brings it to the provider and waits for the response.
	Carry func(name string, send func(context.Context))

	Instance
	Planned        tftypes.Value
	PlannedPrivate []byte
	Replace        bool
	key            string // of the provider's configuration
	warned         []*tfprotov6.Diagnostic
}

// Instance is what a state has of the resource.
type Instance struct {
	State    tftypes.Value
	Private  []byte
	Identity *tfprotov6.ResourceIdentityData
	Tainted  bool
}

// Get is one attribute, in Go's types; nil is null.
func (i Instance) Get(name string) any {
	values := map[string]tftypes.Value{}
	if err := i.State.As(&values); err != nil {
		panic(err)
	}
	var text string
	switch v := values[name]; {
	case v.IsNull():
		return nil
	case !v.IsKnown():
		return Unknown{}
	case v.As(&text) != nil:
		return v.String()
	default:
		return text
	}
}

// New returns a CLI without state whose provider is configured.
func New(t testing.TB, providerConfig Attrs) *CLI {
	t.Helper()
	c := &CLI{T: t}
	c.Connect(providerConfig)
	c.State = tftypes.NewValue(c.Resource, nil)
	return c
}

// Connect starts a fresh provider, as the next command of the CLI does.
func (c *CLI) Connect(providerConfig Attrs) []*tfprotov6.Diagnostic {
	c.T.Helper()
	return c.ConnectTo(c.T.Context(), provider.New("test", provider.Options{}), providerConfig)
}

// ConnectTo starts a provider that the test has made.
func (c *CLI) ConnectTo(ctx context.Context, agent frameworkprovider.Provider, providerConfig Attrs) []*tfprotov6.Diagnostic {
	c.T.Helper()
	schemas := c.start(ctx, agent)
	c.key, _ = providerConfig["admin_key"].(string)
	config := c.Dynamic(Object(schemas.Provider.ValueType().(tftypes.Object), providerConfig))
	resp := call(ctx, c, c.Server.ConfigureProvider, &tfprotov6.ConfigureProviderRequest{TerraformVersion: "1.16.0", Config: config})
	return resp.Diagnostics
}

// start starts a provider, and learns its schemas.
func (c *CLI) start(ctx context.Context, agent frameworkprovider.Provider) *tfprotov6.GetProviderSchemaResponse {
	c.T.Helper()
	c.Server = plugin.NewServer(ctx, agent)
	schemas := call(ctx, c, c.Server.GetProviderSchema, &tfprotov6.GetProviderSchemaRequest{})
	schema := schemas.ResourceSchemas["agent_job"]
	c.Resource, c.Computed = schema.ValueType().(tftypes.Object), nil
	for _, attribute := range schema.Block.Attributes {
		if attribute.Computed {
			c.Computed = append(c.Computed, attribute.Name)
		}
	}
	return schemas
}

// Dynamic puts a value into the form that the protocol sends.
func (c *CLI) Dynamic(v tftypes.Value) *tfprotov6.DynamicValue {
	c.T.Helper()
	d, err := tfprotov6.NewDynamicValue(v.Type(), v)
	if err != nil {
		c.T.Fatal(err)
	}
	return &d
}

// Decode reads a state or a plan of the resource; nil is null.
func (c *CLI) Decode(d *tfprotov6.DynamicValue) tftypes.Value {
	c.T.Helper()
	if d == nil {
		return tftypes.NewValue(c.Resource, nil)
	}
	return c.unmarshal(d, c.Resource)
}

func (c *CLI) unmarshal(d *tfprotov6.DynamicValue, kind tftypes.Type) tftypes.Value {
	c.T.Helper()
	v, err := d.Unmarshal(kind)
	if err != nil {
		c.T.Fatal(err)
	}
	return v
}

// attributes are those of an object; the map is a copy.
func (c *CLI) attributes(object tftypes.Value) map[string]tftypes.Value {
	c.T.Helper()
	values := map[string]tftypes.Value{}
	if err := object.As(&values); err != nil {
		c.T.Fatal(err)
	}
	return maps.Clone(values) // As gives the map of the value itself
}

// Attribute is one attribute of an object, in Go's types; nil is null.
func (c *CLI) Attribute(object tftypes.Value, name string) any {
	return Instance{State: object}.Get(name)
}

// Forget empties the state.
func (c *CLI) Forget() { c.Instance = Instance{State: c.Decode(nil)} }

// Load reads an instance of a state, as each command of the CLI does.
func (c *CLI) Load(ctx context.Context, stored Instance) {
	c.T.Helper()
	if c.Forget(); stored.State.IsNull() {
		return
	}
	c.Instance = stored
	var state any
	err := msgpack.Unmarshal(c.Dynamic(c.State).MsgPack, &state)
	text, errJSON := json.Marshal(state) // as the state file has it
	if err = errors.Join(err, errJSON); err != nil {
		c.T.Fatal(err)
	}
	call(ctx, c, c.Server.UpgradeResourceState, &tfprotov6.UpgradeResourceStateRequest{TypeName: "agent_job", RawState: &tfprotov6.RawState{JSON: text}})
}

// Refresh reads the resource.
func (c *CLI) Refresh(ctx context.Context) []*tfprotov6.Diagnostic {
	c.T.Helper()
	if c.State.IsNull() {
		return nil
	}
	resp := call(ctx, c, c.Server.ReadResource, &tfprotov6.ReadResourceRequest{
		TypeName: "agent_job", CurrentState: c.Dynamic(c.State), Private: c.Private, CurrentIdentity: c.Identity,
	})
	if !Failed(resp.Diagnostics) {
		c.State, c.Private, c.Identity = c.Decode(resp.NewState), resp.Private, resp.NewIdentity
	}
	return resp.Diagnostics
}

var identityType = tftypes.Object{AttributeTypes: map[string]tftypes.Type{"project_id": tftypes.String, "id": tftypes.String}}

// ImportState imports a job by its id, as "terraform import" does, or by the Attrs of its identity, and reads it.
func (c *CLI) ImportState(ctx context.Context, by any) []*tfprotov6.Diagnostic {
	c.T.Helper()
	req := &tfprotov6.ImportResourceStateRequest{TypeName: "agent_job"}
	if identity, ok := by.(Attrs); ok {
		req.Identity = &tfprotov6.ResourceIdentityData{IdentityData: c.Dynamic(Object(identityType, identity))}
	} else {
		req.ID = by.(string)
	}
	resp := call(ctx, c, c.Server.ImportResourceState, req)
	if Failed(resp.Diagnostics) {
		return resp.Diagnostics
	}
	imported := resp.ImportedResources[0]
	c.State, c.Private, c.Identity = c.Decode(imported.State), imported.Private, imported.Identity
	return append(resp.Diagnostics, c.Refresh(ctx)...)
}

// Validate checks a configuration as "terraform validate" does.
func (c *CLI) Validate(config Attrs) []*tfprotov6.Diagnostic {
	c.T.Helper()
	resp := call(c.T.Context(), c, c.Server.ValidateResourceConfig, &tfprotov6.ValidateResourceConfigRequest{
		TypeName: "agent_job", Config: c.Dynamic(c.config(config)),
		ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
	})
	return resp.Diagnostics
}

// Run is a whole "terraform apply": refresh, plan, apply. It stops at an error.
func (c *CLI) Run(ctx context.Context, config Attrs) []*tfprotov6.Diagnostic {
	c.T.Helper()
	diags := c.Refresh(ctx)
	if !Failed(diags) {
		diags = append(diags, c.Plan(ctx, config)...)
	}
	if !Failed(diags) {
		diags = append(diags, c.Apply(ctx, config)...)
	}
	return diags
}
