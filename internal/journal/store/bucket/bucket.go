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

	// Beside returns a place next to where the backend keeps a state, which no listing of its workspaces meets, and Named the place
	// that a URL leads to. Beside needs no other setting than those that locate a state.
	Beside func(*settings.Settings) (in Cloud, prefix string, _ error)
	Named  func(host, path string, _ *settings.Settings) (in Cloud, prefix string, _ error)

	Accepts  []string          // parameters of URLs, beside endpoint and state
	Locating map[string]string // settings of the backend that say which state it is, with what each is if it is null
}

// Cloud is a bucket or container, with the settings that lead to it. Each cloud has a type of its own.
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

// Objects are those of a bucket whose reads and listings show each write at once. None is ever deleted.
type Objects interface {
	// List returns the objects whose keys start with prefix.
	List(ctx context.Context, prefix string) iter.Seq2[Object, error]
	// Get returns an object and its version, or ErrNoObject, if the store says that there is none.
	Get(ctx context.Context, key string) (io.ReadCloser, store.Version, error)
	// Put stores an object if it has the version, or does not exist if that is empty. Otherwise it returns store.ErrConflict, or
	// ErrNoObject.
	Put(ctx context.Context, key string, body []byte, ifVersion store.Version) (store.Version, error)
	// IsDenied reports whether the store knows the credentials, and they lack a right.
	IsDenied(err error) bool
}

// Object is one in a listing.
type Object struct {
	Key string
	store.Listed
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

// RequestTimeout bounds a request. One for credentials outlives the call that needs them, and all others wait for it.
const RequestTimeout = 10 * time.Second

// NoRedirect keeps a client from following a redirect, which could lead a token elsewhere.
func NoRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

var (
	// ErrNoObject reports that the store itself says so.
	ErrNoObject  = errors.New("there is no such object")
	errNoVersion = errors.New("the response names no version of the object") // a proxy's perhaps
)

// Quoted is an ETag as a condition needs it: some listings leave out the quotes.
func Quoted(etag string) store.Version {
	if etag == "" || strings.Contains(etag, `"`) {
		return store.Version(etag)
	}
	return store.Version(`"` + etag + `"`)
}

// New returns the store of a scope below a prefix in a bucket, without accessing it yet. The network may be nil.
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

func (b *bucket) String() string           { return b.cloud.String() + "/" + b.prefix }
func (b *bucket) Where(key string) string  { return b.cloud.String() + "/" + b.object(key) }
func (b *bucket) IsLocal() bool            { return false }
func (b *bucket) object(key string) string { return b.prefix + key + store.Suffix }

// try connects the first time.
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
	if err != nil && (*connected).IsDenied(err) {
		return deniedError{fmt.Errorf("the credentials may lack %s: %w", b.cloud.Grant(op, b.place), err)}
	}
	return err
}

// deniedError is an store.ErrDenied that names the right.
type deniedError struct{ error }

func (e deniedError) Unwrap() error      { return e.error }
func (deniedError) Is(target error) bool { return target == store.ErrDenied }

func (b *bucket) List(ctx context.Context) (map[string]store.Listed, error) {
	found := map[string]store.Listed{}
	err := b.try(ctx, "list", func(o Objects) error {
		for object, err := range o.List(ctx, b.prefix) {
			if err != nil {
				return err
			}
			key, isText := strings.CutSuffix(strings.TrimPrefix(object.Key, b.prefix), store.Suffix)
			if !isText || store.CheckKey(key) != nil {
				continue
			}
			if object.Version == "" {
				return fmt.Errorf("%s: %w", b.Where(key), errNoVersion)
			}
			found[key] = object.Listed
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

func (b *bucket) Get(ctx context.Context, key string) ([]byte, store.Version, error) {
	if err := store.CheckKey(key); err != nil {
		return nil, "", err
	}
	return b.get(ctx, "read", b.object(key))
}

func (b *bucket) get(ctx context.Context, op, object string) (text []byte, v store.Version, _ error) {
	err := b.try(ctx, op, func(o Objects) error {
		body, version, err := o.Get(ctx, object)
		if errors.Is(err, ErrNoObject) {
			return nil
		}
		if err != nil {
			return err
		}
		defer func() { _ = body.Close() }()
		text, err = store.ReadText(body)
		if v = version; v == "" {
			return errors.Join(err, errNoVersion)
		}
		return err
	})
	if err != nil {
		return nil, "", err
	}
	return text, v, nil
}

func (b *bucket) Put(ctx context.Context, key string, text []byte, ifVersion store.Version) (store.Version, error) {
	if err := errors.Join(store.CheckKey(key), store.CheckText(text)); err != nil {
		return "", err
	}
	return b.put(ctx, b.object(key), text, ifVersion)
}

func (b *bucket) put(ctx context.Context, object string, text []byte, ifVersion store.Version) (v store.Version, _ error) {
	err := b.try(ctx, "write", func(o Objects) (err error) {
		v, err = o.Put(ctx, object, text, ifVersion)
		switch {
		case errors.Is(err, ErrNoObject): // what was to be replaced has been deleted
			return store.ErrConflict
		case err == nil && v == "":
			return errNoVersion
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return v, nil
}

// probe is the name of the object that Prove writes. It is not that of any key.
const probe = "_conditions" + store.Suffix

// Prove writes an object that nobody reads: with wrong conditions, and with the right one, as the record of what is sent needs it.
func (b *bucket) Prove(ctx context.Context) error {
	_, err := b.put(ctx, b.prefix+probe, proof(), "")
	if err == nil {
		_, err = b.put(ctx, b.prefix+probe, proof(), "")
	}
	switch {
	case err == nil:
		return b.ignores("If-None-Match", "although it exists")
	case !errors.Is(err, store.ErrConflict):
		return err
	}
	if _, err = b.put(ctx, b.prefix+probe, proof(), b.cloud.Never()); err == nil {
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
		_, before, err := b.get(ctx, "write", b.prefix+probe)
		if err != nil {
			return err
		}
		text := proof()
		written, err := b.put(ctx, b.prefix+probe, text, before)
		isRefused := errors.Is(err, store.ErrConflict)
		if err != nil && !isRefused {
			return err
		}
		there, now, err := b.get(ctx, "write", b.prefix+probe)
		isThere := bytes.Equal(there, text)
		switch {
		case err != nil:
			return err
		case isThere && (isRefused || now == written), !isThere && !isRefused: // stored; perhaps by a first attempt, or replaced since
			return nil
		case isThere, now == before:
			return fmt.Errorf("the store does not accept the version that it names itself, so what is sent could not be recorded "+
				"(perhaps a proxy changes ETags): %s/%s%s is %s there, and was %s", b.cloud, b.prefix, probe, now, before)
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
	return fmt.Errorf("the store ignores the condition of a write (%s), so two runs could send one prompt: it replaced %s/%s%s, %s",
		condition, b.cloud, b.prefix, probe, how)
}
