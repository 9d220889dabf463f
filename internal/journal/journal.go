// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package journal keeps a record for each name: of the job that has it, and of the last request for
// it. A record is only written over what its writer has read, so of two runs that want to send a
// request for one name, one does. See the rules in internal/README.md.
package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/place"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

const (
	// opTimeout bounds each access to a store.
	opTimeout = 10 * time.Second
	// maxConflicts is how often a write is tried again because somebody else has written first each
	// time. No store is that busy.
	maxConflicts = 10
)

var errConflicts = errors.New("the store refuses each write, as if other runs had written meanwhile")

// Options configure a journal.
type Options struct {
	place.Place
	// Forget lists ids of requests that a person has given up.
	Forget []string
	// RequestTimeout is the longest time between a POST and its response.
	RequestTimeout time.Duration
	// Log receives each decision about a name. It may be nil.
	Log func(ctx context.Context, decision, name, jobID string)
}

// Journal keeps the records of one provider configuration. It is safe for concurrent use. The
// errors of its store are *Error.
type Journal struct {
	Options

	store   store.Store
	process *cli.Process

	proving  *semaphore.Weighted // no mutex, because a cancelled call must stop waiting
	isProven bool
	index    index
}

// Open returns a journal without accessing its store yet.
func Open(process *cli.Process, options Options) *Journal {
	return New(options.Location.Open(Hash(options.Scope), process), process, options)
}

// New returns a journal in a store.
func New(s store.Store, process *cli.Process, options Options) *Journal {
	return &Journal{Options: options, store: s, process: process, proving: semaphore.NewWeighted(1)}
}

// InMemory returns a journal that ends with its provider configuration. No id of its requests outlives
// that, so they have none.
func InMemory() *Journal {
	return New(new(store.Memory), &cli.Process{Run: "this", Ended: func(cli.ProcessID) bool { return false }}, Options{})
}

// IsDurable reports whether the journal outlives the process.
func (j *Journal) IsDurable() bool {
	_, isMemory := j.store.(*store.Memory)
	return !isMemory
}

// Misconfigured is why the settings that lead to the journal cannot be used, or nil.
func (j *Journal) Misconfigured() error { return j.failed("written", j.Location.Misconfigured) }

// read returns the record of a key, and the text that it was read from. Without one, both are empty.
func (j *Journal) read(ctx context.Context, key string) (*Record, store.Text, error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	text, err := j.store.Get(ctx, key)
	if err != nil || !text.Exists() {
		return nil, text, j.failed("read", err)
	}
	r, err := decode(text.Body, key, j.IsDurable())
	if err != nil {
		return nil, text, j.failed("read", fmt.Errorf("%s: %w", j.store.Name(key), err))
	}
	return r, text, nil
}

// put writes a stamped record over a text that was read, or over one of the caller's own writes, whose
// response may have been lost. The error is ErrTaken if another run has written meanwhile.
func (j *Journal) put(ctx context.Context, r *Record, text store.Text, own []string) (store.Text, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return text, err
	}
	failed := errConflicts
	for range maxConflicts {
		short, cancel := context.WithTimeout(ctx, opTimeout)
		written, err := j.store.Put(short, text, body)
		cancel()
		if err == nil {
			return written, nil
		}
		// The response may be lost, or a library may have repeated a write that had arrived.
		other, current, readErr := j.read(context.WithoutCancel(ctx), text.Key)
		switch isThere := bytes.Equal(current.Body, body); {
		case isThere && j.store.WritesAreCheap(): // a loss of power may still undo it, so it is written again
			failed, text = err, current
		case isThere:
			return current, nil
		case !errors.Is(err, store.ErrConflict):
			return text, j.failed("written", err)
		case readErr != nil && !current.Exists(): // the conflict may be with this write itself
			return text, readErr
		case current.Version == text.Version: // nothing shows the other write yet
			if err := sleep.For(ctx, rand.N(pollInterval)); err != nil {
				return text, err
			}
		case other != nil && slices.Contains(own, other.Write):
			text = current
		default:
			return text, ErrTaken
		}
	}
	return text, j.failed("written", failed)
}

