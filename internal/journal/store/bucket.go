// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// cloud is a bucket or container, with the settings that lead to it. Each cloud has a type of its own.
type cloud interface {
	// String is its URL, such as s3://ci-state.
	String() string
	// connect reads the credentials where they are kept. Nothing is requested of the bucket yet.
	connect(ctx context.Context, network http.RoundTripper) (objects, error)
	// grant says what allows to list, read, write or remove objects whose keys start with prefix.
	grant(op, prefix string) string
}

// objects are those of a bucket whose reads and listings show each write at once.
type objects interface {
	// list returns the keys that start with prefix.
	list(ctx context.Context, prefix string) iter.Seq2[string, error]
	// get returns an object and when it was written, or errNoObject, if the store says that there is none.
	get(ctx context.Context, key string) (io.ReadCloser, time.Time, error)
	// put stores an object, whether or not it exists.
	put(ctx context.Context, key string, body []byte) error
	// remove deletes an object, or returns errNoObject.
	remove(ctx context.Context, key string) error
	// isDenied reports whether the store knows the credentials, and they lack a right.
	isDenied(err error) bool
}

// noRedirect keeps a client from following a redirect, which could lead a token elsewhere.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

var errNoObject = errors.New("there is no such object")

// bucket keeps each entry in an object.
type bucket struct {
	cloud     cloud
	place     string // prefix of all scopes
	prefix    string // of the scope; ends in a slash
	network   http.RoundTripper
	connected atomic.Pointer[objects]
}

func (b *bucket) String() string         { return b.cloud.String() + "/" + b.prefix }
func (b *bucket) Where(name Name) string { return b.cloud.String() + "/" + b.key(name) }
func (b *bucket) key(name Name) string   { return b.prefix + name.String() + suffix }

// MarkSent, IsSent and RemoveUnsent keep no marks: one would cost a request of its own, and could be as late.
func (b *bucket) MarkSent(context.Context, Name) error             { return nil }
func (b *bucket) IsSent(context.Context, Name) (bool, error)       { return true, nil }
func (b *bucket) RemoveUnsent(context.Context, Name) (bool, error) { return true, nil }

// try connects the first time.
func (b *bucket) try(ctx context.Context, op string, do func(objects) error) error {
	connected := b.connected.Load()
	if connected == nil {
		reached, err := b.cloud.connect(ctx, b.network)
		if err != nil {
			return err
		}
		connected = &reached
		b.connected.Store(connected)
	}
	err := do(*connected)
	if err != nil && (*connected).isDenied(err) {
		return fmt.Errorf("the credentials lack %s: %w", b.cloud.grant(op, b.place), err)
	}
	return err
}

func (b *bucket) List(ctx context.Context, prefix string) (found []Name, _ error) {
	err := b.try(ctx, "list", func(o objects) error {
		for key, err := range o.list(ctx, b.prefix+prefix) {
			if err != nil {
				return err
			}
			name, ok, err := ofFile(strings.TrimPrefix(key, b.prefix))
			if err != nil {
				return err
			}
			if ok {
				found = append(found, name)
			}
		}
		return nil
	})
	return found, err
}

func (b *bucket) Read(ctx context.Context, name Name) (e *Entry, _ error) {
	err := b.try(ctx, "read", func(o objects) error {
		body, written, err := o.get(ctx, b.key(name))
		if errors.Is(err, errNoObject) {
			return nil
		}
		if err != nil {
			return err
		}
		defer func() { _ = body.Close() }()
		text, err := io.ReadAll(io.LimitReader(body, maxEntry))
		if err == nil {
			e = decode(text, written)
		}
		return err
	})
	return e, err
}

func (b *bucket) Write(ctx context.Context, name Name, e *Entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return b.try(ctx, "write", func(o objects) error { return o.put(ctx, b.key(name), text) })
}

func (b *bucket) Remove(ctx context.Context, name Name) error {
	return b.try(ctx, "remove", func(o objects) error {
		if err := o.remove(ctx, b.key(name)); !errors.Is(err, errNoObject) {
			return err
		}
		return nil
	})
}
