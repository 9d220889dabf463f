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
		j.settle(name.ID, true)
	}
}

// Seen removes what the prior state of an object makes superfluous, and returns what the
// state must still say. Nothing is removed if this run wrote that state: it may not be
// stored yet.
func (j *Journal) Seen(ctx context.Context, r Ref) (Ref, error) {
	if j.store == store.Discard() || len(r.Entries) == 0 || r.Run == j.process.Run {
		return r, nil
	}
	j.Settle(r)
	index, err := j.plan(ctx)
	remaining := Ref{Run: r.Run}
	for _, name := range r.names() {
		if err == nil && slices.Contains(index[name.Key], name) {
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

// Imported records that a job was imported whose prompt is not recorded yet: this run may have
// imported it, so that no stored state has it.
func (j *Journal) Imported(jobID string) { j.settle(jobID, false) }

// ShownByImport removes a create that names an imported job in the prior state, under whatever prompt.
func (j *Journal) ShownByImport(ctx context.Context, jobID string) error {
	if _, inState := j.isSettled(jobID); !inState {
		return nil
	}
	j.reading.Do(func() { // once for a thousand imports
		found, err := j.Unseen(context.WithoutCancel(ctx))
		j.created, j.createdErr = map[string][]store.Name{}, err
		for _, e := range found {
			j.created[e.JobID] = append(j.created[e.JobID], e.Name)
		}
	})
	err := j.createdErr
	for _, name := range j.created[jobID] {
		err = errors.Join(err, j.removePlanned(ctx, name))
	}
	return err
}

// Announce returns the requests of other runs of which an apply would find one, as often as it is
// asked. It removes what the prior state makes superfluous, unless this run has written about
// the same job, because its state may not be stored yet: creates whose job is in it (a tainted
// object is planned without its private state, and an import has none), and, if the apply will not send
// the request, messages that runs without a lock have left, and creates that a person has given up.
func (j *Journal) Announce(ctx context.Context, key Key, isDue bool) ([]*Earlier, error) {
	index, err := j.plan(ctx)
	if err != nil {
		return nil, err
	}
	found, err := j.read(ctx, j.unsettled(index[key], false))
	if len(found) == 0 {
		return nil, err
	}
	own, ownErr := j.read(ctx, j.unsettled(index[key], true))
	err = errors.Join(err, ownErr)
	return slices.DeleteFunc(found, func(e *Earlier) bool {
		isOwn := func(other *Earlier) bool { return other.JobID == e.JobID }
		isSettled, inState := j.isSettled(e.JobID)
		isGivenUp := e.Listed && e.Unknown
		isSuperfluous := !isDue && e.JobID != ""
		if key.IsCreate() {
			isSuperfluous = inState || !isDue && isGivenUp
		}
		if isSuperfluous && err == nil && !slices.ContainsFunc(own, isOwn) {
			j.settle(e.ID, true)
			err = errors.Join(err, j.removePlanned(ctx, e.Name))
		}
		return isSuperfluous || isGivenUp || key.IsCreate() && isSettled
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
