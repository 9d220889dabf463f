// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !race && unix

package explore

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
)

// run is a run of the CLI.
type run struct {
	world   *world
	number  int
	cut     cut
	command command
	forget  []string // by ids of requests: what a person gives up

	left      context.Context // ends when the CLI no longer works on anything
	leave     context.CancelFunc
	cliEnded  atomic.Bool
	stopped   atomic.Bool // by Ctrl-C
	storeDown atomic.Bool
	planned   atomic.Bool // the apply has begun

	steps []stepTaken // guarded by world.mu, as the next three
	cutAt time.Time
	posts int      // that arrived
	wrong []string // what it has done

	changes  map[string]*fakecli.CLI // that the plan has planned, by address
	removed  []string                // that an apply removes
	state    map[string]*object      // as the CLI has it in memory
	changed  bool                    // since it was read or stored
	storedAt time.Time               // or when the first resource finished

	empty  bool // the plan changed nothing
	failed bool
	diags  []*tfprotov6.Diagnostic
}

// plugins are the processes of the run, in the order in which they were started.
func (r *run) plugins() []*process {
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.world.processes), func(p *process) bool { return p.run != r })
}

// end is the end of the CLI.
func (r *run) end() {
	r.cliEnded.Store(true) // first: whoever sees left must not take it for Ctrl-C twice
	r.leave()
}

func (r *run) interrupt() {
	r.stopped.Store(true)
	for _, p := range r.plugins() {
		if !p.dead.Load() {
			_, _ = p.cli.Server.StopProvider(p.ctx, &tfprotov6.StopProviderRequest{})
		}
	}
}

// mustLive ends the goroutine of the CLI if the CLI has left.
func (r *run) mustLive() {
	if r.left.Err() != nil {
		runtime.Goexit()
	}
}

// shutDown ends the processes as the CLI does when it does no longer need them.
func (r *run) shutDown(processes ...*process) {
	for _, p := range processes {
		select {
		case p.served <- nil:
		default: // it is dead
		}
		select {
		case <-p.ended:
		case <-time.After(2 * time.Second):
		}
		p.die()
	}
}

// resource is a resource of the configuration.
type resource struct {
	address     string
	config      fakecli.Attrs
	unknown     fakecli.Attrs // what its plan does not know
	alias       int           // of its provider
	createFirst bool          // create_before_destroy
}

// operation is what a command of the CLI does.
type operation int

const (
	apply operation = iota
	plan
	destroy
)

// command is a command of the CLI, and its configuration.
type command struct {
	do            operation
	resources     []resource
	replace       string // -replace
	destroysFirst bool   // what is removed is planned and destroyed before anything else; the CLI takes any order

	// What happens before it.
	taints   string // "terraform taint", or a provisioner fails
	forgets  bool   // a person gives up the last requests of the commands before the cuts
	lost     bool   // the state was lost
	restored bool   // the state is as it was after the commands before the cuts
}

// newRun starts a run that has not done anything yet.
func (w *world) newRun(c command, cut cut, forget ...string) *run {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := &run{world: w, number: len(w.runs), cut: cut, command: c, forget: forget}
	r.left, r.leave = context.WithCancel(w.Context())
	w.runs = append(w.runs, r)
	return r
}

// prepare makes what happens before a command.
func (w *world) prepare(c command) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.lost {
		w.state = map[string]*object{}
	}
	if c.restored {
		w.state = maps.Clone(w.backup)
	}
	if o := w.state[c.taints]; o != nil && !o.State.IsNull() {
		tainted := *o
		tainted.Tainted = true
		w.state[c.taints] = &tainted
	}
}

// play plays a command to its end.
func (w *world) play(c command, cut cut, forget ...string) *run {
	r := w.newRun(c, cut, forget...)
	r.play()
	return r
}

func (r *run) play() {
	r.world.prepare(r.command)
	var cli sync.WaitGroup
	cli.Go(func() {
		defer r.end()
		defer func() {
			if r.left.Err() != nil && !r.cliEnded.Load() { // Ctrl-C twice
				r.shutDown(r.plugins()...)
			}
		}()
		r.execute()
	})
	cli.Wait()
}

// each starts a process for each alias of the scenario.
func (r *run) each() []*process {
	processes := []*process{r.start()}
	if slices.ContainsFunc(r.known(), func(res resource) bool { return res.alias > 0 }) {
		processes = append(processes, r.start())
	}
	return processes
}

// known are the resources of all runs so far, the last ones first.
func (r *run) known() (resources []resource) {
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	for _, run := range slices.Backward(r.world.runs[:r.number+1]) {
		resources = append(resources, run.command.resources...)
	}
	return resources
}

