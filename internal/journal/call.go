// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

const (
	// pollInterval is how often the claim of another run is looked at again.
	pollInterval = 500 * time.Millisecond
	// longestRequest is how long another run may wait for a response at most: its request timeout is
	// not known here.
	longestRequest = 10 * time.Minute
	// writeTime is how long it may take to write a claim, or to mark it.
	writeTime = 2 * opTimeout
	// outcomeTime is how long recording an outcome may take before the deadline of its claim.
	outcomeTime = 2 * opTimeout
	// retryLimit is how long an outcome that the store did not take is written again.
	retryLimit = time.Hour
)

// Call is one call of the CLI that sends a request for a name, or records one: what it has read and
// written of the name's record.
type Call struct {
	wanted  Wanted
	journal *Journal
	ctx     context.Context // the CLI's own, without a deadline of the provider
	letExit func()          // called once the outcome is recorded: the process may exit

	looked  *Record    // what Look has found, which the claim replaces
	text    store.Text // what the store has, as far as this call has read or written it
	written *Record    // what the call has written last, since it looked
	writes  []string   // the ids of all its writes: it recognizes one whose response was lost
	taken   int        // how often another run has written first

	stopKeeping func() // ends the attempts to record an outcome

	mu      sync.Mutex
	problem error // why the store does not show what became of the request
}

// Begin starts to follow a call. ctx is the call's context, without a deadline of the provider.
func (j *Journal) Begin(ctx context.Context, w Wanted) *Call {
	free, text := &Record{Project: w.Project, Name: w.Name}, store.Text{Key: key(w.Project, w.Name)}
	return &Call{wanted: w, journal: j, ctx: ctx, letExit: func() {}, stopKeeping: func() {}, looked: free, text: text}
}

// Look reads the record of the name and decides what the request has to do. While another run's
// request may still get a response, it waits. It returns an error once other runs have written
// first more than maxConflicts times during this call.
func (c *Call) Look(ctx context.Context) (Verdict, *Record, error) {
	if c.taken > maxConflicts {
		return 0, nil, c.journal.failed("written", errConflicts)
	}
	if c.taken > 1 {
		if err := sleep.For(ctx, rand.N(pollInterval)); err != nil {
			return 0, nil, err
		}
	}
	r, text, err := c.journal.settled(ctx, c.wanted.Project, c.wanted.Name, func() error { return sleep.For(ctx, pollInterval) })
	if err != nil {
		return 0, nil, err
	}
	c.looked, c.text, c.written = r, text, nil
	return c.journal.judge(r, c.wanted), r, nil
}

// ErrTaken means that the name has a record that this call has not looked at.
var ErrTaken = errors.New("the name has a record that this run has not read")

// errLate means that another run may soon count the claim as over, and send: this machine slept, or
// the store was slow.
var errLate = errors.New("the request was recorded too long ago")

// Prove makes sure that the store can be relied on. It takes several requests, so it is called
// before there is a connection to the service, which waits only until the claim is written.
func (c *Call) Prove() error { return c.journal.prove(c.ctx) }

// Claim claims the name for a POST that is about to be sent: it writes the request into the record
// that Look has read, or into a new one. After an error nothing must be sent: the name has another
// record (ErrTaken), the store failed, or the CLI has cancelled the call.
func (c *Call) Claim() error {
	letExit := c.letExit
	c.letExit = c.journal.process.Hold()
	letExit()
	err := c.journal.prove(c.ctx)
	if err == nil {
		err = c.write(c.ctx, c.claimed(c.journal.store.IsLocal()))
	}
	if err == nil && c.ctx.Err() != nil {
		err = context.Cause(c.ctx)
	}
	switch {
	case errors.Is(err, ErrTaken):
		c.letExit() // nothing was written
	case err != nil:
		c.Withdrawn() // a write that failed may have arrived nevertheless
	}
	return err
}

// claimed is the record that Look has read, with the claim of this call. isUnsent: BeforeBody will record
// it once more.
func (c *Call) claimed(isUnsent bool) *Record {
	request := c.journal.request(c.wanted.Arguments)
	request.IsMessage, request.JobID, request.Unsent = c.wanted.JobID != "", c.wanted.JobID, isUnsent
	request.Prompt = Hash(request.ID, c.wanted.Prompt)
	request.Deadline = request.SentAt.Add(2*writeTime + c.journal.RequestTimeout + outcomeTime)
	r := *c.looked
	r.Claim = request
	return &r
}

