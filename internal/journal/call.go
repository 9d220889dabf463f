// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

// pollInterval is how often, at most, a request of another run is looked for again.
const pollInterval = 500 * time.Millisecond

// Request is what an entry says about a request.
type Request struct {
	Key       Key
	ProjectID string
	JobID     string // the recipient of a message; empty for a create
	JobName   string // of a create; may be empty
	Prompt    string // its hash, if the create has a name, because the key then does not depend on the prompt
}

// Call follows one call of the CLI that sends a request, if no other run has sent it.
type Call struct {
	request Request
	journal *Journal
	ctx     context.Context // the CLI's own, without a deadline of the provider
	release func()          // the process need not wait for an outcome

	name        store.Name     // of the entry of the last attempt; none once that is withdrawn
	entry       store.Entry    // what it says
	took        time.Duration  // to write it and to look for others
	equal       []*Earlier     // as Earlier has found them
	superfluous []string       // ids of entries that are, once the state shows the outcome
	retries     []func() error // what failed, to be tried once more when the call ends
	problem     error          // why the store does not show what became of the request
}

// Begin starts to follow a call. ctx is the call's context, without a deadline of the
// provider. Defer End.
func (j *Journal) Begin(ctx context.Context, r Request) *Call {
	return &Call{request: r, journal: j, ctx: ctx, release: func() {}}
}

// ErrEarlier means that another run has recorded an equal request.
var ErrEarlier = errors.New("another run has recorded an equal request")

// Sending records that a POST is about to be sent. After an error nothing must be sent: another
// run has recorded an equal request (ErrEarlier), the store failed, or the CLI has cancelled the call.
//
// Each run writes its entry before it looks, and entries stay at least until a later run has read
// the outcome in the state. So of two runs, the one that writes last sees the other's entry,
// withdraws its own, and deals with the other. Both may see each other and withdraw, but they
// cannot both see nothing. An entry that a call has dealt with stops it no longer. Nothing here
// depends on a clock, on the end of a process, or on what was read before.
func (c *Call) Sending() error {
	began := time.Now()
	c.release()
	c.release = c.journal.process.Hold()
	err := c.writePending()
	var messages []string // earlier ones to the job: the state will show a later one
	if err == nil {
		messages, err = c.lookForOthers()
	}
	c.took = time.Since(began)
	if c.ctx.Err() != nil {
		err = context.Cause(c.ctx)
	}
	if err != nil {
		c.journal.log(c.ctx, "withdrawn: "+err.Error(), c.name, "")
		c.Withdrawn() // a write that failed may have arrived nevertheless
		return err
	}
	c.entry.Before = messages
	c.superfluous = append(c.superfluous, messages...)
	return nil
}

// Sent records that the POST may have been sent from now on. It fails if the entry was removed meanwhile.
func (c *Call) Sent() error { return c.journal.markSent(c.ctx, c.name) }

func (c *Call) writePending() error {
	const write, list, mark, record = opTimeout, opTimeout, opTimeout, opTimeout
	now := time.Now().UTC()
	return c.record(c.ctx, store.Entry{
		Status: store.Pending, JobID: c.request.JobID, SentAt: now, Marked: true,
		Deadline: now.Add(write + list + mark + c.journal.RequestTimeout + record),
	})
}

// lookForOthers fails if another run has recorded an equal request. It returns the ids of other messages to the job.
func (c *Call) lookForOthers() (messages []string, _ error) {
	all, err := c.journal.listAll(c.ctx, c.request.Key.Family()+"-")
	if err == nil && c.journal.Keeps() && !slices.Contains(all, c.name) { // nor would it show those of others
		return nil, c.journal.failed("listed", errors.New("the listing lacks an entry that was just written"))
	}
	for _, name := range c.journal.ofOthers(all) {
		if name.Key == c.request.Key {
			return nil, ErrEarlier
		}
		if !name.Key.IsCreate() { // else it has other triggers
			messages = append(messages, name.ID)
		}
	}
	return messages, err
}

// record names a new entry of the call and writes it.
func (c *Call) record(ctx context.Context, e store.Entry) error {
	e.Project, e.JobName, e.Prompt, e.Sender = c.request.ProjectID, c.request.JobName, c.request.Prompt, c.journal.process.Self
	c.name, c.entry = store.NewName(c.request.Key, c.journal.process.Run), e
	return c.write(ctx)
}

func (c *Call) write(ctx context.Context) error {
	c.journal.log(ctx, "recording: "+string(c.entry.Status), c.name, c.entry.JobID)
	return c.journal.write(ctx, c.name, &c.entry)
}

// try makes one access to the store, which outlives the call, and notes what failed.
func (c *Call) try(access func(context.Context) error) {
	try := func() error { return access(context.WithoutCancel(c.ctx)) }
	if c.problem = try(); c.problem != nil {
		c.retries = append(c.retries, try)
	}
}

// Accepted records the job that the POST started or reached.
func (c *Call) Accepted(jobID string) {
	c.entry.Status, c.entry.JobID, c.entry.Deadline = store.Accepted, jobID, time.Time{}
	if c.request.Key.IsCreate() {
		c.journal.Taken(jobID) // another run may take it over meanwhile
	}
	c.try(c.write)
	c.release()
}

