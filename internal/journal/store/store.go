// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package store keeps short texts under keys, in a folder or in a bucket. Each write names the version that it replaces, and
// is refused if the key has another one by then. What the texts say is no concern of this package.
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"
)

// Version identifies what a key held when it was read or written. It is empty if nothing was there. A bucket may derive it from
// the text, so that a key should never get the same text twice.
type Version string

// Listed is what a listing shows of a key.
type Listed struct {
	Version Version
	Written time.Time // by the store's clock
}

var (
	// ErrConflict reports that the condition of a write was not met: the key has another version. That may be due to the
	// caller's own write, which arrived while its response was lost: the libraries of the clouds repeat such a write, and the
	// second attempt is refused. A folder reports it, too, if somebody has already replaced what the caller wrote. So the caller
	// must read the key, and compare what is there with what it has written.
	ErrConflict = errors.New("another run has written it in the meantime")
	// ErrDenied reports that the store knows the credentials, and that they lack a right.
	ErrDenied = errors.New("the credentials lack a right")
)

// Store keeps the texts of one scope. Each method is bounded by its context. After any other error than ErrConflict and
// ErrDenied, a write may have arrived, or may still do so.
type Store interface {
	// String names the store in errors.
	String() string
	// Where names the folder or object of a key, for people.
	Where(key string) string
	// IsLocal reports whether the store is on disk: a write costs next to nothing.
	IsLocal() bool
	// List returns all keys, or an error. Files and objects with other names are not among them.
	List(ctx context.Context) (map[string]Listed, error)
	// Get returns what a key has. Without an error, an empty version means that there is nothing: the store itself says so.
	Get(ctx context.Context, key string) (text []byte, v Version, err error)
	// Put stores a text durably if the key has the version ifVersion, or, if that is empty, if nothing is there. If it is not
	// so, it returns ErrConflict.
	Put(ctx context.Context, key string, text []byte, ifVersion Version) (Version, error)
	// Prove makes sure that the store honours the conditions of writes, by writes that must be refused. Call it once in a process
	// before relying on Put; any number of processes may do so at the same time.
	Prove(ctx context.Context) error
}

const (
	// Suffix is what the name of each file and object ends in.
	Suffix = ".json"
	// MaxText bounds a text; the journal's are about 500 bytes long.
	MaxText = 64 << 10
)

var keys = regexp.MustCompile(`^[a-z0-9-]{1,62}$`)

// CheckKey keeps what is no key from becoming a part of a path.
func CheckKey(key string) error {
	if !keys.MatchString(key) {
		return fmt.Errorf("%q is not a key of the journal", key)
	}
	return nil
}

// CheckText refuses what ReadText would not return.
func CheckText(text []byte) error {
	if len(text) > MaxText {
		return fmt.Errorf("the text is longer than %d bytes", MaxText)
	}
	return nil
}

// ReadText reads a text to its end.
func ReadText(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxText+1))
	return text, errors.Join(err, CheckText(text))
}

// Discard returns a store that keeps nothing.
func Discard() Store { return discard{} }

type discard struct{}

func (discard) String() string                                       { return "" }
func (discard) Where(string) string                                  { return "" }
func (discard) IsLocal() bool                                        { return true }
func (discard) List(context.Context) (map[string]Listed, error)      { return nil, nil }
func (discard) Get(context.Context, string) ([]byte, Version, error) { return nil, "", nil }
func (discard) Put(context.Context, string, []byte, Version) (Version, error) {
	return "discarded", nil
}
func (discard) Prove(context.Context) error { return nil }

// Unusable returns a store whose settings cannot be used. That is no concern of a run until it needs the store.
func Unusable(name string, err error) Store { return unusable{name, err} }

type unusable struct {
	name string
	err  error
}

func (u unusable) String() string                                                { return u.name }
func (u unusable) Where(string) string                                           { return u.name }
func (unusable) IsLocal() bool                                                   { return true }
func (u unusable) List(context.Context) (map[string]Listed, error)               { return nil, u.err }
func (u unusable) Get(context.Context, string) ([]byte, Version, error)          { return nil, "", u.err }
func (u unusable) Put(context.Context, string, []byte, Version) (Version, error) { return "", u.err }
func (u unusable) Prove(context.Context) error                                   { return u.err }
