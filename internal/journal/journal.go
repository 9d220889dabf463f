// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package journal records requests whose outcome may be missing in the CLI's state.
//
// Only the state proves that nothing was lost. So a process never forgets a
// request because it ended cleanly: an entry is removed once a later run has seen
// its outcome in the state. See the table of events in internal/README.md.
package journal

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Journal records the requests of one provider configuration. A nil *Journal
// records nothing. It is safe for concurrent use.
//
// A journal in the default folder never fails a call: it only reports its errors.
// A named journal returns them, as *Error.
type Journal struct {
	process *Process
	store   store
	named   bool
	report  func(error)
	room    func(context.Context) error // an error if the disk is full; nil for a bucket
	waitFor time.Duration               // from the record of a request until no response can arrive

	load    sync.Once
	loadErr error

	mu      sync.Mutex
	entries map[string]*entry // by id
	busy    map[string]bool   // entries that a caller is taking over
	stuck   map[Key]error     // requests seen in the state whose entry could not be removed
}

// failed returns an error of a named store, and only reports one of the default folder.
func (j *Journal) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	err = &Error{Store: j.store.String(), Op: op, Err: err}
	if j.named {
		return err
	}
	j.report(err)
	return nil
}

// ready loads the entries once. It does not retry: a thousand resources must not
// time out one after another.
func (j *Journal) ready(ctx context.Context) error {
	j.load.Do(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*opTimeout) // a caller that is cancelled must not fail the others
		defer cancel()
		entries, err := j.store.load(ctx)
		if j.loadErr = j.failed("read", err); j.loadErr != nil {
			return
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		for _, e := range entries {
			j.index(ctx, e)
		}
	})
	return j.loadErr
}

// index adds an entry, unless it is damaged or too old.
func (j *Journal) index(ctx context.Context, e *entry) {
	report := func(err error) { j.report(&Error{Store: j.store.String(), Op: "read", Err: err}) }
	old := j.entries[e.id]
	switch {
	case j.store.now().Sub(e.written) > maxAge:
		if e.damage == nil && !e.Answered {
			report(fmt.Errorf("the outcome of a request sent at %s was never known; its entry is removed", e.sent().UTC().Format(time.RFC3339)))
		}
		if err := j.store.remove(ctx, e); err != nil {
			report(err)
		}
	case e.damage != nil:
		report(e.damage)
	// A late response can be recorded after its pending entry was claimed.
	case e.Sender.ID != j.process.self.ID && (old == nil || !old.Answered):
		j.entries[e.id] = e
	}
}

func (j *Journal) remember(e *entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e.own = true
	j.entries[e.id] = e
}

// removeOwn removes the entries of this process, unless the disk is full: then the
// CLI may be unable to store its state.
func (j *Journal) removeOwn(ctx context.Context) {
	j.mu.Lock()
	defer j.mu.Unlock()
	own := j.matching(func(e *entry) bool { return e.own })
	if len(own) == 0 {
		return
	}
	if err := j.room(ctx); err != nil {
		_ = j.failed("cleaned up", err) // never an error in the default folder
		return
	}
	for _, e := range own {
		_ = j.remove(ctx, e)
	}
}

// matching returns the known entries that match, answered ones first, then by age.
func (j *Journal) matching(match func(*entry) bool) []*entry {
	found := slices.DeleteFunc(slices.Collect(maps.Values(j.entries)), func(e *entry) bool { return !match(e) })
	slices.SortFunc(found, func(a, b *entry) int {
		switch {
		case a.Answered && !b.Answered:
			return -1
		case b.Answered && !a.Answered:
			return 1
		}
		return cmp.Or(a.sent().Compare(b.sent()), strings.Compare(a.id, b.id))
	})
	return found
}

// Seen removes the entries whose outcome is in the state: the one that ref names,
// the create of the job, and all earlier messages to it. Entries of this run stay,
// because its state may not be stored yet. An error means that some entries could
// not be removed.
func (j *Journal) Seen(ctx context.Context, jobID string, ref Ref) error {
	return j.resolve(ctx, func(e *entry) bool {
		about := e.isFor(jobID) && (e.isCreate() || e.sent().Before(time.UnixMilli(ref.At).Add(-clockError)))
		return e.owner() != j.process.run && (e.id == ref.ID || about)
	}, j.remove)
}

// Imported keeps this run from taking the job over a second time. Its entries
// stay, because the import may be undone.
func (j *Journal) Imported(ctx context.Context, jobID string) error {
	return j.resolve(ctx, func(e *entry) bool { return e.owner() != j.process.run && e.isFor(jobID) },
		func(ctx context.Context, e *entry) error {
			_, err := j.store.claim(ctx, e, j.process.run)
			return j.failed("cleaned up", err)
		})
}

// Forget removes all entries about a job that is being destroyed.
func (j *Journal) Forget(ctx context.Context, jobID string) error {
	return j.resolve(ctx, func(e *entry) bool { return e.isFor(jobID) }, j.remove)
}

func (j *Journal) remove(ctx context.Context, e *entry) error {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	return j.failed("cleaned up", j.store.remove(ctx, e))
}

// resolve removes the matching entries from the index, and passes each to deal.
func (j *Journal) resolve(ctx context.Context, match func(*entry) bool, deal func(context.Context, *entry) error) error {
	if j == nil {
		return nil
	}
	if err := j.ready(ctx); err != nil {
		return err
	}
	j.mu.Lock()
	found := j.matching(func(e *entry) bool { return (e.own || !j.busy[e.id]) && match(e) })
	for _, e := range found {
		delete(j.entries, e.id)
	}
	j.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	var failed error
	for _, e := range found {
		if err := deal(ctx, e); err != nil {
			failed = err
			j.mu.Lock()
			j.stuck[e.Key] = err
			j.mu.Unlock()
		}
	}
	return failed
}
