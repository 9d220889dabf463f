// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"regexp"
	"testing"
)

// Requests that differ in anything have different keys.
func TestKeys_differ(t *testing.T) {
	seen := map[Key][]string{}
	for _, parts := range [][]string{
		nil, {""}, {"", ""}, {"ab", "c"}, {"a", "bc"}, {"abc"}, {"abc", ""}, {"", "abc"}, {"c", "ab"},
		{"a\nb"}, {"a", "b"}, {"a\x00b"}, {"A", "b"}, {"a", "b "},
	} {
		for _, key := range []Key{CreateKey(parts...), MessageKey(parts...)} {
			if other, ok := seen[key]; ok {
				t.Errorf("%q and %q have the key %s", parts, other, key)
			}
			seen[key] = parts
		}
	}
}

func TestKeys_are_hashes(t *testing.T) {
	if key := CreateKey("a", "b"); key != CreateKey("a", "b") || !regexp.MustCompile(`^create-[0-9a-f]{64}$`).MatchString(string(key)) {
		t.Error(key)
	}
	if key := MessageKey("a", "b"); key != MessageKey("a", "b") || !regexp.MustCompile(`^message-[0-9a-f]{64}$`).MatchString(string(key)) {
		t.Error(key)
	}
}
