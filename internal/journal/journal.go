// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package journal records requests whose outcome may be missing in the CLI's state.
//
// Only the state proves that nothing was lost. So an entry is removed once a later
// run has seen its outcome in the state. See the rules in internal/README.md.
package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Journal records the requests of one provider configuration. A nil *Journal
// records nothing. It is safe for concurrent use. Its errors are *Error.
type Journal struct {
	process *Process
	store   store
	named   bool
	scope   string
	forget  []string      // ids of entries that a person has decided about
	states  string        // distinguishes states, in keys
	waitFor time.Duration // from the record of a request until no response can arrive

	load    sync.Once
	loadErr error

	mu      sync.Mutex
	entries map[string]*entry // by id
	busy    map[string]bool   // entries that a caller has found
	notices []error

	unusable, lost sync.Once // reported
}

func (j *Journal) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Store: j.store.String(), Op: op, Err: err}
}

// Named reports whether the user chose the store: a default folder only causes warnings.
func (j *Journal) Named() bool { return j != nil && j.named }

// CreateKey identifies a create by its parts.
func (j *Journal) CreateKey(parts ...string) Key {
	if j == nil {
		return ""
	}
	return newKey(createPrefix, slices.Insert(parts, 0, j.states)...)
}

// MessageKey identifies a message by its parts.
func (j *Journal) MessageKey(parts ...string) Key {
	if j == nil {
		return ""
	}
	return newKey("message-", slices.Insert(parts, 0, j.states)...)
}

// Report returns what a user has not been told yet: what was noticed while the entries
// were loaded, and the first error of the store.
func (j *Journal) Report(err error) (notices []error, unusable error) {
	if j == nil {
		return nil, nil
	}
	if err != nil {
		j.unusable.Do(func() { unusable = err })
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	notices, j.notices = j.notices, nil
	return notices, unusable
}

// ready loads the entries once: a thousand resources must not time out one after another.
func (j *Journal) ready(ctx context.Context) error {
	j.load.Do(func() { j.loadErr = j.readAll(ctx) })
	return j.loadErr
}

func (j *Journal) readAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*opTimeout) // a caller that is cancelled must not fail the others
	defer cancel()
	entries, err := j.store.load(ctx)
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range entries {
		j.index(ctx, e)
	}
	return j.failed("read", err)
}

// index adds an entry, unless it is damaged or too old.
func (j *Journal) index(ctx context.Context, e *entry) {
	notice := func(err error) { j.notices = append(j.notices, j.failed("read", err)) }
	switch sent := e.sent(); {
	case j.store.now().Sub(sent) > maxAge:
		_, err := j.store.remove(ctx, e.id)
		notice(errors.Join(fmt.Errorf("the entry of a request sent at %s (job: %s) is older than 30 days and is removed",
			sent.UTC().Format(time.RFC3339), cmp.Or(e.JobID, "unknown")), err))
	case e.damage != nil:
		notice(e.damage)
	case j.entries[e.id] == nil: // else this process has just written it
		j.entries[e.id] = e
	}
}

// matching returns the known entries that match, accepted ones first, then by age.
func (j *Journal) matching(match func(*entry) bool) []*entry {
	found := slices.DeleteFunc(slices.Collect(maps.Values(j.entries)), func(e *entry) bool { return !match(e) })
	slices.SortFunc(found, func(a, b *entry) int {
		switch {
		case a.Accepted && !b.Accepted:
			return -1
		case b.Accepted && !a.Accepted:
			return 1
		}
		return cmp.Or(cmp.Compare(a.SentAt, b.SentAt), strings.Compare(a.id, b.id))
	})
	return found
}

// isEarlier reports whether another run has sent the request or taken it over.
func (j *Journal) isEarlier(e *entry) bool { return e.Run != j.process.Run }

// isUnknown reports whether the request has no response and none can arrive.
func (j *Journal) isUnknown(e *entry) bool {
	return !e.Accepted && (e.Wait == 0 || j.store.now().UnixMilli() > e.SentAt+e.Wait || j.process.Ended(e.Sender))
}

// Seen removes the entries whose outcome is in the state: the one that ref names,
// the create of the job, and all earlier messages to it. Entries of this run stay,
// because its state may not be stored yet.
func (j *Journal) Seen(ctx context.Context, jobID string, ref Ref) error {
	return j.removeAll(ctx, func(e *entry) bool {
		about := e.isFor(jobID) && (e.isCreate() || e.sent().Before(time.UnixMilli(ref.At).Add(-clockError)))
		return j.isEarlier(e) && (e.id == ref.ID || about)
	})
}

// Destroyed removes all entries about a job that is being destroyed.
func (j *Journal) Destroyed(ctx context.Context, jobID string) error {
	return j.removeAll(ctx, func(e *entry) bool { return e.isFor(jobID) })
}

// removeAll removes the matching entries. An error means that some could not be removed.
func (j *Journal) removeAll(ctx context.Context, match func(*entry) bool) error {
	if j == nil {
		return nil
	}
	failed := j.ready(ctx)
	if failed != nil && j.named {
		return failed
	}
	j.mu.Lock()
	found := j.matching(match)
	for _, e := range found {
		delete(j.entries, e.id)
	}
	j.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	for _, e := range found {
		failed = errors.Join(failed, j.remove(ctx, e.id))
	}
	return failed
}

func (j *Journal) remove(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	_, err := j.store.remove(ctx, id)
	return j.failed("cleaned up", err)
}
