// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package fakecli

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// Resource is a resource of a configuration, and how a run treats it.
type Resource struct {
	Address     string
	Config      Attrs
	Planned     Attrs    // what the plan knows of Config; nil: all
	Gone        bool     // it is not in the configuration any more
	Alias       int      // of its provider
	Forced      bool     // -replace
	Ignored     []string // by ignore_changes
	CreateFirst bool     // create_before_destroy
	DeposedLast bool     // what it has left behind is planned and destroyed after it: the CLI may do either
}

// Instances are what a state has at an address. A run puts others in their place, and changes none.
type Instances struct {
	Instance             // its State is null if only a deposed one is left
	Deposed  []*Instance // replaced, and not destroyed yet
	Alias    int         // of the provider
}

// All are the current instance, if there is one, and the deposed ones.
func (i *Instances) All() (all []Instance) {
	if !i.State.IsNull() {
		all = append(all, i.Instance)
	}
	for _, deposed := range i.Deposed {
		all = append(all, *deposed)
	}
	return all
}

// State has the instances of each address.
type State map[string]*Instances

// Run is a run of the CLI: a plan of any number of resources, and its apply.
type Run struct {
	State       State
	Plugins     []*CLI                                // provider processes of the command, by alias
	RefreshOnly bool                                  // -refresh-only
	Once        bool                                  // the apply does not plan again, as with some hosts
	Changed     func(res Resource, before *Instances) // after each change that the apply makes; nil: nothing
	Stopped     func() bool                           // by Ctrl-C; nil: never
	Failed      bool                                  // it has said an error, or was stopped
	Diags       []*tfprotov6.Diagnostic               // what it has said
	Empty       bool                                  // the plan changes nothing

	planned map[string]*CLI
}

// Plan refreshes and plans resources, in this order.
func (r *Run) Plan(ctx context.Context, resources ...Resource) {
	r.planned, r.Empty = map[string]*CLI{}, true
	for _, res := range resources {
		if r.isStopped() {
			return
		}
		deposed := r.at(res.Address).Deposed
		res.inOrder(func() { r.planDeposed(ctx, res, deposed) }, func() { r.planOne(ctx, res) })
	}
}

// planOne refreshes and plans the current instance.
func (r *Run) planOne(ctx context.Context, res Resource) {
	c := *r.Plugins[res.Alias]
	c.Load(ctx, r.at(res.Address).Instance)
	c.Forced, c.Ignored = res.Forced, res.Ignored
	r.planned[res.Address] = &c
	if !r.say(c.Refresh(ctx)) {
		return
	}
	r.put(res, c.Instance, r.at(res.Address).Deposed)
	switch {
	case r.RefreshOnly, res.Gone && c.State.IsNull():
	case res.Gone:
		r.say(c.PlanDestroy(ctx))
		r.Empty = false
	default:
		planned := res.Planned
		if planned == nil {
			planned = res.Config
		}
		if r.say(c.Plan(ctx, planned)) {
			r.Empty = r.Empty && c.Empty()
		}
	}
}

func (r *Run) planDeposed(ctx context.Context, res Resource, deposed []*Instance) {
	for _, instance := range deposed {
		r.Empty = false
		old := *r.Plugins[res.Alias]
		old.Load(ctx, *instance)
		if r.say(old.Refresh(ctx)) {
			r.say(old.PlanDestroy(ctx))
		}
	}
}

// Apply does what was planned, in this order.
func (r *Run) Apply(ctx context.Context, resources ...Resource) {
	for _, res := range resources {
		if r.isStopped() {
			return
		}
		deposed := r.at(res.Address).Deposed
		res.inOrder(func() { r.destroyDeposed(ctx, res, deposed) }, func() { r.applyOne(ctx, res, r.planned[res.Address]) })
	}
}

// inOrder handles what the resource has left behind, and its current instance.
func (res Resource) inOrder(deposed, current func()) {
	if !res.DeposedLast {
		deposed()
	}
	current()
	if res.DeposedLast {
		deposed()
	}
}

