// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecodeJob(t *testing.T) {
	t.Parallel()
	whole := &Job{
		ID: "job_1", Status: StatusActive, Model: new("m"), PRLink: new("https://x.invalid/1"),
		Source: &Source{Repository: new("a/b"), Ref: new("main")}, CreatedAt: new("2026-01-02T03:04:05Z"), ArchivedAt: new("2026-01-03"),
	}
	bare := &Job{ID: "job_1"}
	const everyCharacter = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$&'()*+,;=:@"
	for name, tc := range map[string]struct {
		body string
		want *Job // nil: refused with err
		err  error
	}{
		"whole": {body: `{"id":"job_1","status":"active","source":{"repository":"a/b","ref":"main"},"model":"m",
			"prLink":"https://x.invalid/1","createdAt":"2026-01-02T03:04:05Z","archivedAt":"2026-01-03"}`, want: whole},
		"nulls":                 {body: `{"id":"job_1","status":null,"source":null,"model":null,"prLink":null,"createdAt":null,"archivedAt":null}`, want: bare},
		"missing":               {body: `{"id":"job_1"}`, want: bare},
		"empty source":          {body: `{"id":"job_1","source":{}}`, want: &Job{ID: "job_1", Source: &Source{}}},
		"odd forms":             {body: `{"id":"job_1","status":"paused","createdAt":"2026-01-02 03:04","prLink":"","model":" "}`, want: &Job{ID: "job_1", Status: "paused", CreatedAt: new("2026-01-02 03:04"), PRLink: new(""), Model: new(" ")}},
		"wrong types":           {body: `{"id":"job_1","status":1,"source":"a/b","model":{},"prLink":["x"],"createdAt":1767322800,"archivedAt":false}`, want: bare},
		"unknown fields":        {body: `{"extra":{"id":"x","a":[1,{"b":2}]},"id":"job_1","z":1e999}`, want: bare},
		"lower case only":       {body: `{"id":"job_1","Status":"active","PRLINK":"x","ID":"job_2"}`, want: bare},
		"longest id":            {body: `{"id":"` + strings.Repeat("a", 256) + `"}`, want: &Job{ID: strings.Repeat("a", 256)}},
		"every character in id": {body: `{"id":"` + everyCharacter + `"}`, want: &Job{ID: everyCharacter}},

		"empty":                 {body: "", err: errNoObject},
		"null":                  {body: "null", err: errNoObject},
		"array":                 {body: `[{"id":"job_1"}]`, err: errNoObject},
		"truncated":             {body: `{"id":"job_1","status":"act`},
		"trailing object":       {body: `{"id":"job_1"}{"id":"job_2"}`, err: errNoObject},
		"no id":                 {body: `{"status":"active"}`, err: errNoID},
		"C06 id with an escape": {body: `{"id":"a/\u001b[2J"}`, err: errNoID},
		"id empty":              {body: `{"id":""}`, err: errNoID},
		"id a number":           {body: `{"id":17}`, err: errNoID},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := decodeJob([]byte(tc.body))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("decodeJob (-want +got):\n%s", diff)
			}
			if (err == nil) != (tc.want != nil) || tc.err != nil && !errors.Is(err, tc.err) || strings.Contains(fmt.Sprint(err), "\x1b") {
				t.Errorf("error %v, want %v", err, tc.err)
			}
		})
	}
}

func TestIDsIn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		``:                                    nil,
		`no JSON`:                             nil,
		`[{"id":"job_1"}]`:                    nil,
		`{"id":"job_1","status":"act`:         {"job_1"},
		`{"id":"job_`:                         nil,
		`{"status":"active"`:                  nil,
		`{"source":{"id":"x"},"id":"a/b"}`:    nil,
		`{"id":"job_1"}{"id":"job_2"`:         {"job_1", "job_2"},
		`{"id":"job_1"} {"id":"job_1"}` + "0": {"job_1"},
	} {
		if diff := cmp.Diff(want, idsIn([]byte(text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}
