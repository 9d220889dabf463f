// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !race && unix

package explore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/plugin"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
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

// process is a provider process. Once it is dead, it reaches nothing: its goroutines
// only run out.
type process struct {
	run    *run
	pid    int
	cli    *fakecli.CLI // connected to it
	served chan error   // the CLI asks it to end
	ended  chan struct{}
	ctx    context.Context // until it is dead
	kill   context.CancelFunc
	dead   atomic.Bool
	conns  []net.Conn
}

var errDead = errors.New("the process is dead")

// startProcess starts a provider process of the run.
func (r *run) startProcess() *process {
	w := r.world
	p := &process{run: r, served: make(chan error, 1), ended: make(chan struct{})}
	p.ctx, p.kill = context.WithCancel(w.Context())
	context.AfterFunc(p.ctx, p.die)
	w.mu.Lock()
	p.pid = len(w.processes)
	w.processes = append(w.processes, p)
	w.mu.Unlock()
	machine := fmt.Sprint("machine", r.number) // each run has its own
	own := &cli.Process{
		Run: cli.Run(fmt.Sprint(r.number)), Self: cli.ProcessID{Machine: machine, PID: p.pid, Start: "1"},
		Ended: func(s cli.ProcessID) bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return s.Machine == machine && !w.alive(s)
		},
		CLIEnded: r.cliEnded.Load, Network: p,
		Command: map[bool]string{true: "apply", false: "plan"}[r.planned.Load()], // of what the plan has saved, as in a pipeline
	}
	p.cli = &fakecli.CLI{T: w}
	options := provider.Options{Process: own, Dial: p.dial}
	if diags := p.cli.ConnectTo(p.ctx, provider.New(fmt.Sprint(p.pid), options), p.settings()); len(diags) > 0 {
		w.Fatal(fakecli.Text(diags))
	}
	p.cli.Carry = p.carry
	go func() {
		defer close(p.ended)
		_ = plugin.End(p.ctx, own, p.served)
		p.die()
	}()
	return p
}

func (p *process) die() {
	p.dead.Store(true)
	p.kill()
	p.hangUp()
	select {
	case p.served <- nil:
	default:
	}
}

// hangUp ends the connections of the process.
func (p *process) hangUp() {
	p.run.world.mu.Lock()
	defer p.run.world.mu.Unlock()
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.conns = nil
}

func (p *process) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w := p.run.world
	p.run.step(call, "connection to the service")
	if p.dead.Load() {
		return nil, errDead
	}
	conn, err := w.wire.Dial(ctx, network, address)
	w.mu.Lock()
	defer w.mu.Unlock()
	p.conns = append(p.conns, conn)
	return conn, err
}

// RoundTrip leads to the bucket.
func (p *process) RoundTrip(req *http.Request) (*http.Response, error) {
	r, kind, name := p.run, journalRead, "journal "+fakes3.Op(req)
	if req.Method == http.MethodPut {
		kind = journalWrite
		if !r.planned.Load() {
			r.world.Errorf("run %d writes to the journal, and only plans", r.number+1)
		}
	}
	way := r.step(kind, name)
	hangs := r.suffers(readsHang) && kind == journalRead
	if hangs || r.suffers(storeHangs) {
		select {
		case <-req.Context().Done():
			return nil, req.Context().Err()
		case <-time.After(time.Until(r.cutAt.Add(30 * time.Second))):
		}
	}
	if p.dead.Load() || hangs {
		return nil, errDead
	}
	time.Sleep(time.Millisecond) // so that two accesses have different times
	if req.Body == nil {
		req.Body = http.NoBody
	}
	if way == latePut {
		const late = 12 * time.Second
		arriving := req.Clone(context.WithoutCancel(req.Context()))
		time.AfterFunc(late, func() { r.world.bucket.ServeHTTP(httptest.NewRecorder(), arriving) })
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	resp := r.answer(req)
	r.step(call, name+" done")
	if p.dead.Load() || way == losePut {
		return nil, errDead
	}
	resp.Request = req
	return resp, nil
}

// answer is what the bucket responds.
func (r *run) answer(req *http.Request) *http.Response {
	recorder, bucket := httptest.NewRecorder(), r.world.bucket
	if r.storeDown.Load() {
		http.Error(recorder, "<Error><Code>AccessDenied</Code></Error>", http.StatusForbidden)
		return recorder.Result()
	}
	bucket.Lock()
	bucket.IgnoreIfMatch, bucket.IgnoreIfNoneMatch = r.suffers(unconditional), r.suffers(unconditional)
	bucket.Unlock()
	bucket.ServeHTTP(recorder, req)
	return recorder.Result()
}

// carry is the connection between the CLI and a process: each call and each response on it is a step.
func (p *process) carry(name string, send func(context.Context)) {
	r := p.run
	r.step(call, name)
	r.mustLive()
	ctx, cancel := context.WithCancel(p.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.step(call, name+" arrives")
		send(ctx)
	}()
	select {
	case <-done:
	case <-r.left.Done():
		time.AfterFunc(20*time.Millisecond, cancel) // the provider notices the end of the connection late
		runtime.Goexit()
	}
	cancel()
	r.step(call, name+" returns")
	r.mustLive()
}
