// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package store

import (
	"strings"
	"testing"
)

func TestParseName(t *testing.T) {
	for _, key := range []Key{CreateKey("p", "a", ""), NamedCreateKey("p", "n", ""), MessageKey("p", "job", "a")} {
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

// Equal requests have equal keys, and no others. The messages to one job, and the creates with one name, are listed by how their names start.
func TestKeys(t *testing.T) {
	seen := map[Key]bool{}
	for _, key := range []Key{
		CreateKey("p", "a", ""), CreateKey("pa", "", ""), CreateKey("p", "", "a"), CreateKey("", "p", "a"),
		NamedCreateKey("p", "a", ""), NamedCreateKey("p", "b", ""), NamedCreateKey("p", "a", "a"), NamedCreateKey("pa", "", ""),
		MessageKey("p", "j", "a"), MessageKey("p", "j", "b"), MessageKey("pj", "", "a"),
	} {
		if seen[key] {
			t.Errorf("%s stands for two requests", key)
		}
		seen[key] = true
	}
	families := map[Key]string{
		MessageKey("p", "j", "a"): MessageKey("p", "j", "b").Family(), CreateKey("p", "a", ""): string(CreateKey("p", "a", "")),
		NamedCreateKey("p", "n", "a"): NamedCreateKey("p", "n", "b").Family(),
	}
	for key, want := range families {
		if got := key.Family(); got != want {
			t.Errorf("%s is listed by %s, want %s", key, got, want)
		}
	}
}
