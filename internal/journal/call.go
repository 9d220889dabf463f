// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"errors"
	"time"
)

// retryPause is the pause before a response is recorded again.
const retryPause = time.Second

// Call follows one call of the CLI that may POST. A nil *Call records nothing.
type Call struct {
	journal    *Journal
	ctx        context.Context // the CLI's own: when it ends before the call does, the CLI is gone
	entry      *entry
	sentAt     time.Time // wall clock, which keeps running while the machine sleeps
	unknown    bool      // the outcome of the POST
	unrecorded error     // of the response, or of a removal
}

// Ref names an entry in the private state of a resource, where every byte is
// stored once for each resource.
type Ref struct {
	ID string `json:"i"`
	At int64  `json:"t"` // when it was sent, in ms by the store's clock
}

func (e *entry) ref() Ref { return Ref{ID: e.id, At: e.sent().UnixMilli()} }

// Begin starts to follow a call that may send the request of key. jobID is empty
// for a create. ctx is the call's context, without a deadline of the provider.
func (j *Journal) Begin(ctx context.Context, key Key, jobID string) *Call {
	if j == nil {
		return nil
	}
	return &Call{journal: j, ctx: ctx, entry: &entry{
		Key: key, JobID: jobID, Run: j.process.run, Sender: j.process.self, WaitFor: j.waitFor.Milliseconds(), id: newID(),
	}}
}

// bounded is a context for one access to the store. It outlives the call.
func (c *Call) bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(c.ctx), opTimeout)
}

var errSlow = errors.New("it took longer than 10 seconds")

// Sending records that a POST is about to be sent. After an error nothing is
// recorded and nothing must be sent: the record could not be written, or the CLI is
// gone. In that case the next run may already have looked for the record, and would
// not know of the POST.
func (c *Call) Sending() error {
	if c == nil {
		return nil
	}
	j := c.journal
	j.process.posting(c)
	ctx, cancel := context.WithTimeout(c.ctx, opTimeout)
	defer cancel()
	c.sentAt = time.Now().Round(0)
	err := j.store.write(ctx, c.entry)
	if err == nil && time.Since(c.sentAt) > opTimeout {
		err = errSlow
	}
	switch {
	case j.process.CLIEnded():
		err = errNoCLI
	case c.ctx.Err() != nil:
		err = context.Cause(c.ctx)
	default:
		if err = j.failed("written", err); err == nil {
			return nil
		}
	}
	c.Withdrawn() // a write that failed may have arrived nevertheless
	return err
}

// Answered records the job that the POST started or reached. A failure is retried
// until the process ends: see Unrecorded.
func (c *Call) Answered(jobID string) {
	if c == nil || c.sentAt.IsZero() { // nothing was sent by this call
		return
	}
	j, e, pending := c.journal, c.entry, *c.entry
	c.unknown = false
	if e.written.IsZero() { // the default folder could not be written
		e.written = j.store.now()
	}
	e.JobID, e.Answered, e.SentAt, e.WaitFor = jobID, true, e.sent().UnixMilli(), 0
	err := c.record(e)
	j.remember(e)
	if c.unrecorded = j.failed("written", err); err != nil {
		response := *e
		j.process.retries.Go(func() { c.retry(&response, &pending) })
	}
}

// record stores the response. Close to the deadline of the pending entry, another
// run may have claimed and removed it: then the response gets a new entry.
func (c *Call) record(e *entry) error {
	ctx, cancel := c.bounded()
	defer cancel()
	if time.Since(c.sentAt) > c.journal.waitFor-opTimeout {
		if fresh, err := c.journal.store.read(ctx, e); err != nil || fresh == nil || fresh.owner() != e.owner() {
			e.id = newID()
		}
	}
	return c.journal.store.write(ctx, e)
}

// retry retries until a response is recorded. If the process ends first, it removes
// the pending entry, because the state has the job. After a disturbance the state
// may lack it: the entry stays, and the next run reports the request.
func (c *Call) retry(e, pending *entry) {
	j := c.journal
	for {
		select {
		case <-j.process.ended:
			if j.process.clean {
				ctx, cancel := c.bounded()
				defer cancel()
				_ = j.store.remove(ctx, pending)
			}
			return
		case <-time.After(retryPause):
		}
		if c.record(e) == nil {
			return
		}
	}
}

// Withdrawn records that the POST had no effect: it was not sent, or refused.
func (c *Call) Withdrawn() {
	if c == nil {
		return
	}
	c.remove()
	c.journal.process.withdrawn(c)
}

// Unknown records that the outcome of the POST is unknown.
func (c *Call) Unknown() {
	if c != nil {
		c.unknown = true
	}
}

func (c *Call) remove() {
	c.unrecorded = c.journal.remove(context.WithoutCancel(c.ctx), c.entry)
}

// Unrecorded returns the error if a named store could not record the response, or
// could not remove the record of a request without effect.
func (c *Call) Unrecorded() error {
	if c == nil {
		return nil
	}
	return c.unrecorded
}

// Ref returns the reference to the call's entry.
func (c *Call) Ref() Ref {
	if c == nil || c.sentAt.IsZero() {
		return Ref{}
	}
	return c.entry.ref()
}

// End records that the call returns to the CLI. An unknown outcome is reported by
// this call if the CLI is listening, otherwise by the next run, which then need not
// wait for a response. Defer it.
func (c *Call) End() {
	if c == nil {
		return
	}
	p := c.journal.process
	switch {
	case !c.unknown:
	case c.ctx.Err() == nil && !p.stopping.Load() && !p.CLIEnded():
		c.remove()
	default:
		c.entry.WaitFor, c.entry.SentAt = 0, c.entry.sent().UnixMilli()
		ctx, cancel := c.bounded()
		defer cancel()
		_ = c.journal.failed("written", c.journal.store.write(ctx, c.entry)) // at worst the next run waits longer
	}
	p.returned(c)
}
