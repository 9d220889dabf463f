// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package fakecli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Plan plans the configuration against the state and keeps the outcome for apply.
// As the CLI does, it plans a tainted resource as a new one, replaces only for an attribute
// that differs, and drops the warnings of the second call for a replacement.
func (c *CLI) Plan(ctx context.Context, config Attrs) []*tfprotov6.Diagnostic {
	c.T.Helper()
	prior, private := c.State, c.Private
	if c.Tainted {
		prior, private = tftypes.NewValue(c.Resource, nil), nil
	}
	resp := c.planAgainst(ctx, config, prior, private)
	diags := resp.Diagnostics
	c.Replace = c.Tainted || len(c.differing(resp, prior)) > 0 || c.Forced && !prior.IsNull()
	if c.Replace && !c.Tainted && !Failed(diags) {
		resp = c.planAgainst(ctx, config, tftypes.NewValue(c.Resource, nil), resp.PlannedPrivate)
		diags = append(diags, slices.DeleteFunc(resp.Diagnostics, func(d *tfprotov6.Diagnostic) bool { return !isError(d) })...)
	}
	if !Failed(diags) {
		c.Planned, c.PlannedPrivate = c.Decode(resp.PlannedState), resp.PlannedPrivate
	}
	c.warned = diags
	return diags
}

// differing are the attributes that ask for a replacement and that the plan changes.
func (c *CLI) differing(resp *tfprotov6.PlanResourceChangeResponse, prior tftypes.Value) (names []string) {
	c.T.Helper()
	for _, path := range resp.RequiresReplace {
		before, _, err := tftypes.WalkAttributePath(prior, path)
		after, _, errAfter := tftypes.WalkAttributePath(c.Decode(resp.PlannedState), path)
		if err = errors.Join(err, errAfter); err != nil {
			c.T.Fatal(err)
		}
		if !before.(tftypes.Value).Equal(after.(tftypes.Value)) {
			names = append(names, path.String())
		}
	}
	return names
}

// planAgainst proposes the configuration, and the prior value of what it leaves out if the provider may compute it.
func (c *CLI) planAgainst(ctx context.Context, config Attrs, prior tftypes.Value, private []byte) *tfprotov6.PlanResourceChangeResponse {
	c.T.Helper()
	wanted := c.config(config)
	if !prior.IsNull() && len(c.Ignored) > 0 {
		kept := c.attributes(wanted)
		for _, name := range c.Ignored {
			kept[name] = c.attributes(prior)[name]
		}
		wanted = tftypes.NewValue(c.Resource, kept)
	}
	proposed := c.attributes(wanted)
	proposed["prompt_wo"] = tftypes.NewValue(tftypes.String, nil) // write-only attributes are in no plan
	if !prior.IsNull() {
		had := c.attributes(prior)
		for _, name := range c.Computed {
			if proposed[name].IsNull() {
				proposed[name] = had[name]
			}
		}
	}
	return call(ctx, c, c.Server.PlanResourceChange, &tfprotov6.PlanResourceChangeRequest{
		TypeName: "agent_job", PriorState: c.Dynamic(prior), ProposedNewState: c.Dynamic(tftypes.NewValue(c.Resource, proposed)),
		Config: c.Dynamic(wanted), PriorPrivate: private, PriorIdentity: c.Identity,
	})
}

// config is a configuration of the resource, with a name if it gives none.
func (c *CLI) config(given Attrs) tftypes.Value {
	return Object(c.Resource, With(Attrs{"name": "a"}, given))
}

// Empty reports whether the plan changes nothing.
func (c *CLI) Empty() bool { return !c.Replace && c.Planned.Equal(c.State) }

// Inconsistent is the CLI's error when a plan during the apply breaks a promise of the first one.
const Inconsistent = "Provider produced inconsistent final plan"

// Apply applies what was planned. Of a replacement, the deletion comes first.
func (c *CLI) Apply(ctx context.Context, config Attrs) []*tfprotov6.Diagnostic {
	c.T.Helper()
	r := &Run{State: State{"": {Instance: c.Instance}}, Plugins: []*CLI{c}, planned: map[string]*CLI{"": c}}
	r.Apply(ctx, Resource{Config: config})
	return r.Diags
}

