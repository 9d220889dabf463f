// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"slices"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

// Orphan is a request of an earlier run whose outcome is not in the state.
type Orphan struct {
	ID      string // of the entry
	Where   string // the file or object that holds the entry
	Project string
	JobID   string    // the job that accepted it; empty without a response
	SentAt  time.Time // by the store's clock
	Unknown bool      // there is no response, and none can arrive
	Listed  bool      // a person has decided to forget it
	Ref     Ref

	entry *entry
}

func (j *Journal) newOrphan(e *entry) *Orphan {
	o := &Orphan{
		ID: e.id, Where: j.store.where(e.id), Project: e.Project, SentAt: e.sent(), Unknown: j.isUnknown(e),
		Listed: slices.Contains(j.forget, e.id), Ref: e.ref(), entry: e,
	}
	if e.Accepted {
		o.JobID = e.JobID
	}
	return o
}

// orphans returns what earlier runs have left, requests with a job first. With an error,
// the default folder returns what it could read.
func (j *Journal) orphans(ctx context.Context, match func(*entry) bool) (found []*Orphan, _ error) {
	if j == nil {
		return nil, nil
	}
	err := j.ready(ctx)
	if err != nil && j.named {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.matching(func(e *entry) bool { return j.isEarlier(e) && match(e) }) {
		found = append(found, j.newOrphan(e))
	}
	return found, err
}

// Announce returns the requests of which an apply will find one, as often as it is asked.
func (j *Journal) Announce(ctx context.Context, key Key) ([]*Orphan, error) {
	found, err := j.orphans(ctx, func(e *entry) bool { return e.Key == key })
	return slices.DeleteFunc(found, func(o *Orphan) bool { return o.Listed && o.Unknown }), err
}

// Unresolved returns the creates of this state that earlier runs have left and no caller
// has found, unless a person has decided to forget them.
func (j *Journal) Unresolved(ctx context.Context) []*Orphan {
	found, _ := j.orphans(ctx, func(e *entry) bool { return e.isCreate() && e.Scope == j.scope && !j.busy[e.id] })
	return slices.DeleteFunc(found, func(o *Orphan) bool { return o.Listed || o.JobID == "" && !o.Unknown })
}

// Lost returns once what earlier runs have started in a project and no state may show. A
// named journal has also what clean runs have started, so that it cannot tell.
func (j *Journal) Lost(ctx context.Context, project string) (lost []*Orphan) {
	if j != nil && !j.named {
		j.lost.Do(func() {
			lost = slices.DeleteFunc(j.Unresolved(ctx), func(o *Orphan) bool { return o.Project != project })
		})
	}
	return lost
}

// Imported returns a reference to a create without a response that has the key of an
// imported job: the job is its outcome.
func (j *Journal) Imported(ctx context.Context, key Key) Ref {
	found, _ := j.orphans(ctx, func(e *entry) bool { return e.Key == key && !e.Accepted })
	if len(found) == 0 {
		return Ref{}
	}
	return found[0].Ref
}

// Find returns a request that an earlier run sent under key, or nil: then the caller may
// send. If it has no response yet, Find waits until it has one or none can arrive. No
// other caller in this process finds the same request.
func (j *Journal) Find(ctx context.Context, key Key) (*Orphan, error) {
	if j == nil {
		return nil, nil
	}
	if err := j.ready(ctx); err != nil && j.named {
		return nil, err
	}
	for {
		e := j.reserve(key)
		if e == nil {
			return nil, nil
		}
		if j.started(e.JobID, false) && e.isCreate() { // a crash, or an alias, has left two entries for one job
			if err := j.Remove(ctx, j.newOrphan(e)); err != nil {
				return nil, err
			}
			continue
		}
		o, err := j.settle(ctx, *e)
		if err != nil {
			j.mu.Lock()
			defer j.mu.Unlock()
			delete(j.busy, e.id)
			return nil, err
		}
		if o != nil {
			return o, nil
		}
		// It was not sent, or a process whose CLI was killed has just taken it.
		j.drop(e.id)
		if err := j.readAll(ctx); err != nil && j.named {
			return nil, err
		}
	}
}

func (j *Journal) reserve(key Key) *entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.matching(func(e *entry) bool { return e.Key == key && j.isEarlier(e) && !j.busy[e.id] }) {
		j.busy[e.id] = true
		return e
	}
	return nil
}

