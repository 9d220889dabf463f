// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// invalidIDs cannot name a project or a job.
var invalidIDs = []string{
	".", "..", "a..b", "a/b", "a b", "a%2fb", "a?b", "a#b", "a\\b", "a\x00b", "a\nb", "a\x1b[2Jb", "a\u009bb", "a\u202eb", "jöb", "a\ufffdb", strings.Repeat("a", 257),
}

func TestDecodeJob_invalidID(t *testing.T) {
	t.Parallel()
	for _, id := range invalidIDs {
		body, err := json.Marshal(map[string]string{"id": id})
		if err != nil {
			t.Fatal(err)
		}
		job, err := decodeJob(body)
		if job != nil || !errors.Is(err, errNoID) || strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("id %q: %v, %q, want errNoID with the id escaped", id, job, err)
		}
	}
}

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
		"null ref":              {body: `{"id":"job_1","source":{"repository":"a/b","ref":null}}`, want: &Job{ID: "job_1", Source: &Source{Repository: new("a/b")}}},
		"empty source":          {body: `{"id":"job_1","source":{}}`, want: &Job{ID: "job_1", Source: &Source{}}},
		"odd forms":             {body: `{"id":"job_1","status":"paused","createdAt":"2026-01-02 03:04","prLink":"","model":" "}`, want: &Job{ID: "job_1", Status: "paused", CreatedAt: new("2026-01-02 03:04"), PRLink: new(""), Model: new(" ")}},
		"wrong types":           {body: `{"id":"job_1","status":1,"source":"a/b","model":{},"prLink":["x"],"createdAt":1767322800,"archivedAt":false}`, want: bare},
		"wrong types in source": {body: `{"id":"job_1","source":{"repository":1,"ref":[]}}`, want: &Job{ID: "job_1", Source: &Source{}}},
		"unknown fields":        {body: `{"extra":{"id":"x","a":[1,{"b":2}]},"id":"job_1","z":1e999}`, want: bare},
		"white space around":    {body: " \r\n\t{ \"id\" : \"job_1\" } \n", want: bare},
		"escaped id":            {body: `{"\u0069d":"job\u005f1"}`, want: bare},
		"lower case only":       {body: `{"id":"job_1","Status":"active","PRLINK":"x","ID":"job_2"}`, want: bare},
		"longest id":            {body: `{"id":"` + strings.Repeat("a", 256) + `"}`, want: &Job{ID: strings.Repeat("a", 256)}},
		"every character in id": {body: `{"id":"` + everyCharacter + `"}`, want: &Job{ID: everyCharacter}},

		"empty":               {body: "", err: errNoObject},
		"white space":         {body: " \n", err: errNoObject},
		"null":                {body: "null", err: errNoObject},
		"array":               {body: `[{"id":"job_1"}]`, err: errNoObject},
		"string":              {body: `"job_1"`, err: errNoObject},
		"truncated":           {body: `{"id":"job_1","status":"act`},
		"truncated after id":  {body: `{"id":"job_1"`},
		"truncated in source": {body: `{"id":"job_1","source":{"ref":"x"`},
		"comma at the end":    {body: `{"id":"job_1",}`},
		"no comma":            {body: `{"id":"job_1" "status":"active"}`},
		"no colon":            {body: `{"id" "job_1"}`},
		"number as a name":    {body: `{1:2,"id":"job_1"}`},
		"wrong end":           {body: `{"id":"job_1"]`},
		"trailing object":     {body: `{"id":"job_1"}{"id":"job_2"}`, err: errNoObject},
		"trailing text":       {body: `{"id":"job_1"} x`, err: errNoObject},
		"trailing NUL":        {body: `{"id":"job_1"}` + "\x00", err: errNoObject},
		"no id":               {body: `{"status":"active"}`, err: errNoID},
		"empty object":        {body: `{}`, err: errNoID},
		"ID":                  {body: `{"ID":"job_1"}`, err: errNoID},
		"id null":             {body: `{"id":null}`, err: errNoID},
		"id empty":            {body: `{"id":""}`, err: errNoID},
		"id a number":         {body: `{"id":17}`, err: errNoID},
		"id an object":        {body: `{"id":{"id":"job_1"}}`, err: errNoID},
		"id a list":           {body: `{"id":["job_1"]}`, err: errNoID},
		"too deep":            {body: `{"id":"job_1","x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := decodeJob([]byte(tc.body))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("decodeJob (-want +got):\n%s", diff)
			}
			if (err == nil) != (tc.want != nil) || tc.err != nil && !errors.Is(err, tc.err) {
				t.Errorf("error %v, want %v", err, tc.err)
			}
		})
	}
}
