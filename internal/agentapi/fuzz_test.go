// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func FuzzDecodeJob(f *testing.F) {
	for _, seed := range []string{
		record, "", "null", "[]", `{"id":"a","id":"b"}`, `{"id":"a"}x`, `{"id":"a/b"}`, `{"id":"a","source":{"ref":null}}`,
		`{"id":"a",}`, `{"id":1}`, `{"id":"a","x":{"x":[1,{}]}}`, "{\"id\":\"\xff\"}", `{"id":"\ud800"}`, `{"id":"a" }`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		job, err := decodeJob(data)
		if (job == nil) == (err == nil) {
			t.Fatalf("decodeJob(%q) = %v, %v", data, job, err)
		}
		if err != nil {
			return
		}
		if !ValidID(job.ID) {
			t.Errorf("decodeJob(%q) accepts the id %q", data, job.ID)
		}
		// encoding/json, which takes the last of two, agrees with what was accepted.
		var fields map[string]any
		if err := json.Unmarshal(data, &fields); err != nil {
			t.Fatalf("decodeJob accepts %q, encoding/json does not: %v", data, err)
		}
		text := func(object map[string]any, name string) *string {
			if s, ok := object[name].(string); ok {
				return &s
			}
			return nil
		}
		want := &Job{ID: *text(fields, "id"), Model: text(fields, "model"), PRLink: text(fields, "prLink"), CreatedAt: text(fields, "createdAt"), ArchivedAt: text(fields, "archivedAt")}
		if status := text(fields, "status"); status != nil {
			want.Status = Status(*status)
		}
		if job.Source != nil { // nil too when it has a name twice
			source, _ := fields["source"].(map[string]any)
			want.Source = &Source{Repository: text(source, "repository"), Ref: text(source, "ref")}
		}
		if diff := cmp.Diff(want, job); diff != "" {
			t.Errorf("decodeJob(%q) (-want +got):\n%s", data, diff)
		}
	})
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range [][2]string{
		{"", ""}, {"5", ""}, {"-5", ""}, {"99999999999999999999", ""}, {"soon", "later"},
		{"Wed, 04 Mar 2026 05:07:07 GMT", "Wed, 04 Mar 2026 05:06:07 GMT"}, {"Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 0001 00:00:00 GMT"},
	} {
		f.Add(seed[0], seed[1])
	}
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	f.Fuzz(func(t *testing.T, value, date string) {
		pause, ok := retryAfter(headers("Retry-After", value, "Date", date), now)
		if pause < 0 || pause > maxRetryAfter || !ok && pause != 0 {
			t.Errorf("retryAfter(%q, Date %q) = %v, %t", value, date, pause, ok)
		}
		if pause > 0 && !now.Add(pause).After(now) {
			t.Errorf("the pause %v overflows the clock", pause)
		}
	})
}

// FuzzURL: an id that is valid stays in its segment, whoever reads the URL.
func FuzzURL(f *testing.F) {
	for _, seed := range [][2]string{
		{"p", "job_1"}, {"..", "."}, {"a/b", "c?d"}, {"%2e%2e", "%2f"}, {"a;b", "c:d"}, {"-._~!$&'()*+,;=:@", "@"}, {"a b", "#"}, {"\\", "\x00"}, {"ä", "🚀"}, {"//h", "http:"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, project, job string) {
		if !ValidID(project) || !ValidID(job) {
			return
		}
		for _, base := range []string{"https://host.invalid", "https://host.invalid:8443/a/b%2fc/"} {
			root, err := url.Parse(base)
			if err != nil {
				t.Fatal(err)
			}
			prefix := strings.TrimRight(root.Path, "/") + "/v2/agent/"
			for op, want := range map[Op][]string{
				OpCreate:  {project, "job"},
				OpGet:     {project, "job", job},
				OpMessage: {project, "job", job, "message"},
			} {
				built := request{op: op, projectID: project, jobID: job}.url(root)
				u, err := url.Parse(built)
				if err != nil {
					t.Fatalf("%q: %v", built, err)
				}
				if u.Scheme != root.Scheme || u.Host != root.Host || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Opaque != "" {
					t.Errorf("%q leaves the path", built)
				}
				rest, ok := strings.CutPrefix(u.Path, prefix)
				if diff := cmp.Diff(want, strings.Split(rest, "/")); !ok || diff != "" {
					t.Errorf("%q: segments (-want +got):\n%s", built, diff)
				}
				// Neither cleaning the path nor decoding it once more moves a segment.
				if clean := u.JoinPath().Path; clean != u.Path {
					t.Errorf("%q becomes %q when it is cleaned", built, clean)
				}
				if root.RawPath == "" {
					if again, err := url.PathUnescape(u.Path); err != nil || again != u.Path {
						t.Errorf("%q becomes %q when it is decoded twice", built, again)
					}
				}
			}
		}
	})
}
