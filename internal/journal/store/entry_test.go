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
	for _, test := range []struct {
		name, text string
		want       Status
	}{
		{"accepted", `{"project":"p","job":"job-1","status":"accepted"}`, Accepted},
		{"pending", `{"project":"p","sender":{},"status":"pending"}`, Pending},
		{"unknown members", `{"v":2,"project":"p","status":"pending"}`, Pending},
		{"without a response", `{"project":"p","status":"unknown"}`, Unknown},
		{"without a status", `{"job":"job-1"}`, Unknown},
		{"of another version", `{"job":"job-1","status":"archived"}`, Unknown},
		{"accepted without a job", `{"status":"accepted"}`, Unknown},
		{"cut", `{"project":"p","status":"pending"`, Unknown},
		{"zeros after a power failure", strings.Repeat("\x00", 100), Unknown},
	} {
		written := time.Now()
		e := decode([]byte(test.text), written)
		if isDamaged := e.Project == "" && e.Status == Unknown; e.Status != test.want || isDamaged && !e.SentAt.Equal(written) {
			t.Errorf("%s: %s, sent at %s; want %s", test.name, e.Status, e.SentAt, test.want)
		}
	}
}
