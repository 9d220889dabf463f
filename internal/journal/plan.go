// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
)

// maxStrays bounds how many records a plan reads that no resource has so far: the newest ones, because a run that was just
// broken has left what a renamed resource looks for.
const maxStrays = 20

// index is what a process reads once: a thousand resources must not time out one after another.
type index struct {
	listing sync.Once
	listed  map[string]store.Listed
	err     error

	mu      sync.Mutex
	records map[string]*reading
	names   map[string]bool // keys of those that resources have, as far as this process knows

	places sync.Map // of Elsewhere, what each has

	hasPointer    atomic.Bool
	pointer       sync.Mutex
	isPointerRead bool
	pointerErr    error
	movedTo       *Elsewhere
}

// reading is a record that is read once.
type reading struct {
	once    sync.Once
	record  *Record
	version store.Version
	err     error
}

// list lists the records once.
func (j *Journal) list(ctx context.Context) (map[string]store.Listed, error) {
	// A caller that is cancelled must not fail the others.
	j.index.listing.Do(func() { j.index.listed, j.index.err = j.listAll(context.WithoutCancel(ctx)) })
	return j.index.listed, j.index.err
}

func (j *Journal) listAll(ctx context.Context) (map[string]store.Listed, error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	listed, err := j.store.List(ctx)
	_, isThere := listed[pointerKey]
	delete(listed, pointerKey)
	j.index.hasPointer.Store(isThere)
	return listed, j.failed("listed", err)
}

// planned returns the record of a key as a plan sees it, or nil: there is none, or the plan may not know.
func (j *Journal) planned(ctx context.Context, key string) (*Record, store.Version, error) {
	listed, err := j.list(ctx)
	isDenied := errors.Is(err, store.ErrDenied)
	if err != nil && !isDenied {
		return nil, "", err
	}
	if _, isThere := listed[key]; !isThere && !isDenied {
		return nil, "", nil
	}
	j.index.mu.Lock()
	r := j.index.records[key]
	if r == nil {
		r = new(reading)
		if j.index.records == nil {
			j.index.records = map[string]*reading{}
		}
		j.index.records[key] = r
	}
	j.index.mu.Unlock()
	r.once.Do(func() { r.record, r.version, r.err = j.read(context.WithoutCancel(ctx), key) })
	if isDenied && errors.Is(r.err, store.ErrDenied) { // a store does not tell such a run whether there is one
		return nil, "", nil
	}
	return r.record, r.version, r.err
}

// reread makes the next look at a record read it.
func (j *Journal) reread(project, name string) {
	j.index.mu.Lock()
	defer j.index.mu.Unlock()
	delete(j.index.records, key(project, name))
}

// HasName notes that a resource has a name.
func (j *Journal) HasName(project, name string) {
	j.index.mu.Lock()
	defer j.index.mu.Unlock()
	if j.index.names == nil {
		j.index.names = map[string]bool{}
	}
	j.index.names[key(project, name)] = true
}

// Peek tells a plan what its apply would find. The record is nil if there is none.
func (j *Journal) Peek(ctx context.Context, w Wanted) (Verdict, *Record, error) {
	r, _, err := j.planned(ctx, key(w.Project, w.Name))
	if r == nil {
		return Send, nil, err
	}
	if r.Released && r.Job != "" && r.Job == w.Predecessor { // by a plan that was not applied: the resource still has the job
		held := *r
		held.Released, r = false, &held
	}
	return j.judge(r, w), j.settle(r), nil
}

// CheckRead returns an error if nobody has written here so far, as far as this run may know, and it cannot read. Then its apply could not
// write either, and would fail.
func (j *Journal) CheckRead(ctx context.Context) error {
	listed, err := j.list(ctx)
	if len(listed) > 0 || err != nil && !errors.Is(err, store.ErrDenied) {
		return nil // somebody has written here, or another caller reports the error
	}
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	if err = j.store.CanRead(ctx); !errors.Is(err, store.ErrDenied) {
		return nil
	}
	return j.failed("read", err)
}

