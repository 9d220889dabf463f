// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

// Orphan is a request of an earlier run whose outcome is not in the state.
type Orphan struct {
	JobID  string // empty: the outcome is unknown
	SentAt time.Time
	Age    time.Duration // since it was sent, by the store's clock
	Ref    Ref

	entry *entry
}

func (j *Journal) newOrphan(e *entry) *Orphan {
	o := &Orphan{SentAt: e.sent(), Age: j.store.now().Sub(e.sent()), Ref: e.ref(), entry: e}
	if e.Answered {
		o.JobID = e.JobID
	}
	return o
}

// wanted reports whether an entry of an earlier run has the key. An entry of this
// run never matches, whichever of its processes sent it.
func (j *Journal) wanted(e *entry, key Key) bool {
	return e.Key == key && e.owner() != j.process.run && !j.busy[e.id]
}

// Announce returns the requests of which an apply will take over one instead of
// sending its own, those with a job first. It returns them as often as a plan asks: a
// host may plan a resource more than once.
func (j *Journal) Announce(ctx context.Context, key Key) (found []*Orphan, _ error) {
	if j == nil {
		return nil, nil
	}
	if err := j.ready(ctx); err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.matching(func(e *entry) bool { return j.wanted(e, key) }) {
		found = append(found, j.newOrphan(e))
	}
	return found, nil
}

// Blocked returns an error if a request cannot be sent in this process: the state
// shows the outcome of an equal one, whose entry could not be removed.
func (j *Journal) Blocked(key Key) error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stuck[key]
}

// TakeOver returns a request that an earlier run sent under key, or nil: then the
// caller may send. For a request without a response, it waits until none can
// arrive. Then it removes the entry and returns the request without a job: the
// caller must report it. No other caller gets the same request, in any process.
func (j *Journal) TakeOver(ctx context.Context, key Key) (*Orphan, error) {
	if j == nil {
		return nil, nil
	}
	if err := j.ready(ctx); err != nil {
		return nil, err
	}
	for {
		e, err := j.reserve(key)
		if e == nil {
			return nil, err
		}
		claimed, err := j.await(ctx, e)
		if claimed {
			return j.newOrphan(e), nil
		}
		if ctx.Err() != nil {
			j.release(e)
			return nil, context.Cause(ctx)
		}
		if err := j.failed("claimed", err); err != nil {
			j.release(e)
			return nil, err
		}
		j.mu.Lock()
		delete(j.entries, e.id) // another process has claimed it, it no longer exists, or the default folder is unusable
		j.mu.Unlock()
	}
}

func (j *Journal) reserve(key Key) (*entry, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	found := j.matching(func(e *entry) bool { return j.wanted(e, key) })
	if len(found) == 0 {
		return nil, j.stuck[key]
	}
	j.busy[found[0].id] = true
	return found[0], nil
}

func (j *Journal) release(e *entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.busy, e.id)
}

// await waits for the outcome of an earlier request and claims its entry. It
// returns false if the entry no longer exists or has another owner.
func (j *Journal) await(ctx context.Context, e *entry) (claimed bool, _ error) {
	latest := j.store.now().Add(e.waitFor()) // even if the entry's time is in the future
	for {
		now := j.store.now()
		over := e.Answered || now.After(e.written.Add(e.waitFor())) || now.After(latest) || j.store.dead(e)
		fresh, err := j.read(ctx, e) // read after that, because the sender may have recorded the response just before it ended
		if err != nil && !j.named && ctx.Err() == nil {
			known := *e // better than sending twice
			fresh, err = &known, nil
		}
		if err != nil || fresh == nil || fresh.owner() != e.owner() {
			return false, err
		}
		j.mu.Lock()
		*e = *fresh
		j.mu.Unlock()
		if over {
			if claimed, err := j.claim(ctx, e); claimed || err != nil {
				return claimed, err
			}
			continue // it has changed since it was read: a response was recorded, or it has another owner
		}
		if e.Answered {
			continue
		}
		if err := sleep.For(ctx, j.store.pollInterval()); err != nil {
			return false, err
		}
	}
}

func (j *Journal) claim(ctx context.Context, e *entry) (claimed bool, _ error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), opTimeout)
	defer cancel()
	claim := *e
	claimed, err := j.store.claim(ctx, &claim, j.process.run)
	if err != nil && !j.named { // such as a folder that cannot be written: better than sending twice
		_ = j.failed("claimed", err)
		claim.Owner, claimed = j.process.run, true
	}
	if !claimed {
		return false, err
	}
	j.mu.Lock()
	*e = claim
	e.own = e.Answered
	j.mu.Unlock()
	if !e.Answered {
		_ = j.remove(ctx, e) // at worst it is reported twice
	}
	return true, nil
}

func (j *Journal) read(ctx context.Context, e *entry) (*entry, error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	return j.store.read(ctx, e)
}

// Keep leaves a request that could not be resolved to the next run.
func (j *Journal) Keep(o *Orphan) {
	j.mu.Lock()
	defer j.mu.Unlock()
	o.entry.own = false
}

// Drop removes a request whose job failed or no longer exists: the caller may send a new one.
func (j *Journal) Drop(ctx context.Context, o *Orphan) error {
	j.mu.Lock()
	delete(j.entries, o.entry.id)
	j.mu.Unlock()
	return j.remove(ctx, o.entry)
}

// TookOver reports whether this run took the job over from an earlier one.
func (j *Journal) TookOver(ctx context.Context, jobID string) bool {
	if j == nil || j.ready(ctx) != nil {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.matching(func(e *entry) bool {
		return e.isCreate() && e.isFor(jobID) && e.owner() == j.process.run && e.Run != j.process.run
	})) > 0
}
