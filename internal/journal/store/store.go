// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package store keeps the journal's entries, in a folder or in a bucket. What a reader
// must know to find an entry is in its name, so that a listing is an index.
package store

import (
	"context"
	"path/filepath"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
)

// Store keeps the entries of one scope. Each method is bounded by its context.
type Store interface {
	// String names the store in errors.
	String() string
	// Where names the file or object of an entry.
	Where(name Name) string
	// List returns the names that start with prefix. An entry that was written before the
	// call, and not removed, is among them, or is an error if its name is not one of this version.
	List(ctx context.Context, prefix string) ([]Name, error)
	// Read returns an entry, or nil if it does not exist.
	Read(ctx context.Context, name Name) (*Entry, error)
	// Write stores an entry durably, whether or not it exists.
	Write(ctx context.Context, name Name, e *Entry) error
	// Remove deletes an entry that may not exist.
	Remove(ctx context.Context, name Name) error
	// MarkSent is called just before the request of a pending entry is sent. It fails if the entry does not exist.
	// The mark need not survive a crash of the machine: see IsSent.
	MarkSent(ctx context.Context, name Name) error
	// IsSent reports whether the request of a pending entry may have been sent. It is asked only if the entry's sender
	// has ended on this machine, as it is since its start. A store that keeps no marks says that it was.
	IsSent(ctx context.Context, name Name) (bool, error)
	// RemoveUnsent deletes an entry unless its request may have been sent, and reports whether it was.
	// Afterwards, MarkSent fails, even if the sender has not ended after all.
	RemoveUnsent(ctx context.Context, name Name) (isSent bool, _ error)
}

// Open returns the store for the entries of a scope, without accessing it yet.
func Open(l Location, scope string, process *cli.Process) Store {
	if l.cloud != nil {
		return &bucket{cloud: l.cloud, place: l.Prefix, prefix: l.Prefix + scope + "/", network: process.Network}
	}
	return &folder{l.Folder, l.Default, filepath.Join(l.Folder, scope), syncDir}
}

// Discard returns a store that keeps nothing.
func Discard() Store { return discard{} }

type discard struct{}

func (discard) String() string                               { return "" }
func (discard) Where(Name) string                            { return "" }
func (discard) List(context.Context, string) ([]Name, error) { return nil, nil }
func (discard) Read(context.Context, Name) (*Entry, error)   { return nil, nil }
func (discard) Write(context.Context, Name, *Entry) error    { return nil }
func (discard) Remove(context.Context, Name) error           { return nil }
func (discard) MarkSent(context.Context, Name) error         { return nil }
func (discard) IsSent(context.Context, Name) (bool, error)   { return true, nil }
func (discard) RemoveUnsent(context.Context, Name) (bool, error) {
	return true, nil
}
