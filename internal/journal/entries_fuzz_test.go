// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func FuzzReadEntries(f *testing.F) {
	for _, seed := range []string{
		"", "\n", sent, sent + answered + second, answered + gone, answered[:30] + gone + second, gone + answered,
		`{"n":1,"gone":true,"k":"create-1"}`, `{"n":1}`, "null", "[1]", "{\"n\":1,\"k\":\"\xff\"}\n", "\x00\x00\n" + second,
		`{"n":9223372036854775807,"k":"a","at":-9223372036854775808}`, strings.Repeat("{", 20_000),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		found, damaged := readEntries(text)
		if lines := bytes.Count(text, []byte{'\n'}) + 1; len(found)+damaged > lines {
			t.Errorf("%d requests and %d damaged lines of %d", len(found), damaged, lines)
		}
		settled := bytes.NewBuffer(bytes.Clone(text))
		for number, r := range found {
			if number <= 0 || r.number != number || r.Key == "" {
				t.Errorf("%d is %+v", number, r)
			}
			if isSettled(text, number) {
				t.Errorf("request %d is settled", number)
			}
			fmt.Fprintf(settled, "\n{\"n\":%d,\"gone\":true}\n", number)
		}
		if left, after := readEntries(settled.Bytes()); len(left) > 0 || after != damaged {
			t.Errorf("after all was settled: %v, and %d damaged lines, %d before", left, after, damaged)
		}
		// A line after whatever is there is always read.
		added := append(bytes.Clone(text), "\n"+second...)
		if left, _ := readEntries(added); left[2] == nil || left[2].JobID != "job_2" {
			t.Error("the last line is lost")
		}
	})
}

// isSettled reports whether the last line about a request says so.
func isSettled(text []byte, number int) bool {
	settled := false
	for line := range bytes.SplitSeq(text, []byte{'\n'}) {
		var e struct {
			N    int
			K    string
			ID   string
			At   int64
			Gone bool
		}
		if json.Unmarshal(line, &e) == nil && e.N == number && (e.Gone || e.K != "") {
			settled = e.Gone
		}
	}
	return settled
}