// started reports whether this run has started the job or, if taken is true, taken it over.
func (j *Journal) started(jobID string, taken bool) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.matching(func(e *entry) bool {
		return e.isCreate() && e.isFor(jobID) && !j.isEarlier(e) && (e.Taken || !taken)
	})) > 0
}

func (j *Journal) drop(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.entries, id)
}

// settle waits for the outcome of an earlier request. It returns nil if the entry no
// longer exists.
func (j *Journal) settle(ctx context.Context, e entry) (*Orphan, error) {
	latest := j.store.now().UnixMilli() + e.Wait // even if the sender's clock is ahead
	for {
		over := j.isUnknown(&e) || j.store.now().UnixMilli() > latest
		fresh, err := j.read(ctx, e.id) // after that, because the sender may have recorded the response just before it ended
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil && j.named:
			return nil, err
		case err != nil: // better than sending twice
			fresh = &e
		case fresh == nil:
			return nil, nil
		}
		if fresh.Accepted || over {
			o := j.newOrphan(fresh)
			o.Unknown = !fresh.Accepted
			return o, nil
		}
		if err := sleep.For(ctx, j.store.pollInterval()); err != nil {
			return nil, err
		}
		e = *fresh
	}
}

func (j *Journal) read(ctx context.Context, id string) (*entry, error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	fresh, err := j.store.read(ctx, id)
	return fresh, j.failed("read", err)
}

// Take makes an accepted request one of this run: it writes a new entry and deletes the
// old one. It returns false if another process of the run was faster, as far as the store
// can tell. If one of another run was, its CLI was killed. With an error the caller has the
// request all the same, and a later run removes the entries.
func (j *Journal) Take(ctx context.Context, o *Orphan) (taken bool, ref Ref, _ error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), opTimeout)
	defer cancel()
	own := *o.entry
	own.id, own.Run, own.Sender, own.Taken, own.own = newID(), j.process.Run, j.process.Self, true, true
	if err := j.store.write(ctx, &own); err != nil {
		return true, o.Ref, j.failed("written", err)
	}
	existed, err := j.store.remove(ctx, o.ID)
	j.drop(o.ID)
	if err == nil && !existed && j.hasOther(ctx, &own) {
		return false, Ref{}, j.remove(ctx, own.id)
	}
	j.mu.Lock()
	j.entries[own.id] = &own
	j.mu.Unlock()
	if err = j.failed("cleaned up", err); err == nil { // what a crash between the two steps has left
		err = j.removeAll(ctx, func(e *entry) bool {
			return j.isEarlier(e) && e.Key == own.Key && e.isFor(own.JobID) && (e.isCreate() || e.SentAt == own.SentAt)
		})
	}
	return true, own.ref(), err
}

// hasOther reports whether the run has another entry for the request.
func (j *Journal) hasOther(ctx context.Context, own *entry) bool {
	entries, _ := j.store.load(ctx)
	return slices.ContainsFunc(entries, func(e *entry) bool {
		return e.Key == own.Key && e.isFor(own.JobID) && e.Run == own.Run && e.id != own.id
	})
}

// Remove deletes an entry.
func (j *Journal) Remove(ctx context.Context, o *Orphan) error {
	j.drop(o.ID)
	return j.remove(ctx, o.ID)
}

// TookOver reports whether this run took the job over from an earlier one.
func (j *Journal) TookOver(ctx context.Context, jobID string) bool {
	return j != nil && (j.ready(ctx) == nil || !j.named) && j.started(jobID, true)
}
