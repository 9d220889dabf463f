// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

const (
	// pollInterval is how often the claim of another run is looked at again.
	pollInterval = 500 * time.Millisecond
	// writeTime is how long it may take to write a claim, that it is being sent, or its outcome.
	writeTime = 2 * opTimeout
	// retryTime is how long an outcome that the store did not take is written again.
	retryTime = time.Hour
)

// Call is one call of the CLI that sends a request for a name, or records one.
type Call struct {
	wanted  Wanted
	journal *Journal
	ctx     context.Context // the CLI's own, without a deadline of the provider
	letExit func()          // called once the outcome is recorded: the process may exit

	record *Record    // as the call has read or written it last; a write that failed may have arrived
	text   store.Text // what the store has, as far as the call knows
	writes []string   // the ids of all its writes: it recognizes one whose response was lost
	taken  int        // how often another run has written first

	stopRetrying func() // ends the attempts to record an outcome

	mu      sync.Mutex
	problem error // why the store does not show what became of the request
}

// Begin starts to follow a call. ctx is the call's context, without a deadline of the provider.
func (j *Journal) Begin(ctx context.Context, w Wanted) *Call {
	return &Call{
		wanted: w, journal: j, ctx: ctx, stopRetrying: func() {},
		record: &Record{Project: w.Project, Name: w.Name}, text: store.Text{Key: key(w.Project, w.Name)},
	}
}

// Look reads the record of the name. While another run's request may still get a response, it waits.
// It returns an error once other runs have written first more than maxConflicts times during this
// call.
func (c *Call) Look(ctx context.Context) (*Record, error) {
	if c.taken > maxConflicts {
		return nil, c.journal.failed("written", errConflicts)
	}
	if c.taken > 1 {
		if err := sleep.For(ctx, rand.N(pollInterval)); err != nil {
			return nil, err
		}
	}
	r, text, err := c.journal.awaitRecord(ctx, c.wanted.Project, c.wanted.Name)
	if err != nil {
		return nil, err
	}
	c.record, c.text = r, text
	_ = c.noteProblem(nil) // the record shows what became of an earlier attempt
	return r, nil
}

// ErrTaken means that the name has a record that this call has not read.
var ErrTaken = errors.New("the name has a record that this run has not read")

// errLate means that another run may soon count the claim as over, and send: this machine slept, or
// the store was slow.
var errLate = errors.New("the request was recorded too long ago")

// Prove makes sure that the store can be relied on, without which nothing must be claimed. It takes
// several requests, so it is called before there is a connection to the service, which waits only
// until the claim is written.
func (c *Call) Prove() error { return c.journal.prove(c.ctx) }

// Claim claims the name for a POST that is about to be sent: it writes the request into the record
// that the call knows, or into a new one. After an error nothing must be sent: the name has another
// record (ErrTaken), or the store failed.
func (c *Call) Claim() error {
	c.letExit = c.journal.process.Hold()
	r := *c.record
	r.Claim = c.journal.newClaim(c.wanted)
	err := c.write(c.ctx, &r)
	switch {
	case errors.Is(err, ErrTaken):
		c.letExit() // nothing was written
	case err != nil:
		c.Withdrawn() // a write that failed may have arrived nevertheless
	}
	return err
}

// newClaim is the request that this process is about to send. In a folder, where a write costs next to
// nothing, it counts as not sent until BeforeBody has recorded that.
func (j *Journal) newClaim(w Wanted) *Entry {
	e := j.newEntry(w.Arguments)
	e.Recipient, e.Prompt, e.Unsent = w.Recipient, Hash(e.ID, w.Prompt), j.store.WritesAreCheap()
	e.Deadline = e.SentAt.Add(3*writeTime + j.RequestTimeout)
	return e
}

