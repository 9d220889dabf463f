// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package store

import (
	"errors"
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
)

// A place that cannot be used is an error of each operation, and of nothing before.
func TestOpen_unusable(t *testing.T) {
	cause := errors.New("a setting")
	for _, l := range []Location{{Unusable: cause}, {Folder: t.TempDir(), Unusable: cause}} {
		s := Open(l, "scope", new(cli.Process))
		for op, err := range ops(t, s, "a") {
			if !errors.Is(err, cause) {
				t.Errorf("%s: %v", op, err)
			}
		}
		if s.String() != l.Folder || !s.IsLocal() {
			t.Errorf("%q, %t", s, s.IsLocal())
		}
	}
	for op, err := range ops(t, Discard(), "a") {
		if err != nil {
			t.Errorf("a store that keeps nothing: %s: %v", op, err)
		}
	}
}

// What is no key becomes no part of a path.
func TestCheckKey(t *testing.T) {
	bucket, err := ParseURL(fakes3.New(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	for key, isKey := range map[string]bool{
		"a": true, "a-1": true, strings.Repeat("k", 62): true, strings.Repeat("k", 63): false, "": false, "a/b": false, "..": false, "A": false, "_conditions": false,
	} {
		for _, l := range []Location{{Folder: t.TempDir()}, bucket} {
			s := open(t, l)
			_, putErr := s.Put(t.Context(), key, nil, "")
			if _, _, err := s.Get(t.Context(), key); (err == nil) != isKey || (putErr == nil) != isKey {
				t.Errorf("%q: %v, %v", key, err, putErr)
			}
		}
	}
}

func TestHash(t *testing.T) {
	seen := map[string]bool{}
	for _, parts := range [][]string{nil, {""}, {"", ""}, {"a", "bc"}, {"ab", "c"}, {"abc"}, {"a", "", "bc"}} {
		hash := Hash(parts...)
		if checkKey(hash) != nil || len(hash) != 20 || seen[hash] {
			t.Errorf("%q: %s", parts, hash)
		}
		seen[hash] = true
	}
}
