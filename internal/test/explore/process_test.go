// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !race && unix

package explore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/plugin"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
)

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
	if diags := p.cli.ConnectTo(p.ctx, provider.New(fmt.Sprint(p.pid), provider.Options{Process: own, Dial: p.dial}), p.settings()); len(diags) > 0 {
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
