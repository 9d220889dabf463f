// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"errors"
	"slices"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
)

// Ref is what the private state of an object says about the journal. Every byte is stored
// once for each object.
type Ref struct {
	Run     cli.Run  `json:"r,omitempty"` // that wrote this
	Entries []string `json:"e,omitempty"` // names of those that the state makes superfluous
}

func (r Ref) names() (names []store.Name) {
	for _, text := range r.Entries {
		if name, ok := store.ParseName(text); ok {
			names = append(names, name)
		}
	}
	return names
}

// Settle records what the prior state of an object makes superfluous.
func (j *Journal) Settle(r Ref) {
	for _, name := range r.names() {
		j.settle(nil, name.ID)
	}
}

// Seen removes what the prior state of an object makes superfluous, and returns what the
// state must still say. Nothing is removed if this run wrote that state: it may not be
// stored yet.
func (j *Journal) Seen(ctx context.Context, r Ref) (Ref, error) {
	if _, keepsNothing := j.store.(store.Discard); keepsNothing || len(r.Entries) == 0 || r.Run == j.process.Run {
		return r, nil
	}
	j.Settle(r)
	index, err := j.plan(ctx)
	remaining := Ref{Run: r.Run}
	for _, name := range r.names() {
		switch {
		case err == nil && !slices.Contains(index[name.Key], name):
			continue
		case err == nil:
			err = j.removePlanned(ctx, name)
		}
		if err != nil {
			remaining.Entries = append(remaining.Entries, name.String())
		}
	}
	return remaining, err
}

// Destroyed removes what this run has written about an object that is being destroyed.
// Earlier runs' entries were removed by the plan, unless this run took over their job: then
// the job is not this run's to forget.
func (j *Journal) Destroyed(ctx context.Context, r Ref) (failed error) {
	for _, name := range r.names() {
		if name.Run == j.process.Run && failed == nil {
			failed = j.remove(ctx, name)
		}
	}
	return failed
}

// Announce returns the requests of other runs of which an apply would find one, as often as
// it is asked. A create whose job is in the prior state is superfluous: a tainted object is
// planned without its private state, and an import has none.
func (j *Journal) Announce(ctx context.Context, key Key) ([]*Earlier, error) {
	found, err := j.find(ctx, key, func(e *Earlier) bool {
		_, inState := j.isSettled(e.JobID)
		return key.IsCreate() && inState
	})
	return slices.DeleteFunc(found, func(e *Earlier) bool {
		isSettled, _ := j.isSettled(e.JobID)
		return e.Listed && e.Unknown || key.IsCreate() && isSettled
	}), err
}

// Shown removes accepted messages with the prompt that the prior state shows: runs without a
// lock leave some.
func (j *Journal) Shown(ctx context.Context, key Key) error {
	_, err := j.find(ctx, key, func(e *Earlier) bool { return e.JobID != "" })
	return err
}

// GivenUp removes creates that a person has given up. It is for a plan that keeps an equal job: one that
// starts a job decides nothing, its apply does.
func (j *Journal) GivenUp(ctx context.Context, key Key) error {
	_, err := j.find(ctx, key, func(e *Earlier) bool { return e.Listed && e.Unknown })
	return err
}

// imported settles a job that no stored state may have.
type imported struct{}

// Imported records that a job was imported whose prompt is not recorded yet: this run may have
// imported it, so that no stored state has it.
func (j *Journal) Imported(jobID string) { j.settle(imported{}, jobID) }

// ShownByImport removes a create that names an imported job in the prior state, under whatever prompt.
func (j *Journal) ShownByImport(ctx context.Context, jobID string) error {
	if _, inState := j.isSettled(jobID); !inState {
		return nil
	}
	j.reading.Do(func() { j.unseen, j.unseenErr = j.Unseen(context.WithoutCancel(ctx)) }) // once for a thousand imports
	err := j.unseenErr
	for _, e := range j.unseen {
		if e.JobID == jobID {
			err = errors.Join(err, j.removePlanned(ctx, e.name))
		}
	}
	return err
}

// find returns the requests of other runs under a key without those that are superfluous, which it
// removes, unless this run has written about the same job: its state may not be stored yet.
func (j *Journal) find(ctx context.Context, key Key, isSuperfluous func(*Earlier) bool) ([]*Earlier, error) {
	index, err := j.plan(ctx)
	if err != nil {
		return nil, err
	}
	found, err := j.read(ctx, j.unsettled(index[key], false))
	if !slices.ContainsFunc(found, isSuperfluous) {
		return found, err
	}
	own, ownErr := j.read(ctx, j.unsettled(index[key], true))
	err = errors.Join(err, ownErr)
	return slices.DeleteFunc(found, func(e *Earlier) bool {
		isOwn := func(other *Earlier) bool { return other.JobID == e.JobID }
		if !isSuperfluous(e) || slices.ContainsFunc(own, isOwn) {
			return false
		}
		j.settle(nil, e.ID)
		err = errors.Join(err, j.removePlanned(ctx, e.name))
		return true
	}), err
}

// plan lists the journal once: a thousand resources must not time out one after another.
func (j *Journal) plan(ctx context.Context) (map[Key][]store.Name, error) {
	j.index.Do(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), opTimeout) // a caller that is cancelled must not fail the others
		defer cancel()
		names, err := j.store.List(ctx, "")
		j.indexed, j.indexErr = map[Key][]store.Name{}, j.failed("listed", err)
		for _, name := range names {
			j.indexed[name.Key] = append(j.indexed[name.Key], name)
		}
	})
	return j.indexed, j.indexErr
}

// removePlanned removes an entry, unless that has failed before.
func (j *Journal) removePlanned(ctx context.Context, name store.Name) error {
	if failed := j.removeErr.Load(); failed != nil {
		return *failed
	}
	j.log(ctx, "removing: a state shows it", name, "")
	err := j.remove(ctx, name)
	if err != nil {
		j.removeErr.Store(&err)
	}
	return err
}
