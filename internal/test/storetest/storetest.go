// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package storetest has what the tests of all stores need.
package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/bucket"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
)

// Limit is the time that each call of Ops has. It is no store's own limit.
const Limit = 8 * time.Second

// NewKey returns a key, or a name, that no other test has.
func NewKey() string { return strings.ToLower(rand.Text()) }

// New is what a key has that nothing was written to.
func New(key string) store.Text { return store.Text{Key: key} }

// Write is a Put that must work.
func Write(t *testing.T, s store.Store, over store.Text, body string) store.Text {
	t.Helper()
	written, err := s.Put(t.Context(), over, []byte(body))
	if err != nil || written.Key != over.Key || string(written.Body) != body || !written.Exists() {
		t.Fatalf("written: %+v, %v", written, err)
	}
	return written
}

// Want reads a key. An empty body means that there is nothing.
func Want(t *testing.T, s store.Store, key, body string) store.Text {
	t.Helper()
	got, err := s.Get(t.Context(), key)
	if got.Key != key || string(got.Body) != body || got.Exists() != (body != "") || err != nil {
		t.Errorf("%s has %+v, %v; want %q", key, got, err, body)
	}
	return got
}

// Beside is where settings of a kind's backend lead, of which all must be read. The later ones count.
func Beside(k bucket.Kind, values ...map[string]any) (bucket.Cloud, string, error) {
	all := map[string]any{}
	for _, more := range values {
		maps.Copy(all, more)
	}
	s := settings.New(all)
	in, prefix, err := k.Beside(s)
	return in, prefix, errors.Join(err, s.Unread())
}

// AtURL is where a URL of a kind leads, of whose parameters all must be read.
func AtURL(k bucket.Kind, host, path string, parameters map[string]any) (bucket.Cloud, string, error) {
	s := settings.New(parameters)
	in, prefix, err := k.AtURL(host, path, s)
	return in, prefix, errors.Join(err, s.Unread())
}

// Ops are the errors of all calls of a store. The key exists.
func Ops(t *testing.T, s store.Store, key string) map[string]error {
	t.Helper()
	errs := map[string]error{}
	for op, call := range map[string]func(context.Context) error{
		"write": func(ctx context.Context) error { _, err := s.Put(ctx, New(NewKey()), []byte("{}")); return err },
		"read":  func(ctx context.Context) error { _, err := s.Get(ctx, key); return err },
		"list":  func(ctx context.Context) error { _, err := s.List(ctx); return err },
		"prove": s.Prove,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), Limit)
		errs[op] = call(ctx)
		cancel()
	}
	return errs
}

// Files are the names in a folder and those below it.
func Files(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, file fs.DirEntry, err error) error {
		if err == nil && !file.IsDir() {
			path, err = filepath.Rel(dir, path)
			names = append(names, filepath.ToSlash(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// File writes a file, and returns its path.
func File(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// SetEnv sets variables, and hides all others that start with one of the prefixes: what this machine has set.
func SetEnv(t testing.TB, variables map[string]string, prefixes ...string) {
	t.Helper()
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		for _, prefix := range prefixes {
			if strings.HasPrefix(name, prefix) {
				t.Setenv(name, "") // puts it back after the test
				_ = os.Unsetenv(name)
			}
		}
	}
	for name, value := range variables {
		t.Setenv(name, value)
	}
}

// Network is a way to a store, without sockets or with faults.
type Network func(*http.Request) (*http.Response, error)

// RoundTrip makes it the network of a store.
func (n Network) RoundTrip(r *http.Request) (*http.Response, error) { return n(r) }

// Response is one with headers, of which each name is followed by its value.
func Response(status int, body string, headers ...string) *http.Response {
	r := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}
