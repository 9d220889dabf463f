// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !race && unix

package explore

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
)

// run is a run of the CLI.
type run struct {
	world  *world
	number int
	cut    cut
	forget []string

	left        chan struct{} // closed when the CLI no longer works on anything
	leave       sync.Once
	cliEnded    atomic.Bool
	stopped     atomic.Bool // by Ctrl-C
	serviceDown atomic.Bool
	stateOff    atomic.Bool
	storeDown   atomic.Bool

	mu        sync.Mutex
	steps     []stepTaken
	processes []*process

	empty  bool // the plan changed nothing
	failed bool
	diags  []*tfprotov6.Diagnostic
}

// machine is that of the run: with a bucket, each has its own.
func (r *run) machine() string {
	if r.world.store == bucket {
		return fmt.Sprint("machine", r.number)
	}
	return "machine"
}

func (r *run) plugins() []*process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.processes)
}

// end is the end of the CLI.
func (r *run) end() {
	r.cliEnded.Store(true) // first: whoever sees left must not take it for Ctrl-C twice
	r.leave.Do(func() { close(r.left) })
}

func (r *run) interrupt() {
	r.stopped.Store(true)
	for _, p := range r.plugins() {
		if !p.dead.Load() {
			_, _ = p.cli.Server.StopProvider(p.ctx, &tfprotov6.StopProviderRequest{})
		}
	}
}

// hasLeft reports whether the CLI no longer works on anything.
func (r *run) hasLeft() bool {
	select {
	case <-r.left:
		return true
	default:
		return false
	}
}

// mustLive ends the goroutine of the CLI if the CLI has left.
func (r *run) mustLive() {
	if r.hasLeft() {
		panic(gone{})
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
	alias       int  // of its provider
	createFirst bool // create_before_destroy
}

// apply is a whole "terraform apply", or a plan.
func (w *world) apply(resources []resource, c cut, forget []string, planOnly bool) *run {
	w.mu.Lock()
	r := &run{world: w, number: len(w.runs), cut: c, forget: forget, left: make(chan struct{})}
	w.runs = append(w.runs, r)
	w.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			switch reason := recover().(type) {
			case nil:
			case gone:
				if !r.cliEnded.Load() { // Ctrl-C twice
					r.shutDown(r.plugins()...)
					r.end()
				}
			default:
				panic(reason)
			}
		}()
		r.apply(resources, planOnly)
		r.end()
	}()
	<-done
	if r.storeDown.Load() && w.bucket == nil {
		w.repair()
	}
	return r
}

// breakJournal makes the journal unusable until the run ends.
func (r *run) breakJournal() {
	w := r.world
	if r.storeDown.Swap(true) || w.bucket != nil {
		return
	}
	if err := errors.Join(os.Rename(w.folder(), w.folder()+".away"), os.WriteFile(w.folder(), nil, 0o600)); err != nil {
		w.Fatal(err)
	}
}

func (w *world) repair() {
	if err := errors.Join(os.Remove(w.folder()), os.Rename(w.folder()+".away", w.folder())); err != nil {
		w.Fatal(err)
	}
}

// each starts a process for each alias.
func (r *run) each(resources []resource) []*process {
	processes := []*process{r.start()}
	for _, res := range resources {
		if res.alias == len(processes) {
			processes = append(processes, r.start())
		}
	}
	return processes
}

// load gives a CLI the object of a state.
func (r *run) load(p *process, o *object) *fakecli.CLI {
	c := *p.cli
	c.Forget()
	if o == nil {
		return &c
	}
	c.State, c.Private, c.Identity, c.Tainted = o.value, o.private, o.identity, o.tainted
	id, _ := json.Marshal(map[string]string{"id": get(o.value, "id")})
	_, _ = c.Server.UpgradeResourceState(p.ctx, &tfprotov6.UpgradeResourceStateRequest{TypeName: "agent_job", RawState: &tfprotov6.RawState{JSON: id}})
	return &c
}

