// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package store keeps short texts under keys, in a folder or in a bucket, whatever they say. Each
// write names the version that it replaces, and is refused if the key has another one by then.
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"sync"
)

// Store keeps the texts of one scope, for any number of processes on any number of machines at the
// same time. That no prompt is sent twice depends on what it guarantees:
//
//   - A read or a listing that begins after a write has returned, in whatever process, shows that
//     write or a later one. So nothing that is eventually consistent can be a store.
//   - Of the writes that replace one version, one succeeds, and all others return ErrConflict.
//   - A version is not used twice for a key, provided that no text is written to it twice.
//   - A write that has returned survives a loss of power. No reader sees a part of a text.
//   - Only the store itself can say that there is no text, or that a right is missing. What a proxy
//     may have said, or a folder that is not mounted, is an error: if it were believed, each prompt
//     would be sent again.
//   - After any other error than ErrConflict and ErrDenied, a write may have arrived, or still arrive.
//   - Each method returns when its context ends, unless the system does not let it. All of them are
//     safe for concurrent use.
//   - No error shows credentials.
//
// storetest.Run tries most of this at a store.
type Store interface {
	// Name names the folder or object of a key, or without a key what all of them have in common.
	Name(key string) string
	// WritesAreCheap reports whether a write costs next to nothing, so that a claim may take two.
	WritesAreCheap() bool
	// List returns all keys that have a text, in any order. Other files and objects are left out.
	List(ctx context.Context) (keys []string, err error)
	// Get returns what a key has, which may be no text.
	Get(ctx context.Context, key string) (Text, error)
	// Put stores a text over what was read or written.
	Put(ctx context.Context, over Text, body []byte) (Text, error)
	// Prove makes sure, by writes that must be refused, that the store honours their conditions. Call
	// it once in a process before relying on Put; other processes may do so at the same time.
	Prove(ctx context.Context) error
}

// Version identifies what a key had when it was read or written. It is empty if nothing was there. A
// bucket may derive it from the text.
type Version string

// Text is what a key had when it was read or written. With only Key set, there was no text.
type Text struct {
	Key     string
	Body    []byte
	Version Version
}

// Exists reports whether the key had a text.
func (t Text) Exists() bool { return t.Version != "" }

var (
	// ErrConflict reports that the key has another version than the one to replace. The caller must
	// then read it and compare, because that may be its own write: the libraries of the clouds repeat
	// a write whose response was lost, and a folder reports a conflict if somebody has replaced what
	// was just written.
	ErrConflict = errors.New("another run has written it in the meantime")
	// ErrDenied reports that the store knows the credentials, and that they lack a right.
	ErrDenied = errors.New("the credentials lack a right")
)

const (
	// Suffix is what the name of each file and object ends in. It is none that people look for in
	// their working directory, as fileset("**/*.json") does.
	Suffix = ".record"
	// MaxText bounds a text; the journal's are about 500 bytes long.
	MaxText = 64 << 10
)

var keyPattern = regexp.MustCompile(`^[a-z0-9-]{1,62}$`)

// CheckKey keeps what is no key from becoming a part of a path.
func CheckKey(key string) error {
	if !keyPattern.MatchString(key) {
		return fmt.Errorf("%q is not a key of the journal", key)
	}
	return nil
}

// CheckBody refuses what ReadBody would not return.
func CheckBody(body []byte) error {
	if len(body) > MaxText {
		return fmt.Errorf("the text is longer than %d bytes", MaxText)
	}
	return nil
}

// ReadBody reads a text to its end.
func ReadBody(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, MaxText+1))
	return body, errors.Join(err, CheckBody(body))
}

// Memory is a store that ends with its process.
type Memory struct {
	mu    sync.Mutex
	texts map[string]Text
}

// Name is empty: it is nowhere.
func (m *Memory) Name(string) string { return "" }

// WritesAreCheap is true.
func (m *Memory) WritesAreCheap() bool { return true }

// List returns the keys.
func (m *Memory) List(context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.texts)), nil
}

// Get returns what a key has.
func (m *Memory) Get(_ context.Context, key string) (Text, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.texts[key]
	t.Key = key
	return t, nil
}

// Put stores a text.
func (m *Memory) Put(_ context.Context, over Text, body []byte) (Text, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.texts[over.Key].Version != over.Version {
		return Text{}, ErrConflict
	}
	if m.texts == nil {
		m.texts = map[string]Text{}
	}
	t := Text{Key: over.Key, Body: body, Version: over.Version + "+"}
	m.texts[over.Key] = t
	return t, nil
}

// Prove has nothing to prove.
func (m *Memory) Prove(context.Context) error { return nil }

// Misconfigured returns a store whose settings cannot be used: each access fails with the error.
func Misconfigured(name string, err error) Store { return misconfigured{name, err} }

type misconfigured struct {
	name string
	err  error
}

func (u misconfigured) Name(string) string                              { return u.name }
func (u misconfigured) WritesAreCheap() bool                            { return true }
func (u misconfigured) List(context.Context) ([]string, error)          { return nil, u.err }
func (u misconfigured) Get(context.Context, string) (Text, error)       { return Text{}, u.err }
func (u misconfigured) Put(context.Context, Text, []byte) (Text, error) { return Text{}, u.err }
func (u misconfigured) Prove(context.Context) error                     { return u.err }