// prove makes sure, once in a process, that the store honours the condition of a write.
func (j *Journal) prove(ctx context.Context) error {
	if j.proving.Acquire(ctx, 1) != nil {
		return context.Cause(ctx)
	}
	defer j.proving.Release(1)
	if j.isProven {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	err := j.store.Prove(ctx)
	j.isProven = err == nil
	return j.failed("written", err)
}

// awaitRecord returns the record of a name once no response to its claim can arrive any more. Until then
// it waits. Without a record, it returns an empty one.
func (j *Journal) awaitRecord(ctx context.Context, project, name string) (*Record, store.Text, error) {
	began, waitsFor := time.Now(), ""
	for {
		// Ctrl-C ends the wait for another run, but cancels no access to the store: after it, "terraform test"
		// still destroys, and its next run needs the names.
		r, text, err := j.read(context.WithoutCancel(ctx), key(project, name))
		if r == nil {
			return &Record{Project: project, Name: name}, text, err
		}
		if s := j.asOfNow(r); s.Claim == nil {
			return s, text, nil
		}
		if r.Claim.ID != waitsFor {
			began, waitsFor = time.Now(), r.Claim.ID
		}
		// A claim that has lasted its whole time, as this machine measures it, is over: the other run's clock is
		// ahead.
		if time.Since(began) >= r.Claim.Deadline.Sub(r.Claim.SentAt) {
			r.Claim.Deadline = time.Time{}
			return j.asOfNow(r), text, nil
		}
		j.log(ctx, "waiting for the response to another run", r)
		if err := sleep.For(ctx, pollInterval); err != nil {
			return r, text, err
		}
	}
}

// asOfNow returns what a record says now. Once no response to its claim can arrive any more, the claim
// becomes the last request, with an unknown outcome; until then it stays a claim. An Unsent one counts
// as none, also while its sender lives: whoever writes over it takes the name, because BeforeBody of
// the sender then finds another record and sends nothing.
func (j *Journal) asOfNow(r *Record) *Record {
	switch {
	case r.Claim == nil:
		return r
	case r.Claim.Unsent:
		s := *r
		s.Claim = nil
		return &s
	case j.process.Ended(r.Claim.Sender), time.Now().After(r.Claim.Deadline):
		return r.withUnknown()
	}
	return r
}

// IsGivenUp reports whether a person has given up a request. No request has an empty id.
func (j *Journal) IsGivenUp(id string) bool { return id != "" && slices.Contains(j.Forget, id) }

// IsLeftOrKeptByThisRun reports whether a Delete of this run has left or kept the job of a record for a create.
func (j *Journal) IsLeftOrKeptByThisRun(r *Record) bool {
	return (r.Fate == Leave || r.Fate == Keep) && r.FateBy == j.process.Run
}

// edit changes the record of a name, once no response to its claim can arrive any more.
func (j *Journal) edit(ctx context.Context, project, name string, change func(*Record) (isChanged bool)) error {
	for range maxConflicts {
		r, text, err := j.awaitRecord(ctx, project, name)
		if err != nil {
			return err
		}
		changed := *r
		if !change(&changed) {
			return nil
		}
		changed.stamp()
		if _, err = j.put(context.WithoutCancel(ctx), &changed, text, nil); !errors.Is(err, ErrTaken) {
			return err
		}
		if err = sleep.For(ctx, rand.N(pollInterval)); err != nil {
			return err
		}
	}
	return j.failed("written", errConflicts)
}

// newEntry is a request that this process sends now, without its prompt.
func (j *Journal) newEntry(arguments string) *Entry {
	e := &Entry{Arguments: Hash(arguments), Sender: j.process.Self, SentAt: time.Now().UTC()}
	if j.IsDurable() {
		e.ID = newID()
	}
	return e
}

// LastRequest returns the id of the last request for a job, by which a person can give it up, also
// if the name was released. It is empty if the store does not show one.
func (j *Journal) LastRequest(ctx context.Context, project, name, jobID string) (id string, _ error) {
	// ctx may have expired already, and the id is for the text of that error.
	r, _, err := j.read(context.WithoutCancel(ctx), key(project, name))
	if r == nil {
		return "", err
	}
	r = j.asOfNow(r)
	switch {
	case r.Claim != nil && r.Claim.Recipient == jobID:
		return r.Claim.ID, nil
	case r.JobID == jobID && r.Last != nil:
		return r.Last.ID, nil
	}
	return "", nil
}

func (j *Journal) log(ctx context.Context, decision string, r *Record) {
	if j.Log != nil {
		j.Log(ctx, decision, r.Name, r.JobID)
	}
}

// failed makes an error of the store an *Error; nil stays nil.
func (j *Journal) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Store: j.store.Name(""), Op: op, Err: err, IsMisconfigured: j.Location.Misconfigured != nil}
}

// Error reports that a journal could not be used.
type Error struct {
	Store string // where the journal is kept
	Op    string // what was tried: "read", "listed", "written"
	Err   error

	IsMisconfigured bool // the settings that lead there cannot be used: trying again does not help
}

// Error says what failed, and in which store.
func (e *Error) Error() string {
	if e.Store == "" { // its settings do not lead to one
		return fmt.Sprintf("the journal could not be %s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("the journal in %s could not be %s: %v", e.Store, e.Op, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
