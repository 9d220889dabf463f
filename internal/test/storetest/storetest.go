// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package storetest has what the tests of all stores need.
package storetest

import (
	"context"
	"crypto/rand"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
)

// Limit is the time that each call of Ops has. It is no store's own limit.
const Limit = 8 * time.Second

// NewKey returns a key, or a name, that no other test has.
func NewKey() string { return strings.ToLower(rand.Text()) }

// Write is a Put that must work.
func Write(t *testing.T, s store.Store, key, text string, ifVersion store.Version) store.Version {
	t.Helper()
	v, err := s.Put(t.Context(), key, []byte(text), ifVersion)
	if err != nil || v == "" {
		t.Fatalf("version %q, %v", v, err)
	}
	return v
}

// Want reads a key, and returns its version.
func Want(t *testing.T, s store.Store, key, text string) store.Version {
	t.Helper()
	got, v, err := s.Get(t.Context(), key)
	if string(got) != text || (v == "") != (text == "") || err != nil {
		t.Errorf("%s has %q, version %q, %v; want %q", key, got, v, err, text)
	}
	return v
}

// Ops are the errors of all calls of a store. The key exists.
func Ops(t *testing.T, s store.Store, key string) map[string]error {
	t.Helper()
	errs := map[string]error{}
	for op, call := range map[string]func(context.Context) error{
		"write": func(ctx context.Context) error { _, err := s.Put(ctx, NewKey(), []byte("{}"), ""); return err },
		"read":  func(ctx context.Context) error { _, _, err := s.Get(ctx, key); return err },
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
