// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package store

import (
	"context"
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
	// grant says what allows to list, read or write objects whose keys start with prefix.
	grant(op, prefix string) string
	// never is a version that no object has.
	never() Version
}

// objects are those of a bucket whose reads and listings show each write at once. None is ever deleted.
type objects interface {
	// list returns the objects whose keys start with prefix.
	list(ctx context.Context, prefix string) iter.Seq2[object, error]
	// get returns an object and its version, or errNoObject, if the store says that there is none.
	get(ctx context.Context, key string) (io.ReadCloser, Version, error)
	// put stores an object if it has the version, or does not exist if that is empty. Otherwise it returns ErrConflict, or
	// errNoObject.
	put(ctx context.Context, key string, body []byte, ifVersion Version) (Version, error)
	// isDenied reports whether the store knows the credentials, and they lack a right.
	isDenied(err error) bool
}

// object is one in a listing.
type object struct {
	key string
	Listed
}

// noRedirect keeps a client from following a redirect, which could lead a token elsewhere.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

var (
	errNoObject  = errors.New("there is no such object")
	errNoVersion = errors.New("the response names no version of the object") // a proxy's perhaps
)

// quoted is an ETag as a condition needs it: some listings leave out the quotes.
func quoted(etag string) Version {
	if etag == "" || strings.Contains(etag, `"`) {
		return Version(etag)
	}
	return Version(`"` + etag + `"`)
}

// bucket keeps each text in an object.
type bucket struct {
	cloud     cloud
	place     string // prefix of all scopes
	prefix    string // of the scope; ends in a slash
	network   http.RoundTripper
	connected atomic.Pointer[objects]
}

func (b *bucket) String() string           { return b.cloud.String() + "/" + b.prefix }
func (b *bucket) Where(key string) string  { return b.cloud.String() + "/" + b.object(key) }
func (b *bucket) IsLocal() bool            { return false }
func (b *bucket) object(key string) string { return b.prefix + key + suffix }

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
		return deniedError{fmt.Errorf("the credentials lack %s: %w", b.cloud.grant(op, b.place), err)}
	}
	return err
}

// deniedError is an ErrDenied that names the right.
type deniedError struct{ error }

func (e deniedError) Unwrap() error      { return e.error }
func (deniedError) Is(target error) bool { return target == ErrDenied }

func (b *bucket) List(ctx context.Context) (map[string]Listed, error) {
	found := map[string]Listed{}
	err := b.try(ctx, "list", func(o objects) error {
		for object, err := range o.list(ctx, b.prefix) {
			if err != nil {
				return err
			}
			key, isText := strings.CutSuffix(strings.TrimPrefix(object.key, b.prefix), suffix)
			if !isText || checkKey(key) != nil {
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

func (b *bucket) Get(ctx context.Context, key string) (text []byte, v Version, _ error) {
	if err := checkKey(key); err != nil {
		return nil, "", err
	}
	err := b.try(ctx, "read", func(o objects) error {
		body, version, err := o.get(ctx, b.object(key))
		if errors.Is(err, errNoObject) {
			return nil
		}
		if err != nil {
			return err
		}
		defer func() { _ = body.Close() }()
		text, err = readText(body)
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

func (b *bucket) Put(ctx context.Context, key string, text []byte, ifVersion Version) (Version, error) {
	if err := errors.Join(checkKey(key), checkText(text)); err != nil {
		return "", err
	}
	return b.put(ctx, b.object(key), text, ifVersion)
}

func (b *bucket) put(ctx context.Context, object string, text []byte, ifVersion Version) (v Version, _ error) {
	err := b.try(ctx, "write", func(o objects) (err error) {
		v, err = o.put(ctx, object, text, ifVersion)
		switch {
		case errors.Is(err, errNoObject): // what was to be replaced has been deleted
			return ErrConflict
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
const probe = "_conditions" + suffix

// Prove writes an object that nobody reads. The first write of all is the one that may succeed.
func (b *bucket) Prove(ctx context.Context) error {
	write := func(ifVersion Version) error {
		text := fmt.Sprintf("{\"about\": \"The store must refuse to replace this.\", \"at\": %q}\n", time.Now().Format(time.RFC3339Nano))
		_, err := b.put(ctx, b.prefix+probe, []byte(text), ifVersion)
		return err
	}
	err := write("")
	if err == nil {
		err = write("")
	}
	switch {
	case err == nil:
		return b.ignores("If-None-Match", "although it exists")
	case !errors.Is(err, ErrConflict):
		return err
	}
	if err = write(b.cloud.never()); err == nil {
		return b.ignores("If-Match", "although the request named another version of it")
	}
	if errors.Is(err, ErrConflict) {
		return nil
	}
	return err
}

func (b *bucket) ignores(condition, how string) error {
	return fmt.Errorf("the store ignores the condition of a write (%s), so two runs could send one prompt: it replaced %s/%s%s, %s",
		condition, b.cloud, b.prefix, probe, how)
}