// aliasOf is the alias of what the state has at an address.
func (r *run) aliasOf(address string) int {
	known := r.known()
	i := slices.IndexFunc(known, func(res resource) bool { return res.address == address })
	return known[i].alias
}

// phase is the command that the CLI runs, as a pipeline has it: a plan, and an apply of what it has saved.
func (r *run) phase() string {
	if r.planned.Load() {
		return "apply"
	}
	return "plan"
}

// load gives a CLI the object of a state.
func (r *run) load(p *process, o *object) *fakecli.CLI {
	c := *p.cli
	if c.Forget(); o != nil {
		c.Load(p.ctx, o.Instance)
	}
	return &c
}

func objectOf(c *fakecli.CLI, deposed *object) *object {
	if c.State.IsNull() && deposed == nil {
		return nil
	}
	return &object{c.Instance, deposed}
}

// say shows diagnostics, and reports whether there is no error among them.
func (r *run) say(diags []*tfprotov6.Diagnostic) bool {
	r.diags = append(r.diags, diags...)
	r.failed = r.failed || fakecli.Failed(diags)
	return !fakecli.Failed(diags)
}

// note notes what a run must never do.
func (r *run) note(wrong string) {
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	if !slices.Contains(r.wrong, wrong) {
		r.wrong = append(r.wrong, wrong)
	}
}

// execute is the command, from the start of the CLI to its end.
func (r *run) execute() {
	w, c := r.world, r.command
	r.step(start, "the CLI starts")
	w.mu.Lock()
	r.state = maps.Clone(w.state)
	w.mu.Unlock()
	defer func() { // as the CLI does when it ends, but not when it is killed
		if r.left.Err() == nil {
			w.show(r.diags)
		}
	}()
	if c.do == destroy { // the CLI refreshes with a plan as for an apply
		r.planWith(false)
	}
	if r.planWith(c.do == destroy); c.do == plan || r.failed || r.stopped.Load() {
		return
	}
	r.planned.Store(true)
	processes := r.each()
	if c.destroysFirst {
		r.destroyAll(processes, r.removed)
	}
	if c.do != destroy {
		r.applyAll(processes)
	}
	if !c.destroysFirst {
		r.destroyAll(processes, r.removed)
	}
	r.finish(processes)
	if c.do == apply && !r.failed && !r.stopped.Load() {
		r.checkDone()
	}
}

// checkDone notes a job that has not finished: a green apply has done its jobs.
func (r *run) checkDone() {
	for _, res := range r.command.resources {
		o := r.state[res.address]
		if o == nil || o.State.IsNull() || o.Tainted || o.Get("status") == "active" && res.config["wait"] == nil {
			r.note("is green, and " + res.address + " is not done")
		}
	}
}

// planWith plans with processes of its own.
func (r *run) planWith(destroys bool) {
	if r.failed || r.stopped.Load() {
		return
	}
	processes := r.each()
	r.plan(processes, destroys)
	r.shutDown(processes...)
	r.mustLive()
}

// plan refreshes and plans all resources.
func (r *run) plan(processes []*process, destroys bool) {
	r.empty, r.changes, r.removed = true, map[string]*fakecli.CLI{}, nil
	c := r.command
	if c.destroysFirst || destroys {
		r.planRemovals(processes, destroys)
	}
	if destroys {
		return
	}
	for _, res := range c.resources {
		if r.stopped.Load() {
			r.failed = true
			return
		}
		r.planOne(processes[res.alias], res)
	}
	if !c.destroysFirst {
		r.planRemovals(processes, false)
	}
}

// planOne refreshes and plans a resource of the configuration, and what is left of the one that it has replaced.
func (r *run) planOne(p *process, res resource) {
	o := r.state[res.address]
	cli := r.load(p, o)
	cli.Forced = r.command.replace == res.address && o != nil
	if r.say(cli.Refresh(p.ctx)) && r.say(cli.Plan(p.ctx, fakecli.With(res.config, res.unknown))) {
		r.empty = r.empty && cli.Empty()
	}
	r.changes[res.address] = cli
	refreshed := objectOf(cli, nil)
	if o != nil && o.deposed != nil {
		r.empty = false
		if refreshed == nil {
			refreshed = new(object)
		}
		refreshed.deposed = o.deposed
		r.planRemoval(p, o.deposed, res.address+" deposed")
	}
	if refreshed != nil {
		r.changed = r.changed || o == nil || !o.State.Equal(refreshed.State) || string(o.Private) != string(refreshed.Private)
		r.state[res.address] = refreshed
	}
}

