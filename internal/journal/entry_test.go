// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"cmp"
	"errors"
	"strings"
	"testing"
)

const (
	pendingLine  = `{"key":"create-1","sender":{},"run":"first","wait":21001}` + "\n"
	acceptedLine = `{"key":"create-1","job":"job-1","accepted":true,"sender":{},"run":"first","sent":1}` + "\n"
)

func TestDecodeEntry(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       string // "pending", a job, or "" when damaged
	}{
		{"answered", pendingLine + acceptedLine, "job-1"},
		{"no newline at the end", strings.TrimSpace(acceptedLine), "job-1"},
		{"cut answer", pendingLine + acceptedLine[:40], "pending"},
		{"cut answer, then whole", pendingLine + acceptedLine[:40] + "\n" + acceptedLine, "job-1"},
		{"zeros after a power failure", pendingLine + strings.Repeat("\x00", 100_000), "pending"},
		{"unknown members", `{"v":2,"key":"create-1","run":"first"}`, "pending"},
		{"answered without a job", `{"key":"create-1","run":"first","accepted":true}`, ""},
		{"without a run", `{"key":"create-1"}`, ""},
		{"without a key", `{"run":"first"}`, ""},
		{"huge number", `{"key":"create-1","run":"first","wait":1e99}`, ""},
		{"empty", "", ""},
		{"other JSON", "[]\n\"a\"\n{}\nnull\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, err := decodeEntry("id", []byte(test.text))
			got := "pending"
			switch {
			case errors.Is(err, errDamaged):
				got = ""
			case e.Accepted:
				got = cmp.Or(e.JobID, "no job")
			}
			if got != test.want {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

func TestValidID(t *testing.T) {
	for id, want := range map[string]bool{
		newID(): true, "": false, "probe-" + newID(): false, newIDExample[1:]: false, newIDExample + "a": false,
		"../" + newIDExample[3:]: false, strings.ToUpper(newIDExample): false,
	} {
		if validID(id) != want {
			t.Errorf("%q: %t", id, !want)
		}
	}
}

func TestKeys(t *testing.T) {
	keys := map[Key]bool{
		newKey(createPrefix, "a", "b"): true, newKey(createPrefix, "ab"): true, newKey(createPrefix, "a", "b", ""): true, newKey(createPrefix, "b", "a"): true,
		newKey("message-", "a", "b"): true, newKey(createPrefix): true, newKey(createPrefix, ""): true,
	}
	if len(keys) != 7 || !keys[newKey(createPrefix, "a", "b")] {
		t.Errorf("keys of different requests are equal, or of the same are not: %v", keys)
	}
}
