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
	"sync"
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

	failing  sync.Once
	proving  *semaphore.Weighted // no mutex, because a cancelled call must stop waiting
	isProven bool
	left     sync.Map // by key: see Leave
	index    index
}

// Open returns a journal without accessing its store yet.
func Open(process *cli.Process, options Options) *Journal {
	return over(options.Location.Open(Hash(options.Scope), process), process, options)
}

func over(s store.Store, process *cli.Process, options Options) *Journal {
	return &Journal{Options: options, store: s, process: process, proving: semaphore.NewWeighted(1)}
}

// Discard returns a journal that keeps nothing.
func Discard() *Journal { return over(store.Discard(), new(cli.Process), Options{}) }

// Keeps reports whether the journal keeps anything.
func (j *Journal) Keeps() bool { return j.store != store.Discard() }

// Unusable is why the settings that lead to the journal cannot be used, or nil.
func (j *Journal) Unusable() error { return j.failed("written", j.Location.Unusable) }

// FirstError returns an error of the store if it is the first one: one is enough for a run.
func (j *Journal) FirstError(err error) (first error) {
	if err != nil {
		j.failing.Do(func() { first = err })
	}
	return first
}

// get returns the record of a name, and the text that it was read from. Without one, the record is
// free.
func (j *Journal) get(ctx context.Context, project, name string) (*Record, store.Text, error) {
	r, text, err := j.read(ctx, key(project, name))
	if r == nil {
		r = &Record{Project: project, Name: name}
	}
	return r, text, err
}

// read returns no record if there is none.
func (j *Journal) read(ctx context.Context, key string) (*Record, store.Text, error) {
	text, err := j.getText(ctx, key)
	if err != nil || !text.Exists() {
		return nil, text, j.failed("read", err)
	}
	r, err := decode(text.Body, key)
	if err != nil {
		return nil, text, j.failed("read", fmt.Errorf("%s: %w", j.store.Place().Of(key), err))
	}
	return r, text, nil
}

// stamp gives a record a new Write, by which its writer recognizes it. It must not be changed
// afterwards, because keep may still be writing it in the background.
func (j *Journal) stamp(r *Record) {
	r.Format, r.Write = format, newID()
}

// put writes a stamped record over the text that was read. The error is ErrTaken if another run has
// written meanwhile: then now is what it has written, as far as that can be read, and there its
// text.
func (j *Journal) put(ctx context.Context, r *Record, over store.Text) (there store.Text, now *Record, _ error) {
	if !j.Keeps() {
		return over, nil, nil
	}
	body, err := json.Marshal(r)
	if err != nil {
		return over, nil, err
	}
	for range maxConflicts {
		there, err := j.putText(ctx, over, body)
		if err == nil {
			return there, nil, nil
		}
		// The response may be lost, or a library may have repeated a write that had arrived.
		there, readErr := j.getText(context.WithoutCancel(ctx), over.Key)
		switch {
		case readErr == nil && bytes.Equal(there.Body, body):
			return there, nil, nil
		case !errors.Is(err, store.ErrConflict):
			return over, nil, j.failed("written", err)
		case readErr != nil: // the conflict may be with this write itself
			return over, nil, j.failed("read", readErr)
		case there.Version != over.Version:
			now, _ = decode(there.Body, over.Key) // nil if it cannot be read
			return there, now, ErrTaken
		}
		// Nothing shows the other write yet.
		if err = sleep.For(ctx, rand.N(pollInterval)); err != nil {
			return over, nil, err
		}
	}
	return over, nil, j.failed("written", errConflicts)
}

func (j *Journal) getText(ctx context.Context, key string) (store.Text, error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	return j.store.Get(ctx, key)
}

func (j *Journal) putText(ctx context.Context, over store.Text, body []byte) (store.Text, error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	return j.store.Put(ctx, over, body)
}

// prove makes sure, once in a process, that the store honours the condition of a write.
func (j *Journal) prove(ctx context.Context) error {
	if !j.Keeps() {
		return nil
	}
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

// AnyAdoption stands for whichever adoption a record has. The Delete of a tainted object passes it,
// because it gets no private state, in which the object could have kept its own.
const AnyAdoption = "any"

// Release frees the name of a job that is destroyed or replaced, also while a message to the job
// waits for its response. It does nothing if the name has another job by now, if a create has no
// known outcome, or if another object has adopted the job, which is then still wanted.
func (j *Journal) Release(ctx context.Context, project, name, jobID, adoption string) error {
	if !j.Keeps() || name == "" || jobID == "" { // an imported job has no name yet
		return nil
	}
	ctx = context.WithoutCancel(ctx) // "terraform test" destroys after Ctrl-C, too, and its next run needs the names
	for range maxConflicts {
		r, text, err := j.get(ctx, project, name)
		if err != nil {
			return err
		}
		if r.Claim != nil && r.Claim.Job == jobID {
			r = r.withUnknown()
		} else if j.isOver(r.Claim) {
			r = j.settle(r)
		}
		if r.Claim != nil || r.Job != jobID || r.Released || adoption != AnyAdoption && r.Adoption != adoption {
			return nil
		}
		r.Released = true
		j.log(ctx, "released", r)
		j.stamp(r)
		if _, _, err = j.put(ctx, r, text); !errors.Is(err, ErrTaken) {
			return err
		}
		if err = sleep.For(ctx, rand.N(pollInterval)); err != nil {
			return err
		}
	}
	return j.failed("written", errConflicts)
}

// LastRequest returns the id of the last request for a job, by which a person can give it up, also
// if the name was released. It is empty if the store does not show one.
func (j *Journal) LastRequest(ctx context.Context, project, name, jobID string) (id string) {
	// The error that shows the id may be about the timeout of ctx.
	r, _, err := j.get(context.WithoutCancel(ctx), project, name)
	if r = j.settle(r); err == nil && r.Job == jobID && r.Last != nil {
		return r.Last.ID
	}
	return ""
}

// Left is the job of a resource that has left the state in this process, as the state knew it.
type Left struct {
	Job       string
	Arguments string // as text
	Prompt    string // the hash of the last prompt, salted with the job
	KeepsName bool   // the create replaces this resource, and no other one gets the name
}

// Leave keeps a job for a create of this process that sends the same request, whatever the record
// of the name says: its resource is tainted, or perhaps only has another address now. It writes no
// record, so a later run does not adopt what this one destroys.
func (j *Journal) Leave(project, name string, l Left) { j.left.Store(key(project, name), l) }

// leftFor returns the job that was left for a request; empty without one.
func (j *Journal) leftFor(w Wanted) (jobID string) {
	if l := j.leftBy(w); w.Job == "" && l.Arguments == w.Arguments && l.Prompt == Hash(l.Job, w.Prompt) {
		return l.Job
	}
	return ""
}

// leftBy returns what a Delete has left to a create of the name, whatever that wants.
func (j *Journal) leftBy(w Wanted) Left {
	value, _ := j.left.Load(key(w.Project, w.Name))
	l, _ := value.(Left)
	return l
}

func (j *Journal) log(ctx context.Context, decision string, r *Record) {
	if j.Log != nil {
		j.Log(ctx, decision, r.Name, r.Job)
	}
}

// failed makes an error of the store an *Error; nil stays nil.
func (j *Journal) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Store: j.store.Place().Name, Op: op, Err: err, IsUnusable: j.Location.Unusable != nil}
}

// Error reports that a journal could not be used.
type Error struct {
	Store string // where the journal is kept
	Op    string // what was tried: "read", "listed", "written"
	Err   error

	IsUnusable bool // the settings that lead there cannot be used: trying again does not help
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
