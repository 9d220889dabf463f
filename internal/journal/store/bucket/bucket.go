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
	"net/url"
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

	// Beside reads the settings of the backend, and returns a place next to the state, which no
	// listing of the backend's workspaces shows. It requires only the settings of StateSettings.
	Beside func(*settings.Settings) (in Cloud, prefix string, _ error)
	// StateSettings are the backend's settings that identify a state, with their defaults.
	StateSettings map[string]string

	// AtURL returns the place that a URL leads to, with its parameters as settings.
	AtURL func(host, path string, _ *settings.Settings) (in Cloud, prefix string, _ error)
	// Parameters are those that a URL may have, beside state.
	Parameters []string
}

// Cloud is a bucket or container, with the settings that lead to it. Each cloud has its own type.
type Cloud interface {
	// String is its URL, such as s3://ci-state.
	String() string
	// Connect finds the credentials. Nothing is requested of the bucket yet.
	Connect(ctx context.Context, network http.RoundTripper) (Objects, error)
	// Grant says what allows credentials to list, read or write objects whose keys start with prefix.
	Grant(op, prefix string) string
}

// Objects are those of a bucket. What store.Store guarantees, they do. A method returns
// store.ErrConflict and ErrNoObject only if the store itself says so: a proxy's 404 means nothing. Its
// 403 may count as store.ErrDenied, which only decides what a plan says.
type Objects interface {
	// List returns the keys of objects that start with prefix.
	List(ctx context.Context, prefix string) iter.Seq2[string, error]
	// Get returns an object and its version, or ErrNoObject.
	Get(ctx context.Context, key string) (io.ReadCloser, store.Version, error)
	// Put stores an object if it has the version, or, if that is empty, if it does not exist.
	// Otherwise it returns store.ErrConflict or ErrNoObject.
	Put(ctx context.Context, key string, body []byte, ifVersion store.Version) (store.Version, error)
}

// RequestTimeout bounds a request. One for credentials needs that, because it is not cancelled with
// the call that made it, and all other calls wait for it.
const RequestTimeout = 10 * time.Second

// Client follows no redirect, which could lead a token elsewhere.
func Client(transport http.RoundTripper) *http.Client {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: transport, CheckRedirect: stay, Timeout: RequestTimeout}
}

// Response is one whose body was read.
type Response struct {
	Status int // 0: there was no response
	Header http.Header
	Body   []byte
}

// Exchange sends a request and reads at most limit bytes of the response.
func Exchange(client interface {
	Do(r *http.Request) (*http.Response, error)
}, r *http.Request, limit int64,
) (Response, error) {
	response, err := client.Do(r)
	if err != nil {
		return Response{}, WithoutURL(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, limit))
	return Response{response.StatusCode, response.Header, body}, err
}

// WithoutURL removes the URL from an error of net/http: it can have a setting, or a token.
func WithoutURL(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}

var (
	// ErrNoObject reports that there is no such object.
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
	return &bucket{cloud: cloud, shared: prefix, prefix: prefix + scope + "/", network: network}
}

// bucket keeps each text in an object.
type bucket struct {
	cloud     Cloud
	shared    string // the prefix of all scopes
	prefix    string // the prefix of this scope; ends in a slash
	network   http.RoundTripper
	connected atomic.Pointer[Objects]
}

func (b *bucket) Name(key string) string {
	name := b.cloud.String() + "/" + b.prefix
	if key == "" {
		return name
	}
	return name + key + store.Suffix
}

func (b *bucket) WritesAreCheap() bool { return false }

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
	if errors.Is(err, store.ErrDenied) {
		return fmt.Errorf("the credentials may lack %s: %w", b.cloud.Grant(op, b.shared), err)
	}
	return err
}

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
	object, err := b.object(key)
	if err != nil {
		return store.Text{}, err
	}
	op, text := "read", store.Text{Key: key}
	if key == probe {
		op = "write" // of the rights that Prove needs
	}
	err = b.try(ctx, op, func(o Objects) error {
		body, version, err := o.Get(ctx, object)
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
	object, err := b.object(over.Key)
	if err = errors.Join(err, store.CheckBody(body)); err != nil {
		return store.Text{}, err
	}
	written := store.Text{Key: over.Key, Body: body}
	err = b.try(ctx, "write", func(o Objects) (err error) {
		written.Version, err = o.Put(ctx, object, body, over.Version)
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

// probe is the key of the object that Prove writes. Nothing else can have it, and List leaves it
// out, because store.CheckKey refuses it.
const probe = "_conditions"

// object is the name of a key's object.
func (b *bucket) object(key string) (string, error) {
	name := b.prefix + key + store.Suffix
	if key == probe {
		return name, nil
	}
	return name, store.CheckKey(key)
}

// Prove writes an object that nobody reads. Writes with wrong conditions must be refused, and one
// with the right condition must not: recording an outcome depends on that.
func (b *bucket) Prove(ctx context.Context) error {
	nothing := store.Text{Key: probe}
	_, err := b.Put(ctx, nothing, proof())
	if err == nil { // it is there now
		_, err = b.Put(ctx, nothing, proof())
	}
	switch {
	case err == nil:
		return b.ignores("If-None-Match", "although it exists")
	case !errors.Is(err, store.ErrConflict):
		return err
	}
	replaced, err := b.proveChange(ctx)
	if err != nil {
		return err
	}
	_, err = b.Put(ctx, replaced, proof())
	switch {
	case err == nil:
		return b.ignores("If-Match", "although it had another version by then")
	case !errors.Is(err, store.ErrConflict):
		return err
	}
	return nil
}

// proveChange replaces the object, as other processes may do at the same time, and returns what it
// has replaced.
func (b *bucket) proveChange(ctx context.Context) (store.Text, error) {
	for range 10 {
		before, err := b.Get(ctx, probe)
		if err != nil {
			return before, err
		}
		body := proof()
		written, err := b.Put(ctx, before, body)
		isRefused := errors.Is(err, store.ErrConflict)
		if err != nil && !isRefused {
			return before, err
		}
		now, err := b.Get(ctx, probe)
		isThere := bytes.Equal(now.Body, body)
		switch {
		case err != nil:
			return before, err
		case isThere && (isRefused || now.Version == written.Version), !isThere && !isRefused:
			// It is there, also if the response was lost, or another process has replaced it since.
			return before, nil
		case isThere, now.Version == before.Version:
			return before, fmt.Errorf("the store does not accept the version that it names itself, so what is sent could not be recorded "+
				"(perhaps a proxy changes ETags): %s is %s there, and was %s", b.Name(probe), now.Version, before.Version)
		}
		if err := sleep.For(ctx, rand.N(100*time.Millisecond)); err != nil {
			return before, err
		}
	}
	return store.Text{}, store.ErrConflict
}

// proof is a text that nobody else writes.
func proof() []byte {
	return fmt.Appendf(nil, "{\"about\": \"The store must refuse to replace this, but by name.\", \"write\": %q}\n", cryptorand.Text())
}

func (b *bucket) ignores(condition, how string) error {
	return fmt.Errorf("the store ignores the condition of a write (%s), so two runs could send one prompt: it replaced %s, %s",
		condition, b.Name(probe), how)
}
