// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDecodeJob(t *testing.T) {
	t.Parallel()
	whole := &Job{
		ID: "job_1", Status: StatusActive, Model: new("m"), PRLink: new("https://x.invalid/1"),
		Source: &Source{Repository: new("a/b"), Ref: new("main")}, CreatedAt: new("2026-01-02T03:04:05Z"), ArchivedAt: new("2026-01-03"),
	}
	bare := &Job{ID: "job_1"}
	longest := strings.Repeat("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._", 4)[:256] // has every character
	for name, tc := range map[string]struct {
		body string
		want *Job // nil: refused with err
		err  error
	}{
		"whole": {body: `{"id":"job_1","status":"active","source":{"repository":"a/b","ref":"main"},"model":"m",
			"prLink":"https://x.invalid/1","createdAt":"2026-01-02T03:04:05Z","archivedAt":"2026-01-03"}`, want: whole},
		"nulls":        {body: `{"id":"job_1","status":null,"source":null,"model":null,"prLink":null,"createdAt":null,"archivedAt":null}`, want: bare},
		"empty source": {body: `{"id":"job_1","source":{}}`, want: &Job{ID: "job_1", Source: &Source{}}},
		"odd forms":    {body: `{"id":"job_1","status":"paused","createdAt":"2026-01-02 03:04","model":"a b"}`, want: &Job{ID: "job_1", Status: "paused", CreatedAt: new("2026-01-02 03:04"), Model: new("a b")}},
		"empty texts": {body: `{"id":"job_1","status":"","source":{"repository":"","ref":" "},"model":"\u00a0","prLink":"","createdAt":"","archivedAt":" \n"}`,
			want: &Job{ID: "job_1", Source: &Source{}}},
		"white space": {body: `{"id":" job_1\n","status":" active","source":{"repository":"a/b ","ref":"\tmain"},"model":"m\r\n",
			"prLink":"\nhttps://x.invalid/1 ","createdAt":" 2026-01-02T03:04:05Z","archivedAt":"2026-01-03\u2028"}`, want: whole},
		"wrong types":     {body: `{"id":"job_1","status":1,"source":"a/b","model":{},"prLink":["x"],"createdAt":1767322800,"archivedAt":false}`, want: bare},
		"unknown fields":  {body: `{"extra":{"id":"x","a":[1,{"b":2}]},"id":"job_1","z":1e999}`, want: bare},
		"lower case only": {body: `{"id":"job_1","Status":"active","PRLINK":"x","ID":"job_2"}`, want: bare},
		"longest id":      {body: `{"id":"` + longest + `"}`, want: &Job{ID: longest}},

		"empty":                 {body: "", err: errNoObject},
		"array":                 {body: `[{"id":"job_1"}]`, err: errNoObject},
		"truncated":             {body: `{"id":"job_1","status":"act`},
		"trailing object":       {body: `{"id":"job_1"}{"id":"job_2"}`, err: errNoObject},
		"no id":                 {body: `{"status":"active"}`, err: errNoID},
		"C06 id with an escape": {body: `{"id":"a/\u001b[2J"}`, err: errNoID},
		"id a number":           {body: `{"id":17}`, err: errNoID},
		"id white space":        {body: `{"id":" "}`, err: errNoID},
		"the last one counts":   {body: `{"id":"job_2","id":"job_1","a":{"id":"x"}}`, want: bare},
		"comma at the end":      {body: `{"id":"job_1",}`, err: errNoObject},
		"no comma":              {body: `{"id":"job_1" "status":"active"}`, err: errNoObject},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := decodeJob([]byte(tc.body), NewKey(canary))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("decodeJob (-want +got):\n%s", diff)
			}
			if (err == nil) != (tc.want != nil) || tc.err != nil && !errors.Is(err, tc.err) || strings.Contains(fmt.Sprint(err), "\x1b") {
				t.Errorf("error %v, want %v", err, tc.err)
			}
		})
	}
}

// A hundred polls at once stay under 100 MB, whatever comes: each allocates less than 1 MB, even if nothing is collected meanwhile.
// Not parallel: the memory is that of the process. Red without: maxBody.
func TestPollJob_memory(t *testing.T) {
	for name, form := range map[string][3]string{
		"members":  {`{`, `"x":0,`, `"id":"job_1"}`},
		"one name": {`{`, `"id":"job_1",`, `"id":"job_1"}`},
		"sources":  {`{`, `"source":{"ref":"a"},`, `"id":"job_1"}`},
		"depth":    {`{"id":"job_1","model":`, `[`, ``},
		"escapes":  {`{"id":"job_1","model":"`, `\u006d`, `"}`},
		"key":      {`{"id":"job_1","model":"`, canary, `"}`},
		"text":     {`{"id":"job_1","model":"`, "x", `"}`},
	} {
		for _, size := range []int{1 << 20, maxBody} {
			body := form[0] + strings.Repeat(form[1], (size-100)/len(form[1])) + form[2]
			c := newFakeClient(t, &fakeService{answers: []answer{{status: 200, body: body}}})
			var before, after runtime.MemStats
			const polls = 10
			runtime.ReadMemStats(&before)
			for range polls {
				_, _ = c.PollJob(t.Context(), "p", "job_1")
			}
			runtime.ReadMemStats(&after)
			if each := (after.TotalAlloc - before.TotalAlloc) / polls; each > 1e6 {
				t.Errorf("%s, %d bytes: a poll allocates %d", name, size, each)
			}
		}
	}
}

// A job that runs shows that a message has arrived. Final statuses: TestWait and TestJudge_beside.
func TestMayBeStale_running(t *testing.T) {
	t.Parallel()
	if MayBeStale(StatusActive, time.Now()) || MayBeStale("odd", time.Now()) {
		t.Error("a status that is not final counts as that of before the message")
	}
}

// Whatever the service sends, what is decoded does not have the key.
func FuzzDecodeJob(f *testing.F) {
	for _, seed := range []string{
		record, `{"id":"job_1","prLink":" ","model":"\u006d` + canary[1:] + `"}`, `{"id":"a/b"}`, `{"error":{"message":"` + canary + `"}}`, "\ufeff{",
	} {
		f.Add([]byte(seed))
	}
	key := NewKey(canary)
	f.Fuzz(func(t *testing.T, body []byte) {
		job, err := decodeJob(body, key)
		if (job == nil) != (err != nil) || job != nil && !ValidID(job.ID) {
			t.Fatalf("%v, %v", job, err)
		}
		got := response{status: 400, body: body}
		shown, _ := json.Marshal(job)
		if strings.Contains(string(shown)+got.message(key), canary) {
			t.Errorf("%s or the message %q has the key", shown, got.message(key))
		}
	})
}
