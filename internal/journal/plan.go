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

// Shown removes accepted requests under a key that name a job in the prior state of an object,
// which shows them: runs without a lock leave some. So does an import, under any key of a
// create, because the prompt may have been edited.
func (j *Journal) Shown(ctx context.Context, key Key, jobID string, r Ref) error {
	index, err := j.plan(ctx)
	if by, inState := j.settler(jobID); err != nil || !inState || by != nil {
		return err
	}
	var found []*Earlier
	if imported := r.Run == ""; imported && key.IsCreate() {
		j.reading.Do(func() { j.unseen, j.unseenErr = j.Unseen(context.WithoutCancel(ctx)) }) // once for a thousand imports
		found, err = j.unseen, j.unseenErr
	} else {
		found, err = j.read(ctx, j.unsettled(index[key], false))
	}
	shown := Ref{Run: r.Run}
	for _, e := range found {
		if e.JobID == jobID {
			shown.Entries = append(shown.Entries, e.name.String())
		}
	}
	_, seenErr := j.Seen(ctx, shown)
	return errors.Join(err, seenErr)
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

// Announce returns the requests of other runs of which an apply would find one, as often as it is asked.
func (j *Journal) Announce(ctx context.Context, key Key) ([]*Earlier, error) {
	index, err := j.plan(ctx)
	if err != nil {
		return nil, err
	}
	found, err := j.read(ctx, j.unsettled(index[key], false))
	return slices.DeleteFunc(found, func(e *Earlier) bool {
		_, settled := j.settler(e.JobID)
		return e.Listed && e.Unknown || key.IsCreate() && settled
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
	j.mu.Lock()
	failed := j.removeErr
	j.mu.Unlock()
	if failed != nil {
		return failed
	}
	j.log(ctx, "removing: a state shows it", name, "")
	err := j.remove(ctx, name)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.removeErr = err
	return err
}
