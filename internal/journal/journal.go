// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package journal records requests whose outcome may be missing in the CLI's state.
//
// Only the state proves that nothing was lost. So an entry is removed once a later
// run has seen its outcome in the state. See the rules in internal/README.md.
package journal

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
)

// opTimeout bounds each access to a store. A POST whose record took longer is not sent.
const opTimeout = 10 * time.Second

// Key identifies equal requests.
type Key = store.Key

// Place is where the entries of one state are kept.
type Place struct {
	Location store.Location
	Scope    string // distinguishes states
}

// Options configure a journal.
type Options struct {
	Place
	// Elsewhere are other places where earlier runs may have kept the journal of this state.
	Elsewhere []Place
	// Forget lists ids of entries that a person has given up.
	Forget []string
	// RequestTimeout is the longest time between a POST and its response.
	RequestTimeout time.Duration
	// Log receives each decision about an entry. It may be nil.
	Log func(ctx context.Context, decision, entry, jobID string)
}

// Journal records the requests of one provider configuration. It is safe for concurrent
// use. The errors of its store are *Error.
type Journal struct {
	Options

	store   store.Store
	process *cli.Process

	known
	plan
	pruner  pruner
	failing sync.Once
}

// Open returns a journal without accessing its store yet.
func Open(process *cli.Process, options Options) *Journal {
	return &Journal{Options: options, store: options.open(process), process: process}
}

func (p Place) open(process *cli.Process) store.Store {
	return store.Open(p.Location, store.Hash(p.Scope), process)
}

// Discard returns a journal that keeps nothing.
func Discard() *Journal { return &Journal{store: store.Discard(), process: new(cli.Process)} }

// Keeps reports whether the journal keeps anything.
func (j *Journal) Keeps() bool { return j.store != store.Discard() }

// FirstError returns an error of the store if it is the first one: one is enough for a run.
func (j *Journal) FirstError(err error) (first error) {
	if err != nil {
		j.failing.Do(func() { first = err })
	}
	return first
}

// list returns the names of entries that other runs have written and no call has dealt with.
func (j *Journal) list(ctx context.Context, prefix string) ([]store.Name, error) {
	names, err := j.listAll(ctx, prefix)
	return j.ofOthers(names), err
}

func (j *Journal) listAll(ctx context.Context, prefix string) ([]store.Name, error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	names, err := j.store.List(ctx, prefix)
	return names, j.failed("listed", err)
}

func (j *Journal) ofOthers(names []store.Name) []store.Name {
	return slices.DeleteFunc(slices.Clone(names), func(name store.Name) bool {
		return name.Run == j.process.Run || j.isDealtWith(name.ID)
	})
}

func (j *Journal) write(ctx context.Context, name store.Name, e *store.Entry) error {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	return j.failed("written", j.store.Write(ctx, name, e))
}

func (j *Journal) markSent(ctx context.Context, name store.Name) error {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	return j.failed("written", j.store.MarkSent(ctx, name))
}

func (j *Journal) remove(ctx context.Context, name store.Name) error {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	return j.failed("cleaned up", j.store.Remove(ctx, name))
}

func (j *Journal) log(ctx context.Context, decision string, name store.Name, jobID string) {
	if j.Log != nil {
		j.Log(ctx, decision, name.String(), jobID)
	}
}

func (j *Journal) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Store: j.store.String(), Op: op, Err: err}
}

// Error reports that a journal could not be used.
type Error struct {
	Store string // where the journal is kept
	Op    string // what was tried: "read", "listed", "written", "cleaned up"
	Err   error
}

// Error says what failed, and in which store.
func (e *Error) Error() string {
	return fmt.Sprintf("the journal in %s could not be %s: %v", e.Store, e.Op, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
