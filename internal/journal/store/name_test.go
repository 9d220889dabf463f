// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package store

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseName(t *testing.T) {
	for _, key := range []Key{CreateKey("p", "a", ""), MessageKey("p", "job", "a")} {
		want := NewName(key, "0123456789abcdef")
		if got, ok := ParseName(want.String()); !ok || got != want || !ValidID(got.ID) {
			t.Errorf("%s: %+v, %t", want, got, ok)
		}
		text := want.String()
		for _, foreign := range []string{"", text + "a", text[1:], "../" + text, strings.ToUpper(text), text + suffix, "x" + text, strings.Replace(text, "-", "/", 1)} {
			if name, ok := ParseName(foreign); ok {
				t.Errorf("%q is taken for %+v", foreign, name)
			}
		}
		for _, foreign := range []string{"", want.ID[1:], want.ID + "a", "../" + want.ID[3:], strings.ToUpper(want.ID)} {
			if ValidID(foreign) {
				t.Errorf("%q is taken for an id", foreign)
			}
		}
	}
}

// Equal requests have equal keys, and no others. The messages to one job are listed by how their names start.
func TestKeys(t *testing.T) {
	seen := map[Key]bool{}
	for _, key := range []Key{
		CreateKey("p", "a", ""), CreateKey("pa", "", ""), CreateKey("p", "", "a"), CreateKey("", "p", "a"),
		MessageKey("p", "j", "a"), MessageKey("p", "j", "b"), MessageKey("pj", "", "a"),
	} {
		if seen[key] {
			t.Errorf("%s stands for two requests", key)
		}
		seen[key] = true
	}
	families := []string{MessageKey("p", "j", "a").Family(), MessageKey("p", "j", "b").Family(), string(CreateKey("p", "a", ""))}
	if diff := cmp.Diff([]string{families[1], families[0], CreateKey("p", "a", "").Family()}, families); diff != "" {
		t.Error(diff)
	}
}