// planRemovals plans to destroy what is not in the configuration, or everything.
func (r *run) planRemovals(processes []*process, everything bool) {
	for _, address := range slices.Sorted(maps.Keys(r.state)) {
		isKept := slices.ContainsFunc(r.command.resources, func(res resource) bool { return res.address == address })
		if isKept && !everything {
			continue
		}
		r.removed = append(r.removed, address)
		r.empty = false
		r.planRemoval(processes[r.aliasOf(address)], r.state[address], address)
	}
}

func (r *run) planRemoval(p *process, o *object, name string) {
	cli := r.load(p, o)
	if r.say(cli.Refresh(p.ctx)) {
		r.say(cli.PlanDestroy(p.ctx))
	}
	r.changes[name] = cli
}

// remoteInterval is how long the CLI keeps changes in memory before it writes the state of a
// remote backend, while it applies.
const remoteInterval = 20 * time.Second

// save is the CLI writing its state after each change. To a remote backend it writes when
// the apply ends, after a stop, or when the last time was long ago.
func (r *run) save() {
	if r.world.remote {
		isDue := r.stopped.Load() || !r.storedAt.IsZero() && time.Since(r.storedAt) >= remoteInterval
		if r.storedAt.IsZero() {
			r.storedAt = time.Now()
		}
		if !isDue {
			return
		}
	}
	r.store()
}

func (r *run) store() {
	if !r.changed { // as the CLI does: an unchanged state must not overwrite a newer one
		return
	}
	r.step(stateWrite, "the state is written")
	r.mustLive()
	if !r.suffers(stateLost, outage) {
		r.world.storeState(r)
	}
	r.changed, r.storedAt = false, time.Now()
	r.step(call, "the state is written, done")
	r.mustLive()
}

func (r *run) set(address string, o *object) {
	if r.state[address] == nil && o == nil {
		return
	}
	delete(r.state, address)
	if o != nil {
		r.state[address] = o
	}
	r.changed = true
	r.save()
}

// finish ends the processes and the run. A remote state is stored only then.
func (r *run) finish(processes []*process) {
	if !r.world.remote {
		r.store()
	}
	r.shutDown(processes...)
	r.mustLive()
	r.store()
}

func (r *run) applyAll(processes []*process) {
	for _, res := range r.command.resources {
		if r.stopped.Load() {
			r.failed = true
			return
		}
		r.applyOne(processes[res.alias], res)
	}
}

func (r *run) applyOne(p *process, res resource) {
	planned := r.changes[res.address]
	before := r.state[res.address]
	if before != nil && before.deposed != nil {
		r.deleteDeposed(p, res.address, before.deposed)
		before = r.state[res.address]
	}
	if planned.Empty() {
		return
	}
	var deposed *object
	c := r.load(p, nil)
	switch {
	case !planned.Replace:
		c = r.load(p, before)
	case res.createFirst: // the CLI reads the old object only to delete it
		deposed = before
	default:
		old := r.load(p, before)
		isGone := r.say(old.Delete(p.ctx, planned.PlannedPrivate))
		if isGone && r.storeDown.Load() && !before.Tainted {
			r.note("replaces a job, and its journal cannot be reached")
		}
		if r.set(res.address, objectOf(old, nil)); !isGone || r.stopped.Load() {
			return
		}
	}
	c.Planned = planned.Planned
	if !r.say(c.PlanAgain(p.ctx, res.config)) {
		r.set(res.address, objectOf(c, deposed))
		return
	}
	if c.Empty() {
		return
	}
	created := r.say(c.ApplyPlanned(p.ctx, res.config))
	if c.State.IsNull() && deposed != nil {
		r.set(res.address, deposed) // the CLI restores it
		return
	}
	r.set(res.address, objectOf(c, deposed))
	if deposed != nil && created && !r.stopped.Load() {
		r.deleteDeposed(p, res.address, deposed)
	}
}

// deleteDeposed destroys what was replaced, which the CLI plans first.
func (r *run) deleteDeposed(p *process, address string, deposed *object) {
	old := r.load(p, deposed)
	r.say(old.Destroy(p.ctx))
	var left *object
	if o := r.state[address]; o != nil && !o.State.IsNull() {
		left = &object{Instance: o.Instance}
	}
	r.set(address, left)
}

func (r *run) destroyAll(processes []*process, addresses []string) {
	for _, address := range addresses {
		if r.stopped.Load() {
			r.failed = true
			return
		}
		p := processes[r.aliasOf(address)]
		c := r.load(p, r.state[address])
		r.say(c.Delete(p.ctx, r.changes[address].PlannedPrivate))
		r.set(address, objectOf(c, nil))
	}
}
