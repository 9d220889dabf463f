// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
}

// Call follows one call of the CLI that sends a request, if no other run has sent it.
type Call struct {
	request Request
	journal *Journal
	ctx     context.Context // the CLI's own, without a deadline of the provider
	release func()          // the process need not wait for an outcome

	name     store.Name // of the entry of the last attempt
	entry    store.Entry
	recorded bool           // the entry is in the store
	took     time.Duration  // of the last attempt to send
	found    []*Earlier     // with the last one that Earlier returned
	settles  []string       // names of entries that the outcome makes superfluous once it is in the state
	again    []func() error // what failed, to be tried once more when the call ends
	problem  error          // why the store does not show what became of the request
}

// Begin starts to follow a call. ctx is the call's context, without a deadline of the
// provider. Defer End.
func (j *Journal) Begin(ctx context.Context, r Request) *Call {
	return &Call{request: r, journal: j, ctx: ctx, release: func() {}}
}

// record names a new entry of the call and writes it.
func (c *Call) record(ctx context.Context, e store.Entry) error {
	e.Project, e.Sender = c.request.ProjectID, c.journal.process.Self
	c.name, c.entry = store.NewName(c.request.Key, c.journal.process.Run), e
	c.recorded = false
	c.journal.settle(c.name.ID, false)
	return c.write(ctx)
}

// try makes one access to the store, which outlives the call, and notes what failed.
func (c *Call) try(access func(context.Context) error) {
	try := func() error { return access(context.WithoutCancel(c.ctx)) }
	if c.problem = try(); c.problem != nil {
		c.again = append(c.again, try)
	}
}

func (c *Call) write(ctx context.Context) error {
	err := c.journal.write(ctx, c.name, &c.entry)
	c.recorded = c.recorded || err == nil && c.journal.store != store.Discard()
	return err
}

// ErrEarlier means that another run has recorded an equal request.
var ErrEarlier = errors.New("another run has recorded an equal request")

// Sending records that a POST is about to be sent, and then looks whether another run has
// recorded an equal one. After an error nothing must be sent: there is one (ErrEarlier), a
// named store failed, or the CLI has cancelled the call.
//
// It keeps two runs from sending equal requests: each writes its entry before it looks, and
// entries stay at least until a later run has read the outcome in the state. So whichever
// run writes last sees the other's entry, withdraws its own, and deals with the other: it
// takes the job over, waits, or is blocked. Both may see each other and withdraw, but they
// cannot both see nothing. An entry that a call has dealt with no longer stops it: its
// job failed or is in the state, or a person has given it up, so that the request is due
// again. Nothing here depends on a clock, on the end of a process, or on what was read before.
func (c *Call) Sending() error {
	j := c.journal
	defer func(began time.Time) { c.took = time.Since(began) }(time.Now())
	c.release()
	c.release = j.process.Hold()
	c.problem = c.record(c.ctx, store.Entry{JobID: c.request.JobID, SentAt: time.Now().UTC(), Wait: j.waitFor().Milliseconds()})
	others, err := j.list(c.ctx, c.request.Key.Family(), false)
	c.problem = cmp.Or(c.problem, err)
	if err = c.problem; !j.Named() {
		err = nil
	}
	var messages []string // earlier ones to the job: the state will show a later one
	for _, name := range others {
		if name.Key == c.request.Key {
			err = ErrEarlier
		} else {
			messages = append(messages, name.String())
		}
	}
	if c.ctx.Err() != nil {
		err = context.Cause(c.ctx)
	}
	if err != nil {
		j.log(c.ctx, "withdrawn: "+err.Error(), c.name, "")
		c.Withdrawn() // a write that failed may have arrived nevertheless
		return err
	}
	c.entry.Settles = messages
	c.settles = append(c.settles, messages...)
	return nil
}

// waitFor is how long after it began to record a request a run can record the response.
func (j *Journal) waitFor() time.Duration {
	const write, list, turn, record = opTimeout, opTimeout, opTimeout, opTimeout
	return write + list + turn + j.RequestTimeout + record
}

// Accepted records the job that the POST started or reached.
func (c *Call) Accepted(jobID string) {
	c.entry.JobID, c.entry.Accepted, c.entry.Wait = jobID, true, 0
	c.journal.settle(jobID, false) // another run may take it over meanwhile
	c.try(c.write)
	c.release()
}

// Unknown records that no response can arrive any more, so that the next run does not wait for one.
func (c *Call) Unknown() {
	c.entry.Wait = 0
	if c.problem == nil {
		c.try(c.write)
	}
	c.release()
}