// Unknown records that no response can arrive any more, so that the next run does not wait for one.
func (c *Call) Unknown() {
	c.entry.Status, c.entry.Deadline = store.Unknown, time.Time{}
	c.try(c.write)
	c.release()
}

// Withdrawn removes the entry of a POST that had no effect: it was not sent, or refused.
func (c *Call) Withdrawn() {
	defer c.release()
	name := c.name
	if name.ID == "" {
		return
	}
	c.name = store.Name{}
	c.journal.log(c.ctx, "removing: the request had no effect", name, "")
	c.try(func(ctx context.Context) error { return c.journal.remove(ctx, name) })
	if c.problem != nil {
		c.superfluous = append(c.superfluous, name.ID)
	}
}

// Earlier returns an equal request of another run, or nil: then the request can be sent. It
// waits until the other one has a response or none can arrive. No other call of this
// process gets the same one.
func (c *Call) Earlier(ctx context.Context) (*Earlier, error) {
	j := c.journal
	began, waitedFor := time.Now(), ""
	for {
		if err := c.pause(ctx); err != nil {
			return nil, err
		}
		names, err := j.list(ctx, string(c.request.Key)+"-")
		if err == nil {
			c.equal, err = j.read(ctx, names)
		}
		if err == nil {
			c.equal, err = j.removeUnsent(ctx, c.equal)
		}
		if err != nil {
			return nil, err
		}
		var pending *Earlier
		for _, e := range c.equal {
			if e.Status == store.Pending && e.ID != waitedFor {
				began, waitedFor = time.Now(), e.ID
			}
			if e.Status == store.Pending && time.Since(began) < e.Deadline.Sub(e.SentAt) { // its clock may be ahead
				pending = e
				break
			}
			if j.take(e.ID, e.startedJob()) {
				if e.Status == store.Pending {
					e.Status = store.Unknown
				}
				j.log(ctx, "found: "+string(e.Status), e.Name, e.JobID)
				return e, nil
			}
		}
		if pending == nil {
			c.Supersede(nil)
			return nil, nil
		}
		j.log(ctx, "waiting for its response", pending.Name, "")
	}
}

// pause waits for a random time that is long in a slow store: two calls that have withdrawn
// because of each other must not meet again.
func (c *Call) pause(ctx context.Context) error { return sleep.For(ctx, rand.N(pollInterval+4*c.took)) }

// Supersede lists what is superfluous once the state shows the outcome: the earlier request that
// the call has dealt with (nil: none), all creates that name its job or one in the prior state, and all
// equal messages, because the state shows that the prompt was sent.
func (c *Call) Supersede(earlier *Earlier) {
	for _, e := range c.equal {
		isOfJob := earlier != nil && e.JobID != "" && e.JobID == earlier.JobID
		if e == earlier || isOfJob || c.journal.IsStored(e.startedJob()) || earlier != nil && !c.request.Key.IsCreate() {
			c.superfluous = append(append(c.superfluous, e.ID), e.Before...)
		}
	}
}

// Take records that this run takes over an accepted request of another one. The old entry stays
// until a state shows the outcome, because whoever looks meanwhile must find one.
func (c *Call) Take(e *Earlier) error {
	err := c.record(context.WithoutCancel(c.ctx), store.Entry{
		Status: store.Accepted, JobID: e.JobID, SentAt: time.Now().UTC(), Before: e.Before,
	})
	if err != nil {
		c.Withdrawn()
		return err
	}
	c.journal.log(c.ctx, "took over", e.Name, e.JobID)
	c.Supersede(e)
	return nil
}

// IsEqual reports whether a request that has the same key has the same prompt, too.
func (c *Call) IsEqual(e *Earlier) bool { return e.Prompt == c.request.Prompt }

// GiveUp removes a request that a person has given up, and those that have taken its job over.
func (c *Call) GiveUp(given *Earlier) (failed error) {
	for _, e := range c.equal {
		if e == given || e.JobID != "" && e.JobID == given.JobID {
			c.journal.log(c.ctx, "removing: it was given up", e.Name, e.JobID)
			failed = errors.Join(failed, c.journal.remove(context.WithoutCancel(c.ctx), e.Name))
		}
	}
	return failed
}

// Problem returns why the store does not show what became of the request.
func (c *Call) Problem() error { return c.problem }

// Recorded describes the call's own request, or is nil without a record of it.
func (c *Call) Recorded() *Earlier {
	if c.name.ID == "" || !c.journal.Keeps() {
		return nil
	}
	own := &Earlier{Name: c.name, Entry: c.entry, Where: c.journal.store.Where(c.name)}
	if own.Status != store.Accepted {
		own.JobID = ""
	}
	return own
}

// Ref returns what the state must say once it shows the outcome, with what it says already.
func (c *Call) Ref(r Ref) Ref {
	if !c.journal.Keeps() {
		return r
	}
	ids := slices.Concat(r.Entries, c.superfluous)
	if c.name.ID != "" {
		ids = append(ids, c.name.ID)
	}
	slices.Sort(ids)
	return Ref{Run: c.journal.process.Run, Entries: slices.Compact(ids), Place: c.journal.placeID()}
}

// End ends the call.
func (c *Call) End() {
	for _, retry := range c.retries {
		c.problem = retry()
	}
	c.release()
}
