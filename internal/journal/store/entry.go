// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package store keeps the journal's entries, in a folder or in a bucket. What a reader
// must know to find an entry is in its name, so that a listing is an index.
package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
)

const (
	suffix = ".json"
	// maxEntry bounds what is read as an entry; they are about 300 bytes long.
	maxEntry = 64 << 10
)

// Entry is the record of one POST. Only its writer changes it; others read or delete it.
type Entry struct {
	Project  string     `json:"project"`
	JobID    string     `json:"job,omitempty"`      // of a message: its recipient; of a create: the new job, once accepted
	Accepted bool       `json:"accepted,omitempty"` // the service accepted it
	Sender   cli.Sender `json:"sender"`
	SentAt   time.Time  `json:"sent"`              // by the sender's clock; of a claim, when it was made
	Wait     int64      `json:"wait,omitempty"`    // of a pending one: ms in which a response can arrive; 0 confirms a claim
	Settles  []string   `json:"settles,omitempty"` // of an accepted message: names of those that were there when it was sent
}

// MaxWait is how long after it was sent a response can arrive.
func (e *Entry) MaxWait() time.Duration { return time.Duration(e.Wait) * time.Millisecond }

// decode reads an entry. A damaged one may be about any request, so it is one without a response.
func decode(text []byte, written time.Time) *Entry {
	e := new(Entry)
	if json.Unmarshal(text, e) != nil || e.Accepted && e.JobID == "" {
		return &Entry{SentAt: written}
	}
	return e
}

// Store keeps the entries of one scope. Each method is bounded by its context.
type Store interface {
	// String names the store in errors.
	String() string
	// Where names the file or object of an entry.
	Where(name Name) string
	// List returns the names that start with prefix. An entry that was written before the
	// call, and not removed, is among them.
	List(ctx context.Context, prefix string) ([]Name, error)
	// Read returns an entry, or nil if it does not exist.
	Read(ctx context.Context, name Name) (*Entry, error)
	// Write stores an entry durably, whether or not it exists.
	Write(ctx context.Context, name Name, e *Entry) error
	// Remove deletes an entry that may not exist.
	Remove(ctx context.Context, name Name) error
}

// Discard is a store that keeps nothing.
type Discard struct{}

var _ Store = Discard{}

// String is empty: nothing in it can fail.
func (Discard) String() string { return "" }

// Where is empty.
func (Discard) Where(Name) string { return "" }

// List returns no names.
func (Discard) List(context.Context, string) ([]Name, error) { return nil, nil }

// Read finds nothing.
func (Discard) Read(context.Context, Name) (*Entry, error) { return nil, nil }

// Write does nothing.
func (Discard) Write(context.Context, Name, *Entry) error { return nil }

// Remove does nothing.
func (Discard) Remove(context.Context, Name) error { return nil }
