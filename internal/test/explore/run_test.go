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
	fakecli.Run

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

	steps []stepTaken // guarded by world.mu, as the next two
	cutAt time.Time
	posts int // that arrived

	stored   fakecli.State // what it has read, or stored since
	storedAt time.Time     // or when the first resource finished
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
	resources     []fakecli.Resource
	destroysFirst bool // what is removed is planned and destroyed before anything else; the CLI takes any order

	// What happens before it.
	taints   string // "terraform taint", or a provisioner fails
	forgets  bool   // a person gives up the last requests of the commands before the cuts
	lost     bool   // the state was lost
	restored bool   // the state is as it was after the commands before the cuts
}

// prepare makes what happens before a command.
func (w *world) prepare(c command) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.lost {
		w.state = fakecli.State{}
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
	w.prepare(c)
	w.mu.Lock()
	r := &run{world: w, number: len(w.runs), cut: cut, command: c, forget: forget}
	w.runs = append(w.runs, r)
	w.mu.Unlock()
	r.Changed, r.Stopped = r.change, r.stopped.Load
	r.left, r.leave = context.WithCancel(w.Context())
	var cli sync.WaitGroup
	cli.Go(func() {
		defer func() {
			if r.left.Err() != nil && !r.cliEnded.Load() { // Ctrl-C twice
				r.shutDown(r.plugins()...)
			}
			r.end()
		}()
		r.execute()
	})
	cli.Wait()
	return r
}

// start starts the processes of a command, one for each alias.
func (r *run) start(resources []fakecli.Resource) (processes []*process) {
	r.Plugins = nil
	for _, res := range resources {
		for len(processes) <= res.Alias {
			p := r.startProcess()
			processes, r.Plugins = append(processes, p), append(r.Plugins, p.cli)
		}
	}
	return processes
}

// execute is the command, from the start of the CLI to its end.
func (r *run) execute() {
	w, c := r.world, r.command
	r.step(start, "the CLI starts")
	w.mu.Lock()
	r.State, r.stored = maps.Clone(w.state), maps.Clone(w.state)
	w.mu.Unlock()
	defer func() { // as the CLI does when it ends, but not when it is killed
		if r.left.Err() == nil {
			w.show(r.Diags)
		}
	}()
	if c.do == destroy { // the CLI refreshes with a plan as for an apply
		r.plan(r.resources(false))
	}
	resources := r.resources(c.do == destroy)
	if r.plan(resources); c.do == plan || r.Failed || r.stopped.Load() {
		return
	}
	r.planned.Store(true)
	processes := r.start(resources)
	r.Apply(w.Context(), resources...)
	if !w.scenario.remote { // a remote state is stored when all has ended
		r.store()
	}
	r.shutDown(processes...)
	r.mustLive()
	r.store()
	if c.do == apply && !r.Failed && !r.stopped.Load() {
		r.checkDone()
	}
}

// checkDone notes a job that has not finished: a green apply has done its jobs.
func (r *run) checkDone() {
	for _, res := range r.command.resources {
		o := r.State[res.Address]
		if o == nil || o.State.IsNull() || o.Tainted || o.Get("status") == "active" && res.Config["wait"] == nil {
			r.world.Errorf("run %d is green, and %s is not done", r.number+1, res.Address)
		}
	}
}

// plan plans with processes of its own.
func (r *run) plan(resources []fakecli.Resource) {
	if r.Failed || r.stopped.Load() {
		return
	}
	processes := r.start(resources)
	r.Plan(r.world.Context(), resources...)
	r.shutDown(processes...)
	r.mustLive()
}

// resources are those of the configuration, and those of the state that it does not have any more: if the command destroys, all.
func (r *run) resources(destroys bool) []fakecli.Resource {
	var kept, gone []fakecli.Resource
	if !destroys {
		kept = r.command.resources
	}
	for _, address := range slices.Sorted(maps.Keys(r.State)) {
		if !slices.ContainsFunc(kept, func(res fakecli.Resource) bool { return res.Address == address }) {
			gone = append(gone, fakecli.Resource{Address: address, Alias: r.State[address].Alias, Gone: true})
		}
	}
	if r.command.destroysFirst {
		return slices.Concat(gone, kept)
	}
	return slices.Concat(kept, gone)
}

// change is what the CLI does after it has changed its state.
func (r *run) change(res fakecli.Resource, before *fakecli.Instances) {
	if !res.Gone && before != nil && r.State[res.Address] == nil && !before.State.IsNull() && !before.Tainted && r.storeDown.Load() {
		r.world.Errorf("run %d replaces a job, and its journal cannot be reached", r.number+1)
	}
	r.save()
}

// remoteInterval is how long the CLI keeps changes in memory before it writes the state of a
// remote backend, while it applies.
const remoteInterval = 20 * time.Second

// save is the CLI writing its state after each change. To a remote backend it writes when
// the apply ends, after a stop, or when the last time was long ago.
func (r *run) save() {
	if r.world.scenario.remote {
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
	if maps.Equal(r.State, r.stored) { // as the CLI does: an unchanged state must not overwrite a newer one
		return
	}
	r.step(stateWrite, "the state is written")
	r.mustLive()
	if !r.suffers(stateLost, outage) {
		r.world.storeState(r)
	}
	r.stored, r.storedAt = maps.Clone(r.State), time.Now()
	r.step(call, "the state is written, done")
	r.mustLive()
}