// Withdrawn records that the POST had no effect: it was not sent, or refused.
func (c *Call) Withdrawn() {
	defer c.release()
	name := c.name
	if name.ID == "" {
		return
	}
	c.name, c.recorded = store.Name{}, false
	c.try(func(ctx context.Context) error { return c.journal.remove(ctx, name) })
	if c.problem != nil {
		c.settles = append(c.settles, name.String())
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
		names, err := j.list(ctx, string(c.request.Key), false)
		found, readErr := j.read(ctx, names)
		if err = errors.Join(err, readErr); err != nil && j.Named() {
			return nil, err
		}
		c.found = found
		var pending *Earlier
		for _, e := range found {
			if e.pending() && e.ID != waitedFor {
				began, waitedFor = time.Now(), e.ID
			}
			if e.pending() && time.Since(began) < e.MaxWait() {
				pending = e
				break
			}
			if j.take(e.ID, e.startedJob()) {
				j.log(ctx, "found", e.Name, e.JobID)
				e.Unknown = e.JobID == ""
				return e, nil
			}
		}
		if pending == nil {
			c.Settle(nil)
			return nil, nil
		}
		j.log(ctx, "waiting for its response", pending.Name, "")
	}
}

// pause waits for a random time that is long in a slow store: two calls that have withdrawn
// because of each other must not meet again.
func (c *Call) pause(ctx context.Context) error { return sleep.For(ctx, rand.N(pollInterval+4*c.took)) }

// Settle lists what the outcome makes superfluous once it is in the state: an earlier
// request that the call has dealt with, all entries that name its job or one in the prior state,
// and all equal messages, because the state shows that the prompt was sent.
func (c *Call) Settle(dealt *Earlier) {
	for _, e := range c.found {
		_, inState := c.journal.isSettled(e.JobID)
		ofJob := dealt != nil && e.JobID != "" && e.JobID == dealt.JobID
		if e == dealt || ofJob || inState || dealt != nil && !c.request.Key.IsCreate() {
			c.settles = append(append(c.settles, e.String()), e.Settles...)
		}
	}
}

// Take makes an accepted request of another run one of this run, or returns false if an alias,
// another process of this run, has it: two resources must not share a job. After an error
// it is not known which of them gets it.
//
// It writes a claim, looks, and confirms the claim if it sees no other. So of two aliases that
// claim the request, the one that writes last sees the other's claim and cannot confirm its own.
// It gives the request up only if the other's is confirmed, or else both could. The old entry
// stays until a state shows the new one, because whoever looks meanwhile must find one.
func (c *Call) Take(e *Earlier) (taken bool, _ error) {
	j, ctx := c.journal, context.WithoutCancel(c.ctx)
	for began := time.Now(); ; {
		claims, err := j.claims(ctx, c.request.Key, e.JobID)
		switch {
		case err != nil:
		case slices.ContainsFunc(claims, (*Earlier).confirmed):
			c.Withdrawn()
			return false, nil
		case len(claims) > 0:
			c.Withdrawn()
			if err = c.pause(c.ctx); err == nil && time.Since(began) > j.waitFor() {
				err = fmt.Errorf("another provider alias has begun to take over job %q, and has not finished: %s", e.JobID, claims[0].Where)
			}
		case c.name.ID != "":
			c.entry.Wait = 0
			if c.problem = c.write(ctx); c.problem == nil || !j.Named() {
				j.log(ctx, "taken over", e.Name, e.JobID)
				c.Settle(e)
				return true, nil
			}
			err = c.problem
		default:
			err = c.record(ctx, store.Entry{JobID: e.JobID, Accepted: true, SentAt: time.Now().UTC(), Settles: e.Settles, Wait: 1})
			if !j.Named() {
				err = nil
			}
		}
		if err != nil {
			c.Withdrawn()
			return false, err
		}
	}
}

// claims returns the entries that other processes of this run have written about a job. In the
// default folder, one that cannot be read is none.
func (j *Journal) claims(ctx context.Context, key Key, jobID string) ([]*Earlier, error) {
	names, err := j.list(ctx, string(key)+"-"+string(j.process.Run), true)
	found, readErr := j.read(ctx, names)
	if err = errors.Join(err, readErr); !j.Named() {
		err = nil
	}
	return slices.DeleteFunc(found, func(e *Earlier) bool { return e.JobID != jobID }), err
}

// Problem returns why the store does not show what became of the request.
func (c *Call) Problem() error { return c.problem }

// Recorded describes the call's own request, or is nil without a record of it.
func (c *Call) Recorded() *Earlier {
	if !c.recorded {
		return nil
	}
	return c.journal.describe(c.name, c.entry)
}

// Ref returns what the state must say once it shows the outcome, with what it says already.
func (c *Call) Ref(r Ref) Ref {
	names := slices.Concat(r.Entries, c.settles)
	if c.name.ID != "" && (c.recorded || c.problem != nil) { // a write that failed may have arrived nevertheless
		names = append(names, c.name.String())
	}
	slices.Sort(names)
	return Ref{Run: c.journal.process.Run, Entries: slices.Compact(names)}
}

// End ends the call.
func (c *Call) End() {
	for _, again := range c.again {
		c.problem = again()
	}
	c.release()
}
