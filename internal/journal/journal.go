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
	index    index
}

// Open returns a journal without accessing its store yet.
func Open(process *cli.Process, options Options) *Journal {
	return over(options.Location.Open(Hash(options.Scope), process), process, options)
}

func over(s store.Store, process *cli.Process, options Options) *Journal {
	return &Journal{Options: options, store: s, process: process, proving: semaphore.NewWeighted(1)}
}

// InMemory returns a journal that ends with its provider configuration. No id of its requests outlives
// that, so they have none.
func InMemory() *Journal {
	return over(new(store.Memory), &cli.Process{Run: "this", Ended: func(cli.ProcessID) bool { return false }}, Options{})
}

// Keeps reports whether the journal outlives the process.
func (j *Journal) Keeps() bool {
	_, isMemory := j.store.(*store.Memory)
	return !isMemory
}

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
	r, err := decode(text.Body, key, j.Keeps())
	if err != nil {
		return nil, text, j.failed("read", fmt.Errorf("%s: %w", j.store.Name(key), err))
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
			now, _ = decode(there.Body, over.Key, j.Keeps()) // nil if it cannot be read
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

// settled returns the record of a name once no response to its claim can arrive any more. Until then
// it waits, by pause, whose error ends that.
func (j *Journal) settled(ctx context.Context, project, name string, pause func() error) (*Record, store.Text, error) {
	began, waitsFor := time.Now(), ""
	for {
		r, text, err := j.get(ctx, project, name)
		if err != nil || j.isOver(r.Claim) {
			return j.settle(r), text, err
		}
		if r.Claim.ID != waitsFor {
			began, waitsFor = time.Now(), r.Claim.ID
		}
		// The record can name any deadline, so there is a longest time to wait. After that, the deadline
		// has not passed here only because the clock of the other run is ahead.
		longest := 2*writeTime + max(longestRequest, j.RequestTimeout) + outcomeTime
		if time.Since(began) >= min(r.Claim.Deadline.Sub(r.Claim.SentAt), longest) {
			r.Claim.Deadline = time.Time{}
			return j.settle(r), text, nil
		}
		j.log(ctx, "waiting for the response to another run", r)
		if err := pause(); err != nil {
			return r, text, err
		}
	}
}

// Object is what a Delete knows of the object that it removes.
type Object struct {
	Project, Name, JobID string
	Arguments            string // as those of Wanted
	PromptHash           string // of the last prompt: see the function; empty if the state knows none
	Holder               string // as the state has it: see Record
	IsTainted            bool   // its Delete gets no private state, so no Holder to compare
}

// Free frees the name of an object that is removed. It does nothing if the name has another job by
// now, or if another object has adopted the job, which is then still wanted. leaves: no object with the
// name follows, so perhaps only the address has changed, and a create of this run may adopt the job.
func (j *Journal) Free(ctx context.Context, o Object, leaves bool) (isWanted bool, err error) {
	left := cli.Run("")
	if leaves {
		left = j.process.Run
	}
	err = j.edit(ctx, o, func(r *Record) (isChanged bool) {
		if leaves && r.Last == nil {
			j.restore(r, o)
		}
		isWanted = r.JobID == o.JobID && !r.IsFree() && !o.IsTainted && r.Holder != o.Holder
		if r.JobID != o.JobID || isWanted || r.Released && r.Left == left {
			return false
		}
		r.Released, r.Left = true, left
		j.log(ctx, "released", r)
		return true
	})
	return isWanted, err
}

// Keep makes sure that the record of a name has the job of an object that is perhaps replaced by the
// same one, also if the record was lost, and notes that this run has left the job to its create. If the
// name has another job by now, that stays, and the object's own is not wanted.
func (j *Journal) Keep(ctx context.Context, o Object) (isWanted bool, err error) {
	err = j.edit(ctx, o, func(r *Record) (isChanged bool) {
		if r.JobID != o.JobID && r.IsFree() && !j.IsLeft(r) { // what this run has left to another create stays
			j.restore(r, o)
		}
		if isWanted = r.JobID == o.JobID; isWanted {
			r.Released, r.Left = false, j.process.Run
		}
		return isWanted
	})
	return isWanted, err
}

// restore gives a name the job of an object that is in the state: its record was lost.
func (j *Journal) restore(r *Record, o Object) {
	if o.PromptHash == "" {
		return
	}
	request := j.request(o.Arguments)
	request.Prompt = o.PromptHash
	r.setLast(request, o.JobID)
	r.Holder = o.Holder
}

// edit changes the record of an object's name, once no response to its claim can arrive any more.
func (j *Journal) edit(ctx context.Context, o Object, change func(*Record) (isChanged bool)) error {
	if o.Name == "" || o.JobID == "" { // an imported job has no name yet
		return nil
	}
	// Ctrl-C ends a wait for another run, but not a write: "terraform test" destroys after it, too, and its
	// next run needs the names.
	call, ctx := ctx, context.WithoutCancel(ctx)
	pause := func() error { return sleep.For(call, pollInterval) }
	for range maxConflicts {
		r, text, err := j.settled(ctx, o.Project, o.Name, pause)
		if err != nil {
			return err
		}
		changed := *r
		if !change(&changed) {
			return nil
		}
		j.stamp(&changed)
		if _, _, err = j.put(ctx, &changed, text); !errors.Is(err, ErrTaken) {
			return err
		}
		if err = sleep.For(ctx, rand.N(pollInterval)); err != nil {
			return err
		}
	}
	return j.failed("written", errConflicts)
}

// request is one that this process sends now, without its prompt.
func (j *Journal) request(arguments string) *Request {
	r := &Request{Arguments: Hash(arguments), Sender: j.process.Self, SentAt: time.Now().UTC()}
	if j.Keeps() {
		r.ID = newID()
	}
	return r
}

// LastRequest returns the id of the last request for a job, by which a person can give it up, also
// if the name was released. It is empty if the store does not show one.
func (j *Journal) LastRequest(ctx context.Context, project, name, jobID string) (id string) {
	// The error that shows the id may be about the timeout of ctx.
	r, _, err := j.get(context.WithoutCancel(ctx), project, name)
	if r = j.settle(r); err == nil && r.JobID == jobID && r.Last != nil {
		return r.Last.ID
	}
	return ""
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
	return &Error{Store: j.store.Name(""), Op: op, Err: err, IsUnusable: j.Location.Unusable != nil}
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