func objectOf(c *fakecli.CLI, deposed *object) *object {
	if c.State.IsNull() && deposed == nil {
		return nil
	}
	return &object{c.State, c.Private, c.Identity, c.Tainted, deposed}
}

func (r *run) apply(resources []resource, planOnly bool) {
	w := r.world
	if r.cut.noJournal {
		r.breakJournal()
	}
	r.step(start, "the CLI starts")
	state := maps.Clone(w.state)
	say := func(diags []*tfprotov6.Diagnostic) bool {
		r.diags = append(r.diags, diags...)
		r.failed = r.failed || fakecli.Failed(diags)
		return !fakecli.Failed(diags)
	}
	defer func() { // as the CLI does when it ends, but not when it is killed
		if !r.hasLeft() {
			w.show(r.diags)
		}
	}()
	processes := r.each(resources)
	r.empty = true
	for _, res := range resources {
		if r.stopped.Load() {
			r.failed = true
			break
		}
		p := processes[res.alias]
		if o := state[res.address]; o != nil && o.deposed != nil {
			r.empty = false
		}
		c := r.load(p, state[res.address])
		if say(c.Refresh(p.ctx)) && say(c.Plan(p.ctx, res.config)) {
			r.empty = r.empty && c.Empty()
		}
		if o := objectOf(c, nil); o != nil {
			o.deposed = state[res.address].deposed
			state[res.address] = o
		}
	}
	removed := slices.Sorted(maps.Keys(state)) // from the configuration
	removed = slices.DeleteFunc(removed, func(address string) bool {
		return slices.ContainsFunc(resources, func(res resource) bool { return res.address == address })
	})
	for _, address := range removed {
		r.empty = false
		c := r.load(processes[0], state[address])
		if say(c.Refresh(processes[0].ctx)) {
			say(c.PlanDestroy(processes[0].ctx))
		}
	}
	r.shutDown(processes...)
	r.mustLive()
	if planOnly || r.failed || r.stopped.Load() {
		return
	}
	processes = r.each(resources)
	save := func() {
		r.step(stateWrite, "the state is written")
		r.mustLive()
		if !r.stateOff.Load() {
			w.storeState(state)
		}
		r.step(call, "the state is written, done")
		r.mustLive()
	}
	set := func(address string, o *object) {
		delete(state, address)
		if o != nil {
			state[address] = o
		}
		save()
	}
	for _, res := range resources {
		if r.stopped.Load() {
			r.failed = true
			break
		}
		p := processes[res.alias]
		before := state[res.address]
		var deposed *object
		if before != nil && before.deposed != nil {
			old := r.load(p, before.deposed)
			say(old.Destroy(p.ctx))
			copied := *before
			copied.deposed, before = nil, &copied
			set(res.address, before)
		}
		c := r.load(p, before)
		if !say(c.Plan(p.ctx, res.config)) {
			continue
		}
		if c.Replace {
			if res.createFirst {
				deposed = before
			} else {
				say(c.Destroy(p.ctx))
				set(res.address, nil)
				if r.stopped.Load() {
					break
				}
			}
			c.Forget()
			if !say(c.Plan(p.ctx, res.config)) {
				set(res.address, objectOf(c, deposed))
				continue
			}
		}
		if c.Empty() {
			continue
		}
		created := say(c.Apply(p.ctx, res.config))
		if c.State.IsNull() && deposed != nil {
			set(res.address, deposed) // the CLI restores it
			continue
		}
		set(res.address, objectOf(c, deposed))
		if deposed != nil && created && !r.stopped.Load() {
			old := r.load(p, deposed)
			say(old.Destroy(p.ctx))
			set(res.address, objectOf(c, nil))
		}
	}
	for _, address := range removed {
		if r.stopped.Load() {
			r.failed = true
			break
		}
		c := r.load(processes[0], state[address])
		say(c.Destroy(processes[0].ctx))
		set(address, objectOf(c, nil))
	}
	save()
	r.shutDown(processes...)
}
