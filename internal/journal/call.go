// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// Request is what an entry says about a request.
type Request struct {
	Key       Key
	ProjectID string
	JobID     string // the recipient of a message; empty for a create
}

// Call follows one call of the CLI that may POST. A nil *Call records nothing.
type Call struct {
	journal *Journal
	ctx     context.Context // the CLI's own: when it ends before the call does, the CLI is gone
	entry   *entry
	started time.Time                   // wall clock, which keeps running while the machine sleeps
	unknown bool                        // the outcome of the POST
	again   func(context.Context) error // what failed, to be tried once more when the call ends
	problem error                       // why the last step could not be recorded
}

// Ref names an entry in the private state of a resource, where every byte is
// stored once for each resource.
type Ref struct {
	ID string `json:"i"`
	At int64  `json:"t"` // when it was sent, in ms by the store's clock
}

func (e *entry) ref() Ref { return Ref{ID: e.id, At: e.SentAt} }

// Begin starts to follow a call that may send a request. ctx is the call's context,
// without a deadline of the provider.
func (j *Journal) Begin(ctx context.Context, r Request) *Call {
	if j == nil {
		return nil
	}
	return &Call{journal: j, ctx: ctx, entry: &entry{
		Key: r.Key, Scope: j.scope, Project: r.ProjectID, JobID: r.JobID, Run: j.process.Run, Sender: j.process.Self, id: newID(),
	}}
}

// try makes one access to the store, which outlives the call, and notes what failed.
func (c *Call) try(access func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), opTimeout)
	defer cancel()
	c.again = nil
	if c.problem = access(ctx); c.problem != nil {
		c.again = access
	}
}

func (c *Call) write(ctx context.Context) error {
	return c.journal.failed("written", c.journal.store.write(ctx, c.entry))
}

func (c *Call) remove(ctx context.Context) error { return c.journal.remove(ctx, c.entry.id) }

var errSlow = errors.New("it took longer than 10 seconds")

// Sending records that a POST is about to be sent. After an error nothing is
// recorded and nothing must be sent: a named store could not be written, or the CLI is
// gone. In that case the next run may already have looked for the record, and would
// not know of the POST.
func (c *Call) Sending() error {
	if c == nil {
		return nil
	}
	j, e := c.journal, c.entry
	j.process.posting(c)
	ctx, cancel := context.WithTimeout(c.ctx, opTimeout)
	defer cancel()
	c.started = time.Now().Round(0)
	e.SentAt, e.Wait = 0, j.waitFor.Milliseconds()
	c.again, c.problem = nil, c.write(ctx)
	e.SentAt = cmp.Or(e.SentAt, j.store.now().UnixMilli()) // after a failure
	if c.problem == nil && time.Since(c.started) > opTimeout {
		c.problem = j.failed("written", errSlow)
	}
	var err error
	switch {
	case j.process.CLIEnded():
		err = errNoCLI
	case c.ctx.Err() != nil:
		err = context.Cause(c.ctx)
	case j.named:
		err = c.problem
	}
	if err != nil {
		c.Withdrawn() // a write that failed may have arrived nevertheless
	}
	return err
}

// Accepted records the job that the POST started or reached.
func (c *Call) Accepted(jobID string) {
	if c == nil {
		return
	}
	j, e := c.journal, c.entry
	e.JobID, e.Accepted, e.Wait, e.own = jobID, true, 0, true
	c.try(c.write)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries[e.id] = e
}

// Withdrawn records that the POST had no effect: it was not sent, or refused.
func (c *Call) Withdrawn() {
	if c == nil {
		return
	}
	c.try(c.remove)
	c.journal.process.withdrawn(c) // now, so that a process that ends waits for the removal
}

// Unknown records that the outcome of the POST is unknown.
func (c *Call) Unknown() {
	if c != nil {
		c.unknown = true
	}
}

// Problem returns why the store does not show what became of the POST.
func (c *Call) Problem() error {
	if c == nil {
		return nil
	}
	return c.problem
}

// Orphan describes the call's own request, or is nil without a record of it.
func (c *Call) Orphan() *Orphan {
	if c == nil || c.problem != nil {
		return nil
	}
	return c.journal.newOrphan(c.entry)
}

// Ref returns the reference to the call's entry.
func (c *Call) Ref() Ref {
	if c == nil || c.entry.SentAt == 0 {
		return Ref{}
	}
	return c.entry.ref()
}

// End records that the call returns to the CLI. Defer it.
func (c *Call) End() {
	if c == nil {
		return
	}
	if c.unknown && c.problem == nil {
		c.entry.Wait = 0 // the next run need not wait for a response
		c.try(c.write)
	} else if c.again != nil {
		c.try(c.again)
	}
	c.journal.process.returned(c)
}
