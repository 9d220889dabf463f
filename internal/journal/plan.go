// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
)

// Ref is what the private state of an object says about the journal. Every byte is stored
// once for each object.
type Ref struct {
	Run     cli.Run  `json:"r,omitempty"` // that wrote this
	Entries []string `json:"e,omitempty"` // ids of those that the state makes superfluous
	Place   string   `json:"p,omitempty"` // identifies where the last apply kept the journal
}

// plan is what a plan reads once: a thousand resources must not time out one after another.
type plan struct {
	listing  sync.Once
	byFamily map[string][]store.Name
	byID     map[string]store.Name
	listErr  error

	reading    sync.Once
	allCreates []*Earlier
	readErr    error

	sends, moved atomic.Bool // this plan sends something; the last apply kept the journal elsewhere
	reportsMoved sync.Once

	cache sync.Map // of *Earlier by store.Name: equal resources would read each other's entries
}

// index lists the journal once.
func (j *Journal) index(ctx context.Context) error {
	j.listing.Do(func() {
		names, err := j.listAll(context.WithoutCancel(ctx), "") // a caller that is cancelled must not fail the others
		j.listErr, j.byFamily, j.byID = err, map[string][]store.Name{}, map[string]store.Name{}
		for _, name := range names {
			family := name.Key.Family()
			j.byFamily[family] = append(j.byFamily[family], name)
			j.byID[name.ID] = name
		}
	})
	return j.listErr
}

// isOwn reports whether this run wrote what says this: then no stored state may have it yet.
func (j *Journal) isOwn(r Ref) bool { return r.Run == j.process.Run }

// Prune removes, in the background, what the prior state of an object makes superfluous. It returns
// what the state must still say: an entry stays there until a plan no longer lists it.
func (j *Journal) Prune(ctx context.Context, r Ref) (Ref, error) {
	if !j.Keeps() {
		return r, nil
	}
	if r.Place != "" && r.Place != j.placeID() {
		j.moved.Store(true)
	}
	if r.Run != "" {
		r.Place = j.placeID()
	}
	if len(r.Entries) == 0 || j.isOwn(r) {
		return r, nil
	}
	j.DealtWith(r.Entries...)
	if err := j.index(ctx); err != nil {
		return r, err
	}
	remaining := Ref{Run: r.Run, Place: r.Place}
	for _, id := range r.Entries {
		if name, isListed := j.byID[id]; isListed {
			remaining.Entries = append(remaining.Entries, id)
			j.Remove(ctx, name)
		}
	}
	return remaining, nil
}

// Sends says that this plan sends something.
func (j *Journal) Sends() { j.sends.Store(true) }

// Moved reports, once, that a plan sends something and that the last apply of the state kept the journal elsewhere.
// A thousand objects are planned in any order, so each of their calls asks.
func (j *Journal) Moved() (isMoved bool) {
	if j.sends.Load() && j.moved.Load() {
		j.reportsMoved.Do(func() { isMoved = true })
	}
	return isMoved
}

// placeID is the same on all machines that use the same journal. A folder has other paths on other machines, so two
// named folders pass for one.
func (j *Journal) placeID() string {
	where := j.Location.String()
	switch {
	case j.Location.Folder != "" && j.Location.Default:
		where = "folder"
	case j.Location.Folder != "":
		where = "named"
	}
	return store.Hash(where, j.Scope)[:8]
}

// Find returns the requests of other runs that have the key of a planned one.
func (j *Journal) Find(ctx context.Context, key Key) ([]*Earlier, error) {
	return j.find(ctx, key, func(other Key) bool { return other == key })
}