// Compare compares the record of a name with the job in the state. It reads the record only if its version is not the one that the state
// knows. r is nil if it was not read, if there is none, or while another run is about to change it. now is the version that the state
// should know.
func (j *Journal) Compare(ctx context.Context, project, name, jobID, version string) (r *Record, now string, _ error) {
	if name == "" { // it was imported
		return nil, version, nil
	}
	at := key(project, name)
	listed, err := j.list(ctx)
	there, isThere := listed[at]
	switch {
	case errors.Is(err, store.ErrDenied), j.IsUnusable(): // without its record, the job stays as the state has it
		return nil, version, nil
	case err != nil, !isThere, j.placed(there.Version) == version:
		return nil, version, err
	}
	r, current, err := j.planned(ctx, at)
	if r == nil {
		return nil, version, err
	}
	if !j.isOver(r.Claim) {
		return nil, version, nil // another run is about to change it
	}
	r = j.settle(r)
	if r.Job == jobID && !r.Released {
		r = j.withoutForgotten(r)
		return r, j.known(r, current), nil
	}
	return r, version, nil
}

// Retake takes back that a plan, which was not applied, has released the name of a job.
func (j *Journal) Retake(ctx context.Context, project, name, jobID, adoption string) error {
	defer j.reread(project, name)
	return j.change(ctx, project, name, func(r *Record) bool {
		isReleased := r.Job == jobID && r.Released && r.Claim == nil
		if isReleased {
			r.Released = false
			if adoption != AnyAdoption {
				r.Adoption = adoption
			}
			j.log(ctx, "taken back", r)
		}
		return isReleased
	})
}

// Renamed returns a record of another name whose job was started by the same request, and which no resource has as far as this process
// knows: a name was changed after a broken run. It returns nil if there is none.
func (j *Journal) Renamed(ctx context.Context, w Wanted) *Record {
	listed, err := j.list(ctx)
	if err != nil {
		return nil
	}
	j.index.mu.Lock()
	strays := slices.DeleteFunc(slices.Collect(maps.Keys(listed)), func(key string) bool { return j.index.names[key] })
	j.index.mu.Unlock()
	slices.SortFunc(strays, func(a, b string) int { return cmp.Or(listed[b].Written.Compare(listed[a].Written), cmp.Compare(a, b)) })
	for _, stray := range strays[:min(len(strays), maxStrays)] {
		r, _, err := j.planned(ctx, stray)
		if err != nil || r == nil {
			continue
		}
		// The run of a claim may live, and nobody knows yet what comes of it.
		r = j.settle(r)
		if r.Project != w.Project || r.IsFree() || j.IsForgotten(r) || r.Run == j.process.Run { // another resource of this run
			continue
		}
		arguments := r.Arguments
		if r.IsUnknownCreate() {
			arguments = r.Last.Arguments
		}
		if arguments == Hash(w.Arguments) && r.Last.has(w.Prompt) && !j.IsInState(r.Job) {
			return r
		}
	}
	return nil
}

// All returns all records, by name.
func (j *Journal) All(ctx context.Context) ([]*Record, error) {
	listed, err := j.listAll(ctx)
	if err != nil {
		return nil, err
	}
	keys := slices.Sorted(maps.Keys(listed))
	found := make([]*Record, len(keys))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16) // a bucket takes some 50 ms for each
	for i, key := range keys {
		group.Go(func() error {
			r, _, err := j.read(ctx, key)
			if r != nil && j.isOver(r.Claim) {
				r = j.settle(r)
			}
			found[i] = r
			return err
		})
	}
	err = group.Wait()
	return slices.DeleteFunc(found, func(r *Record) bool { return r == nil }), err
}

// known is the version that the state should know, so that plans need not read the record: none if each has to name a create without a
// known outcome.
func (j *Journal) known(r *Record, version store.Version) string {
	if r.hasUnanswered() {
		return ""
	}
	return j.placed(version)
}

// placed is a version as the state knows it, with the place of the journal. A folder has other paths on other machines, so two
// named folders pass for one.
func (j *Journal) placed(version store.Version) string {
	where := j.Location.String()
	switch {
	case version == "":
		return ""
	case j.Location.Folder != "" && j.Location.Default:
		where = "folder"
	case j.Location.Folder != "":
		where = "named"
	}
	return Hash(where, j.Scope)[:8] + "." + string(version)
}

// IsElsewhere reports whether a version that a state knows is that of a journal in another place.
func (j *Journal) IsElsewhere(version string) bool {
	here, _, _ := strings.Cut(j.placed("any"), ".")
	there, _, _ := strings.Cut(version, ".")
	return there != "" && there != here && j.Keeps() && !j.IsUnusable()
}