// PlanAgain is the plan that an apply makes, as the CLI does: with the private data of the state, and an object that is
// replaced is gone by then.
func (c *CLI) PlanAgain(ctx context.Context, config Attrs) (diags []*tfprotov6.Diagnostic) {
	c.T.Helper()
	resp := c.planAgainst(ctx, config, c.State, c.Private)
	for _, d := range resp.Diagnostics { // without what the plan has said: the CLI says it again
		if !slices.ContainsFunc(c.warned, func(w *tfprotov6.Diagnostic) bool { return w.Summary == d.Summary && w.Detail == d.Detail }) {
			diags = append(diags, d)
		}
	}
	if Failed(resp.Diagnostics) {
		return diags
	}
	final := c.Decode(resp.PlannedState)
	if broken := append(c.broken(final), c.differing(resp, c.State)...); len(broken) > 0 {
		return append(diags, &tfprotov6.Diagnostic{
			Severity: tfprotov6.DiagnosticSeverityError, Summary: Inconsistent, Detail: strings.Join(broken, "\n"),
		})
	}
	c.Planned, c.PlannedPrivate, c.Replace = final, resp.PlannedPrivate, false
	return diags
}

// ApplyPlanned applies what was planned without planning it again, as some hosts do.
func (c *CLI) ApplyPlanned(ctx context.Context, config Attrs) []*tfprotov6.Diagnostic {
	c.T.Helper()
	creating := c.State.IsNull()
	resp := call(ctx, c, c.Server.ApplyResourceChange, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: "agent_job", PriorState: c.Dynamic(c.State), PlannedState: c.Dynamic(c.Planned),
		Config: c.Dynamic(c.config(config)), PlannedPrivate: c.PlannedPrivate, PlannedIdentity: c.Identity,
	})
	c.State, c.Private, c.Identity = c.Decode(resp.NewState), resp.Private, resp.NewIdentity
	c.Tainted = creating && Failed(resp.Diagnostics) && !c.State.IsNull()
	if !c.State.IsFullyKnown() {
		c.T.Errorf("the state after apply has unknown values: %s", c.State)
	}
	if !Failed(resp.Diagnostics) {
		for _, broken := range c.broken(c.State) {
			c.T.Errorf("inconsistent result after apply: %s", broken)
		}
	}
	return resp.Diagnostics
}

// broken says which promises of the plan a value breaks, as the CLI finds out.
func (c *CLI) broken(value tftypes.Value) (promises []string) {
	c.T.Helper()
	got := c.attributes(value)
	for name, planned := range c.attributes(c.Planned) {
		if planned.IsFullyKnown() && !planned.Equal(got[name]) {
			promises = append(promises, fmt.Sprintf("%s was planned as %s and is %s", name, planned, got[name]))
		}
	}
	return promises
}

// PlanDestroy plans the destruction of the resource.
func (c *CLI) PlanDestroy(ctx context.Context) []*tfprotov6.Diagnostic {
	c.T.Helper()
	nothing := c.Dynamic(tftypes.NewValue(c.Resource, nil))
	resp := call(ctx, c, c.Server.PlanResourceChange, &tfprotov6.PlanResourceChangeRequest{
		TypeName: "agent_job", PriorState: c.Dynamic(c.State), ProposedNewState: nothing, Config: nothing, PriorPrivate: c.Private, PriorIdentity: c.Identity,
	})
	c.PlannedPrivate = resp.PlannedPrivate
	return resp.Diagnostics
}

// Destroy plans a destroy and applies it.
func (c *CLI) Destroy(ctx context.Context) []*tfprotov6.Diagnostic {
	c.T.Helper()
	c.PlanDestroy(ctx)
	return c.Delete(ctx, c.PlannedPrivate)
}

// Delete destroys the resource, with the private data that its plan has left.
func (c *CLI) Delete(ctx context.Context, plannedPrivate []byte) []*tfprotov6.Diagnostic {
	c.T.Helper()
	nothing := tftypes.NewValue(c.Resource, nil)
	resp := call(ctx, c, c.Server.ApplyResourceChange, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: "agent_job", PriorState: c.Dynamic(c.State), PlannedState: c.Dynamic(nothing), Config: c.Dynamic(nothing),
		PlannedPrivate: plannedPrivate,
	})
	if c.State = c.Decode(resp.NewState); c.State.IsNull() {
		c.Forget()
	} else {
		c.Private = resp.Private
	}
	return resp.Diagnostics
}
