// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"encoding/json"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
)

func TestHash(t *testing.T) {
	seen := map[string]bool{}
	for _, parts := range [][]string{nil, {""}, {"", ""}, {"a", "bc"}, {"ab", "c"}, {"abc"}, {"a", "", "bc"}} {
		hash := Hash(parts...)
		if store.CheckKey(hash) != nil || len(hash) != 20 || seen[hash] {
			t.Errorf("%q: %s", parts, hash)
		}
		seen[hash] = true
	}
}

// What others may have written is refused, or can be settled, changed, and read again.
func FuzzRecord(f *testing.F) {
	for _, edits := range [][]func(*Record){
		nil, {unknown}, {released}, {claimed("a", "")}, {claimed("a", "J", expired, unsent)}, {empty}, {released, left("1")}, {empty, released, left("1")},
	} {
		r := has("J", edits...)
		r.Format = format
		text, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		at := key("p", "n")
		r, err := decode(text, at, true)
		if err != nil {
			return
		}
		if r.Project != "p" || r.Name != "n" {
			t.Fatalf("the record of %q, %q", r.Project, r.Name)
		}
		j, _ := new(World).open("1")
		for _, ended := range []bool{false, true} {
			j.process.Ended = func(cli.ProcessID) bool { return ended }
			after := *j.asOfNow(r)
			after.setLast(&Entry{ID: claimID, Prompt: "x"}, "J2")
			text, err := json.Marshal(after)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := decode(text, at, true); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
	})
}
