// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package store

import (
	"strings"
	"testing"
	"time"
)

// What cannot be read counts as sent, with unknown outcome.
func TestDecode(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"accepted", `{"project":"p","job":"job-1","accepted":true}`, "job-1"},
		{"pending", `{"project":"p","sender":{},"wait":21001}`, "pending"},
		{"unknown members", `{"v":2,"project":"p","wait":1}`, "pending"},
		{"without a response", `{"project":"p"}`, "unknown"},
		{"accepted without a job", `{"accepted":true,"wait":1}`, "unknown"},
		{"cut", `{"project":"p","wait":1`, "unknown"},
		{"zeros after a power failure", strings.Repeat("\x00", 100), "unknown"},
	} {
		written := time.Now()
		e := decode([]byte(test.text), written)
		got := "unknown"
		switch {
		case e.Accepted:
			got = e.JobID
		case e.Wait > 0:
			got = "pending"
		}
		if isDamaged := got == "unknown" && e.Project == ""; got != test.want || isDamaged && !e.SentAt.Equal(written) {
			t.Errorf("%s: %s, sent at %s; want %s", test.name, got, e.SentAt, test.want)
		}
	}
}
