// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package bucket keeps texts in the objects of a bucket, whatever its cloud.
package bucket

import (
	"bytes"
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

// Kind is a cloud whose buckets keep a journal.
type Kind struct {
	Backend string // of the CLI
	Scheme  string // of URLs
	Example string // of a URL

	// Beside returns a place next to the state, which no listing of the backend's workspaces shows,
	// and Named the place that a URL leads to. Beside requires only the settings that locate a state.
	Beside func(*settings.Settings) (in Cloud, prefix string, _ error)
	Named  func(host, path string, _ *settings.Settings) (in Cloud, prefix string, _ error)

	Accepts  []string          // parameters of URLs, beside endpoint and state
	Locating map[string]string // settings of the backend that say which state it is, with what each is if it is null
}

// Cloud is a bucket or container, with the settings that lead to it. Each cloud has its own type.
type Cloud interface {
	// String is its URL, such as s3://ci-state.
	String() string
	// Connect reads the credentials where they are kept. Nothing is requested of the bucket yet.
	Connect(ctx context.Context, network http.RoundTripper) (Objects, error)
	// Grant says what allows to list, read or write objects whose keys start with prefix.
	Grant(op, prefix string) string
	// Never is a version that no object has.
	Never() store.Version
}

// Objects are those of a bucket. Reads and listings show each write at once. None is ever deleted.
type Objects interface {
	// List returns the keys of objects that start with prefix.
	List(ctx context.Context, prefix string) iter.Seq2[string, error]
	// Get returns an object and its version, or ErrNoObject, if the store says that there is none.
	Get(ctx context.Context, key string) (io.ReadCloser, store.Version, error)
	// Put stores an object if it has the version, or, if that is empty, if it does not exist.
	// Otherwise it returns store.ErrConflict or ErrNoObject.
	Put(ctx context.Context, key string, body []byte, ifVersion store.Version) (store.Version, error)
	// IsDenied reports whether the store knows the credentials, and they lack a right.
	IsDenied(err error) bool
}

// Tokens are those by which the pages of a listing follow each other.
type Tokens []string

// Add refuses a token that the listing has had: it would never end.
func (t *Tokens) Add(token string) error {
	if token != "" && slices.Contains(*t, token) {
		return errors.New("the listing repeats itself")
	}
	*t = append(*t, token)
	return nil
}

// RequestTimeout bounds a request. One for credentials needs that, because it is not cancelled with
// the call that made it, and all other calls wait for it.
const RequestTimeout = 10 * time.Second

// NoRedirect keeps a client from following a redirect, which could lead a token elsewhere.
func NoRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

var (
	// ErrNoObject reports that there is no such object, by the word of the store, not of a proxy.
	ErrNoObject  = errors.New("there is no such object")
	errNoVersion = errors.New("the response names no version of the object") // a proxy's perhaps
)

// Quoted is an ETag as a condition needs it: some stores leave out the quotes.
func Quoted(etag string) store.Version {
	if etag == "" || strings.Contains(etag, `"`) {
		return store.Version(etag)
	}
	return store.Version(`"` + etag + `"`)
}

// New returns the store of a scope below a prefix, without accessing it yet. network may be nil.
func New(cloud Cloud, prefix, scope string, network http.RoundTripper) store.Store {
	return &bucket{cloud: cloud, place: prefix, prefix: prefix + scope + "/", network: network}
}

// bucket keeps each text in an object.
type bucket struct {
	cloud     Cloud
	place     string // prefix of all scopes
	prefix    string // of the scope; ends in a slash
	network   http.RoundTripper
	connected atomic.Pointer[Objects]
}

func (b *bucket) Place() store.Place { return store.Place{Name: b.cloud.String() + "/" + b.prefix} }

// try calls do with the connected bucket, and connects if there is no connection yet.
func (b *bucket) try(ctx context.Context, op string, do func(Objects) error) error {
	connected := b.connected.Load()
	if connected == nil {
		reached, err := b.cloud.Connect(ctx, b.network)
		if err != nil {
			return err
		}
		connected = &reached
		b.connected.Store(connected)
	}
	err := do(*connected)
	if ctx.Err() != nil { // it may hang in a refresh of credentials: connect again next time
		b.connected.CompareAndSwap(connected, nil)
	}
	if err != nil && (*connected).IsDenied(err) {
		return deniedError{fmt.Errorf("the credentials may lack %s: %w", b.cloud.Grant(op, b.place), err)}
	}
	return err
}

// deniedError is an store.ErrDenied that names the right.
type deniedError struct{ error }

func (e deniedError) Unwrap() error      { return e.error }
func (deniedError) Is(target error) bool { return target == store.ErrDenied }

func (b *bucket) List(ctx context.Context) (keys []string, _ error) {
	err := b.try(ctx, "list", func(o Objects) error {
		for object, err := range o.List(ctx, b.prefix) {
			if err != nil {
				return err
			}
			key, isText := strings.CutSuffix(strings.TrimPrefix(object, b.prefix), store.Suffix)
			if isText && store.CheckKey(key) == nil {
				keys = append(keys, key)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return keys, nil
}

func (b *bucket) Get(ctx context.Context, key string) (store.Text, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Text{}, err
	}
	return b.get(ctx, "read", key)
}

func (b *bucket) get(ctx context.Context, op, key string) (store.Text, error) {
	text := store.Text{Key: key}
	err := b.try(ctx, op, func(o Objects) error {
		body, version, err := o.Get(ctx, b.prefix+key+store.Suffix)
		if errors.Is(err, ErrNoObject) {
			return nil
		}
		if err != nil {
			return err
		}
		defer func() { _ = body.Close() }()
		text.Body, err = store.ReadBody(body)
		if text.Version = version; version == "" {
			return errors.Join(err, errNoVersion)
		}
		return err
	})
	if err != nil {
		return store.Text{}, err
	}
	return text, nil
}

func (b *bucket) Put(ctx context.Context, over store.Text, body []byte) (store.Text, error) {
	if err := errors.Join(store.CheckKey(over.Key), store.CheckBody(body)); err != nil {
		return store.Text{}, err
	}
	return b.put(ctx, over, body)
}

func (b *bucket) put(ctx context.Context, over store.Text, body []byte) (store.Text, error) {
	written := store.Text{Key: over.Key, Body: body}
	err := b.try(ctx, "write", func(o Objects) (err error) {
		written.Version, err = o.Put(ctx, b.prefix+over.Key+store.Suffix, body, over.Version)
		switch {
		case errors.Is(err, ErrNoObject): // what was to be replaced has been deleted
			return store.ErrConflict
		case err == nil && written.Version == "":
			return errNoVersion
		}
		return err
	})
	if err != nil {
		return store.Text{}, err
	}
	return written, nil
}

// probe is the key of the object that Prove writes. Nothing else can have it.
const probe = "_conditions"

// Prove writes an object that nobody reads. Writes with wrong conditions must be refused, and one
// with the right condition must not: recording an outcome depends on that.
func (b *bucket) Prove(ctx context.Context) error {
	nothing, never := store.Text{Key: probe}, store.Text{Key: probe, Version: b.cloud.Never()}
	_, err := b.put(ctx, nothing, proof())
	if err == nil {
		_, err = b.put(ctx, nothing, proof())
	}
	switch {
	case err == nil:
		return b.ignores("If-None-Match", "although it exists")
	case !errors.Is(err, store.ErrConflict):
		return err
	}
	if _, err = b.put(ctx, never, proof()); err == nil {
		return b.ignores("If-Match", "although the request named another version of it")
	}
	if !errors.Is(err, store.ErrConflict) {
		return err
	}
	return b.proveChange(ctx)
}

// proveChange replaces what is there. Other processes may do so at the same time.
func (b *bucket) proveChange(ctx context.Context) error {
	for range 10 {
		before, err := b.get(ctx, "write", probe)
		if err != nil {
			return err
		}
		body := proof()
		written, err := b.put(ctx, before, body)
		isRefused := errors.Is(err, store.ErrConflict)
		if err != nil && !isRefused {
			return err
		}
		now, err := b.get(ctx, "write", probe)
		isThere := bytes.Equal(now.Body, body)
		switch {
		case err != nil:
			return err
		case isThere && (isRefused || now.Version == written.Version), !isThere && !isRefused:
			// It is there, also if the response was lost, or another process has replaced it since.
			return nil
		case isThere, now.Version == before.Version:
			return fmt.Errorf("the store does not accept the version that it names itself, so what is sent could not be recorded "+
				"(perhaps a proxy changes ETags): %s is %s there, and was %s", b.Place().Of(probe), now.Version, before.Version)
		}
		if err := sleep.For(ctx, rand.N(100*time.Millisecond)); err != nil {
			return err
		}
	}
	return store.ErrConflict
}

// proof is a text that nobody else writes.
func proof() []byte {
	return fmt.Appendf(nil, "{\"about\": \"The store must refuse to replace this, but by name.\", \"write\": %q}\n", cryptorand.Text())
}

func (b *bucket) ignores(condition, how string) error {
	return fmt.Errorf("the store ignores the condition of a write (%s), so two runs could send one prompt: it replaced %s, %s",
		condition, b.Place().Of(probe), how)
}