// BeforeBody is called just before the body of the POST is sent, and records that if the claim says
// that it is not sent yet. It fails if the claim is no longer there, or if the claim's deadline may
// pass before the response can arrive.
func (c *Call) BeforeBody() error {
	if claim := c.record.Claim; claim.Unsent {
		sending, r := *claim, *c.record
		sending.Unsent = false
		r.Claim = &sending
		if err := c.write(c.ctx, &r); err != nil {
			return err
		}
	}
	last := c.record.Claim.Deadline.Add(-c.journal.RequestTimeout - writeTime)
	// This is by the wall clock, because the monotonic one stops while a machine sleeps.
	if time.Now().Round(0).After(last) {
		return errLate
	}
	return nil
}

// write writes over what the call has read or written.
func (c *Call) write(ctx context.Context, r *Record) error {
	c.stopRetrying()
	r.stamp()
	c.record, c.writes = r, append(c.writes, r.Write)
	c.journal.log(ctx, "recording", r)
	text, err := c.journal.put(ctx, r, c.text, c.writes)
	switch {
	case err == nil:
		c.text = text
	case errors.Is(err, ErrTaken):
		c.taken++
	}
	return err
}

// persist writes an outcome, also after the call was cancelled. If the store does not take it, it is
// written again in the background, for up to retryTime. Until then other runs wait for the
// deadline of the claim, and this process does not exit, as long as the caller of Drain waits.
func (c *Call) persist(r *Record) {
	ctx, letExit := context.WithoutCancel(c.ctx), c.letExit
	if !isTransient(c.noteProblem(c.write(ctx, r))) {
		letExit()
		return
	}
	ctx, stop := context.WithTimeout(ctx, retryTime)
	done, text := make(chan struct{}), c.text
	c.stopRetrying = func() { stop(); <-done }
	go func() {
		defer close(done)
		defer letExit()
		defer stop()
		pause := time.Second
		for sleep.For(ctx, pause) == nil {
			if _, err := c.journal.put(ctx, r, text, c.writes); !isTransient(c.noteProblem(err)) {
				return
			}
			pause = min(2*pause, time.Minute)
		}
	}()
}

// noteProblem notes why the store does not show the outcome, or nil if it does, and returns that.
func (c *Call) noteProblem(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problem = err
	return err
}

// isTransient reports whether a write that failed with the error may succeed later. What another run has
// written stays.
func isTransient(err error) bool { return err != nil && !errors.Is(err, ErrTaken) }

// Accepted records the job that the POST started or reached.
func (c *Call) Accepted(jobID string) {
	r := *c.record
	r.setLast(r.Claim, jobID)
	c.persist(&r)
}

// Unknown records that the request was sent and its outcome will stay unknown, so that the next run does
// not wait for the deadline.
func (c *Call) Unknown() {
	c.persist(c.record.withUnknown())
}

// Withdrawn puts back what was there before a POST that had no effect: it was not sent, or refused.
func (c *Call) Withdrawn() {
	r := *c.record
	r.Claim = nil
	c.persist(&r)
}

// Adopt records that another object holds the job from now on. The one that had it before, for example
// at another address, can then no longer free its name.
func (c *Call) Adopt() error {
	r := *c.record
	r.Holder, r.Fate, r.FateBy = newID(), "", "" // a Delete of this run may have left the job
	return c.write(context.WithoutCancel(c.ctx), &r)
}

// Assign records that the name has the wanted message's job, which a person has imported. It sends
// nothing. If the outcome of a create was unknown, that settles it; if the name had another job,
// that one is no longer recorded.
func (c *Call) Assign(ctx context.Context) error {
	w := c.wanted
	return c.journal.edit(ctx, w.Project, w.Name, func(r *Record) (isChanged bool) {
		entry := c.journal.newClaim(w)
		entry.Recipient = "" // recorded as a create: after a message, whoever adopts the job would distrust a final status
		r.setLast(entry, w.Recipient)
		r.Holder = newID() // an object at another address, which this apply destroys, must not free the name
		c.record = r
		return true
	})
}

// Holder is that of the record which the call has read or written. The private state keeps it, for
// Delete.
func (c *Call) Holder() string { return c.record.Holder }

// Record returns the record of the name, as the call has read or written it last.
func (c *Call) Record() *Record { return c.record }

// Problem returns why the store does not show, so far, what became of the request.
func (c *Call) Problem() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.problem
}