// RemoveStored removes creates, found with a key, whose job is in a stored state: the prior state has it, and this run
// has not written about it. A tainted object is planned without its private state, and a run without a lock leaves
// entries that no private state lists.
func (j *Journal) RemoveStored(ctx context.Context, key Key, found []*Earlier) error {
	if !slices.ContainsFunc(found, func(e *Earlier) bool { return j.IsStored(e.JobID) }) {
		return nil
	}
	own, err := j.read(ctx, slices.DeleteFunc(slices.Clone(j.byFamily[key.Family()]), func(name store.Name) bool {
		return name.Run != j.process.Run || name.Key != key
	}))
	if err != nil {
		return err
	}
	for _, e := range found {
		isOfJob := func(other *Earlier) bool { return other.JobID == e.JobID }
		if j.IsStored(e.JobID) && !slices.ContainsFunc(own, isOfJob) {
			j.Remove(ctx, e.Name)
		}
	}
	return nil
}

// FindNamesakes returns the creates of other runs that have the name of a planned one, and other triggers.
func (j *Journal) FindNamesakes(ctx context.Context, key Key) ([]*Earlier, error) {
	return j.find(ctx, key, func(other Key) bool { return other != key })
}

func (j *Journal) find(ctx context.Context, key Key, has func(Key) bool) ([]*Earlier, error) {
	if err := j.index(ctx); err != nil {
		return nil, err
	}
	var found []*Earlier
	var unread []store.Name
	for _, name := range j.ofOthers(j.byFamily[key.Family()]) {
		if e, isRead := j.cache.Load(name); isRead && has(name.Key) {
			found = append(found, e.(*Earlier)) //nolint:errcheck,forcetypeassert // nothing else is stored there
		} else if has(name.Key) {
			unread = append(unread, name)
		}
	}
	more, err := j.read(ctx, unread)
	more = withoutUnsent(more)
	for _, e := range more {
		j.cache.Store(e.Name, e)
	}
	found = append(found, more...)
	slices.SortFunc(found, byUse)
	return found, err
}

// LeftElsewhere returns how many entries of this state a place still has where earlier runs may have kept the
// journal, and names that place. One that cannot be listed has none.
func (j *Journal) LeftElsewhere(ctx context.Context) (number int, where string) {
	for _, place := range j.Elsewhere {
		elsewhere := place.open(j.process)
		ctx, cancel := context.WithTimeout(ctx, opTimeout)
		names, _ := elsewhere.List(ctx, "")
		cancel()
		if number = len(j.ofOthers(names)); number > 0 {
			return number, place.Location.String()
		}
	}
	return 0, ""
}

// StartedBy returns the creates of other runs that started a job, or took it over, under whatever prompt.
func (j *Journal) StartedBy(ctx context.Context, jobID string) (found []*Earlier, _ error) {
	j.reading.Do(func() { j.allCreates, j.readErr = j.creates(context.WithoutCancel(ctx)) }) // once for a thousand imports
	for _, e := range j.allCreates {
		if e.JobID == jobID {
			found = append(found, e)
		}
	}
	return found, j.readErr
}

// Destroyed removes what the state of an object makes superfluous that is being destroyed: nothing lists it any more.
// If this run wrote that state, it may never have been stored, and only what this run has written is removed: a
// job that it took over is not this run's to forget.
func (j *Journal) Destroyed(ctx context.Context, r Ref, jobID string) error {
	if !j.Keeps() {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // Ctrl-C must not leave entries of a test
	var names []store.Name
	var err error
	switch {
	case len(r.Entries) == 0 && j.IsStored(jobID): // it is tainted, or was imported
		var found []*Earlier
		found, err = j.StartedBy(ctx, jobID)
		for _, e := range found {
			names = append(names, e.Name)
		}
	case len(r.Entries) == 0:
	case j.isOwn(r):
		names, err = j.listAll(ctx, "")
		names = slices.DeleteFunc(names, func(name store.Name) bool {
			return name.Run != j.process.Run || !slices.Contains(r.Entries, name.ID)
		})
	default:
		err = j.index(ctx)
		for _, id := range r.Entries {
			if name, isListed := j.byID[id]; isListed {
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		if err == nil {
			err = j.remove(ctx, name)
		}
	}
	return err
}