// applyOne creates, updates or destroys the current instance, or replaces it.
func (r *Run) applyOne(ctx context.Context, res Resource, c *CLI) {
	c.Server, c.Carry = r.Plugins[res.Alias].Server, r.Plugins[res.Alias].Carry
	switch {
	case res.Gone && c.State.IsNull(), !res.Gone && c.Empty(): // nothing to do
		return
	case !res.Gone && c.Replace && res.CreateFirst:
		r.createFirst(ctx, res, c)
		return
	}
	c.Load(ctx, c.Instance)
	deposed := r.at(res.Address).Deposed
	if res.Gone || c.Replace {
		isGone := r.say(c.Delete(ctx, c.PlannedPrivate)) // of a replacement, the CLI keeps that of the create
		r.set(res, c.Instance, deposed)
		if c.Replace = false; !isGone || res.Gone || r.isStopped() {
			return
		}
	}
	if r.planAgain(ctx, res, c) && !c.Empty() {
		r.say(c.ApplyPlanned(ctx, res.Config))
	}
	r.set(res, c.Instance, deposed)
}

// createFirst replaces an instance with create_before_destroy. The CLI loads what it replaces only after the create.
func (r *Run) createFirst(ctx context.Context, res Resource, c *CLI) {
	old, deposed := c.Instance, r.at(res.Address).Deposed
	c.Forget()
	c.Replace = false
	isPlanned := r.planAgain(ctx, res, c)
	isCreated := isPlanned && r.say(c.ApplyPlanned(ctx, res.Config))
	if isPlanned && c.State.IsNull() { // such an error of the create restores the old one, an error of its plan does not (T4)
		r.set(res, old, deposed)
		return
	}
	r.set(res, c.Instance, append(slices.Clone(deposed), &old))
	if isCreated && !r.isStopped() {
		r.destroyDeposed(ctx, res, []*Instance{&old})
	}
}

func (r *Run) planAgain(ctx context.Context, res Resource, c *CLI) bool {
	return r.Once || r.say(c.PlanAgain(ctx, res.Config))
}

// destroyDeposed destroys what was replaced, which the CLI plans first.
func (r *Run) destroyDeposed(ctx context.Context, res Resource, deposed []*Instance) {
	for _, instance := range deposed {
		old := *r.Plugins[res.Alias]
		old.Load(ctx, *instance)
		r.say(old.Destroy(ctx))
		if o := r.at(res.Address); old.State.IsNull() {
			others := slices.DeleteFunc(slices.Clone(o.Deposed), func(other *Instance) bool { return other == instance })
			r.set(res, o.Instance, others)
		}
	}
}

// at are the instances of an address, if only a null one.
func (r *Run) at(address string) *Instances {
	if o := r.State[address]; o != nil {
		return o
	}
	return &Instances{Instance: Instance{State: r.Plugins[0].Decode(nil)}}
}

// set changes what an address has, as an apply does.
func (r *Run) set(res Resource, current Instance, deposed []*Instance) {
	before := r.State[res.Address]
	if r.put(res, current, deposed) && r.Changed != nil {
		r.Changed(res, before)
	}
}

// put changes what an address has, and reports whether that was something else.
func (r *Run) put(res Resource, current Instance, deposed []*Instance) bool {
	before := r.at(res.Address)
	if before.equal(current) && slices.Equal(before.Deposed, deposed) {
		return false
	}
	r.State[res.Address] = &Instances{current, deposed, res.Alias}
	if current.State.IsNull() && len(deposed) == 0 {
		delete(r.State, res.Address)
	}
	return true
}

func (i Instance) equal(other Instance) bool {
	return i.State.Equal(other.State) && string(i.Private) == string(other.Private) && i.Tainted == other.Tainted
}

// say keeps diagnostics, and reports whether there is no error among them.
func (r *Run) say(diags []*tfprotov6.Diagnostic) bool {
	r.Diags = append(r.Diags, diags...)
	r.Failed = r.Failed || Failed(diags)
	return !Failed(diags)
}

func (r *Run) isStopped() bool {
	isStopped := r.Stopped != nil && r.Stopped()
	r.Failed = r.Failed || isStopped
	return isStopped
}