// BeforeBody is called just before the body of the POST is sent. In a folder, where a write costs next to
// nothing, it records that; in a bucket, the claim says so already. It fails if the claim is no
// longer there, or if the claim's deadline may pass before the response can arrive.
func (c *Call) BeforeBody() error {
	if claim := c.written.Claim; claim.Unsent {
		request, r := *claim, *c.written
		request.Unsent = false
		r.Claim = &request
		if err := c.write(c.ctx, &r); err != nil {
			return err
		}
	}
	last := c.written.Claim.Deadline.Add(-c.journal.RequestTimeout - outcomeTime)
	// This is by the wall clock, because the monotonic one stops while a machine sleeps.
	if time.Now().Round(0).After(last) {
		return errLate
	}
	return nil
}

// write writes over what the call has read or written.
func (c *Call) write(ctx context.Context, r *Record) error {
	c.stopKeeping()
	c.journal.stamp(r)
	c.written, c.writes = r, append(c.writes, r.Write)
	c.journal.log(ctx, "recording", r)
	text, err := c.offer(ctx, r, c.text)
	switch {
	case err == nil:
		c.text = text
	case errors.Is(err, ErrTaken):
		c.taken++
	}
	return err
}

// offer is one attempt to write a record. If an earlier write of this call is in the way, because
// it arrived while its response was lost, it writes over that.
func (c *Call) offer(ctx context.Context, r *Record, over store.Text) (store.Text, error) {
	there, now, err := c.journal.put(ctx, r, over)
	for range maxConflicts {
		if !errors.Is(err, ErrTaken) || now == nil || !slices.Contains(c.writes, now.Write) {
			break
		}
		there, now, err = c.journal.put(ctx, r, there)
	}
	return there, err
}

// keep writes an outcome, also after the call was cancelled. If the store does not take it, it is
// written again in the background, for up to retryLimit. Until then other runs wait for the
// deadline of the claim, and this process does not exit, as long as the caller of Drain waits.
func (c *Call) keep(r *Record) {
	ctx, letExit := context.WithoutCancel(c.ctx), c.letExit
	if !c.mustRetry(c.write(ctx, r)) {
		letExit()
		return
	}
	ctx, stop := context.WithTimeout(ctx, retryLimit)
	done, over := make(chan struct{}), c.text
	c.stopKeeping = func() { stop(); <-done }
	go func() {
		defer close(done)
		defer letExit()
		defer stop()
		pause := time.Second
		for sleep.For(ctx, pause) == nil {
			if _, err := c.offer(ctx, r, over); !c.mustRetry(err) {
				return
			}
			pause = min(2*pause, time.Minute)
		}
	}()
}

// mustRetry notes why the store does not show the outcome. It reports whether another attempt makes
// sense.
func (c *Call) mustRetry(err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problem = err
	return err != nil && !errors.Is(err, ErrTaken)
}

// Accepted records the job that the POST started or reached.
func (c *Call) Accepted(jobID string) {
	r := *c.written
	r.setLast(r.Claim, jobID)
	c.keep(&r)
}

// Unknown records that no response can arrive any more, so that the next run does not wait for one.
func (c *Call) Unknown() {
	c.keep(c.written.withUnknown())
}

// Withdrawn puts back what was there before a POST that had no effect: it was not sent, or refused.
func (c *Call) Withdrawn() {
	if c.written == nil {
		c.letExit()
		return
	}
	r := *c.looked
	c.keep(&r)
}

// Adopt records that another object holds the job from now on. The one that had it before, for example
// at another address, can then no longer free its name.
func (c *Call) Adopt() error {
	r := *c.looked
	r.Holder, r.Released, r.Left = newID(), false, "" // a Delete of this run may have left the job
	return c.write(context.WithoutCancel(c.ctx), &r)
}

// Assign records that the name has the wanted message's job, which a person has imported. It sends
// nothing. If the outcome of a create was unknown, that settles it; if the name had another job,
// that one is no longer recorded.
func (c *Call) Assign(ctx context.Context) error {
	for {
		if _, _, err := c.Look(ctx); err != nil {
			return err
		}
		r := c.claimed(false)
		r.setLast(r.Claim, c.wanted.JobID)
		// It counts as a create: a message would make whoever adopts the job wait for its effect. With a
		// new Holder, an object at another address, which this apply destroys, does not release the
		// name.
		r.Last.IsMessage, r.Holder = false, newID()
		//nolint:contextcheck // the CLI's own, without our deadline
		if err := c.write(context.WithoutCancel(c.ctx), r); !errors.Is(err, ErrTaken) {
			return err
		}
	}
}

// Holder is that of the record which the call has read or written. The private state keeps it, for
// Delete.
func (c *Call) Holder() string {
	if c.written == nil {
		return c.looked.Holder
	}
	return c.written.Holder
}

// Written returns the record of the call's own request, or nil without one.
func (c *Call) Written() *Record { return c.written }

// Problem returns why the store does not show, so far, what became of the request.
func (c *Call) Problem() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.problem
}
