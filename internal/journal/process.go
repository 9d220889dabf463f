// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

// Process is this process and the CLI that started it. A nil *Process opens no
// journals.
type Process struct {
	Host

	report func(error)
	lost   chan struct{} // closed when hasLost is set

	stopping atomic.Bool // the CLI requested a stop
	hasLost  atomic.Bool // a response did not reach the CLI

	mu       sync.Mutex
	calls    map[*Call]bool // that have sent a POST and not returned
	journals []*Journal
}

// NewProcess returns a process on a host. report receives the errors that no call can
// return.
func NewProcess(host Host, report func(error)) *Process {
	return &Process{Host: host, report: report, lost: make(chan struct{}), calls: map[*Call]bool{}}
}

// Options configure a journal.
type Options struct {
	Location
	// Scope distinguishes states.
	Scope string
	// Forget lists entries without a known outcome that a person has decided about.
	Forget []string
	// RequestTimeout is the longest time between a POST and its response.
	RequestTimeout time.Duration
}

// Open returns a journal without accessing its store yet.
func (p *Process) Open(options Options) (*Journal, error) {
	if p == nil {
		return nil, nil
	}
	j := &Journal{
		process: p, named: options.Named, scope: hash(options.Scope)[:16], states: options.Scope, forget: options.Forget,
		waitFor: opTimeout + options.RequestTimeout + opTimeout,
		entries: map[string]*entry{}, busy: map[string]bool{},
	}
	if options.Bucket == "" {
		j.store = folder{options.Folder, p.ModTime}
	} else {
		var err error
		if j.store, err = openBucket(options.Location, p.Network); err != nil {
			return nil, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.journals = append(p.journals, j)
	return j, nil
}

var errNoCLI = errors.New("the CLI has ended")

// Lost is closed once the response to a call that had sent a POST could not reach the CLI.
func (p *Process) Lost() <-chan struct{} { return p.lost }

// Stopping records that the CLI requested a stop. It still receives the responses
// of the calls in progress, although their contexts are cancelled.
func (p *Process) Stopping() { p.stopping.Store(true) }

func (p *Process) posting(c *Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[c] = true
}

func (p *Process) withdrawn(c *Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, c)
}

// returned records that a call returns, and whether anybody receives its response.
func (p *Process) returned(c *Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls[c] && c.ctx.Err() != nil && !p.stopping.Load() && p.hasLost.CompareAndSwap(false, true) {
		close(p.lost)
	}
	delete(p.calls, c)
}

// Drain waits until no call that has sent a POST is in progress, or ctx ends.
func (p *Process) Drain(ctx context.Context) {
	for p.posted() > 0 && sleep.For(ctx, 10*time.Millisecond) == nil {
	}
}

func (p *Process) posted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.calls)
}

// undisturbed reports whether, as far as this process knows, the CLI did not request
// a stop, is still running, and has received every response.
func (p *Process) undisturbed() bool {
	return !p.stopping.Load() && !p.hasLost.Load() && p.posted() == 0 && !p.CLIEnded()
}

// Close removes what this process has sent from the default folder if nothing disturbed
// it. All other entries stay until a later run has seen their outcome in the state.
func (p *Process) Close(ctx context.Context) {
	if !p.undisturbed() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, j := range p.journals {
		if j.named {
			continue
		}
		if err := j.removeAll(ctx, func(e *entry) bool { return e.own }); err != nil {
			p.report(err)
		}
	}
}
