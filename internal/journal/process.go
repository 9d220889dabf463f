// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

// Process is what journals know of this process and the CLI that started it.
// A nil *Process opens no journals.
type Process struct {
	run    Run
	self   sender
	parent int
	report func(error)
	began  string        // when the parent started
	lost   chan struct{} // closed when hasLost is set
	ended  chan struct{} // closed when the process ends
	clean  bool          // nothing disturbed it; set before ended is closed

	stopping atomic.Bool // the CLI asked us to stop
	hasLost  atomic.Bool // a response did not reach the CLI
	retries  sync.WaitGroup

	mu       sync.Mutex
	calls    map[*Call]bool // that have posted and not returned
	journals []*Journal
}

// NewProcess returns the process as a part of run. report gets what goes wrong
// in the default folder, and what no call can return.
func NewProcess(run Run, report func(error)) *Process {
	return &Process{
		run: run, report: report, self: thisProcess(), parent: os.Getppid(), began: startTime(os.Getppid()),
		lost: make(chan struct{}), ended: make(chan struct{}), calls: map[*Call]bool{},
	}
}

// Options say how one journal is kept.
type Options struct {
	Location
	// RequestTimeout is the longest time between a POST and its response.
	RequestTimeout time.Duration
	// Recording wraps each write of an entry; nil: nothing does. Tests end a process there.
	Recording func(write func() error) error
}

// wrapped is a store whose writes go through a function.
type wrapped struct {
	store
	recording func(write func() error) error
}

func (w wrapped) write(ctx context.Context, e *entry) error {
	return w.recording(func() error { return w.store.write(ctx, e) })
}

// Open returns a journal. It touches nothing yet.
func (p *Process) Open(options Options) (*Journal, error) {
	if p == nil {
		return nil, nil
	}
	j := &Journal{
		process: p, named: options.Named, report: p.report,
		waitFor: opTimeout + options.RequestTimeout + opTimeout,
		entries: map[string]*entry{}, busy: map[string]bool{}, announced: map[string]bool{}, stuck: map[Key]error{},
	}
	if options.Bucket == "" {
		f := &folder{dir: options.Folder, self: p.self.ID, named: options.Named}
		j.store, j.room = f, f.room
	} else {
		var err error
		if j.store, err = openBucket(options.Location); err != nil {
			return nil, err
		}
	}
	if options.Recording != nil {
		j.store = wrapped{j.store, options.Recording}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.journals = append(p.journals, j)
	return j, nil
}

var errNoCLI = errors.New("the CLI has ended")

// CLIEnded reports whether the CLI has ended. On Windows its process id stays
// our parent's, but it has no start time any more.
func (p *Process) CLIEnded() bool {
	return os.Getppid() != p.parent || startTime(p.parent) != p.began
}

// Lost is closed once the response to a call that had posted could not reach the CLI.
func (p *Process) Lost() <-chan struct{} { return p.lost }

// Stopping records that the CLI asked the calls under way to end. It still
// receives their responses although their contexts are cancelled.
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

// Drain waits until no call that has posted is under way, or ctx ends.
func (p *Process) Drain(ctx context.Context) {
	for p.posted() > 0 && sleep.For(ctx, 10*time.Millisecond) == nil {
	}
}

func (p *Process) posted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.calls)
}

// undisturbed reports whether all went well as far as this process can know:
// the CLI asked for no stop, is still there, and has received every response.
func (p *Process) undisturbed() bool {
	return !p.stopping.Load() && !p.hasLost.Load() && p.posted() == 0 && !p.CLIEnded()
}

// Close ends the journals. Only what the default folder holds of an undisturbed
// process with room on its disk is removed: everything else waits until a later run has seen its
// outcome in the state.
func (p *Process) Close(ctx context.Context) {
	p.clean = p.undisturbed()
	close(p.ended)
	retried := make(chan struct{})
	go func() {
		p.retries.Wait()
		close(retried)
	}()
	select {
	case <-retried:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, j := range p.journals {
		if !j.named && p.clean {
			j.removeOwn(ctx)
		}
		j.store.close()
	}
}
