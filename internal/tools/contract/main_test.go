// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

const (
	canary = "canary_4e1b"
	jobs   = "/v2/agent/proj/job"
)

// direct passes requests to the simulator, without a connection: fake time stands still for one. Each function
// breaks the contract, or is nil.
type direct struct {
	*simulator.Server

	before func(r *http.Request)                               // changes a request
	after  func(r *http.Request, w *httptest.ResponseRecorder) // changes a response
}

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if d.before != nil {
		d.before(r)
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	if d.after != nil {
		d.after(r, w)
	}
	return w.Result(), nil
}

// runWith runs the kit in fake time against a service.
func runWith(t *testing.T, service direct, stdin string, args ...string) (table, progress string, err error) {
	t.Setenv("AGENT_BASE_URL", "https://api.example.com/")
	t.Setenv("AGENT_ADMIN_KEY", canary)
	t.Setenv("AGENT_PROJECT_ID", "proj")
	var stdout, stderr bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		err = run(t.Context(), args, strings.NewReader(stdin), &stdout, &stderr, service)
	})
	if text := fmt.Sprint(stdout.String(), stderr.String(), err); strings.Contains(text, canary) {
		t.Errorf("it shows the key:\n%s", text)
	}
	return stdout.String(), stderr.String(), err
}

// service is the simulator, with jobs of 20 s. Its first turn goes as the first script says, and so on, and the last one
// is repeated.
func service(scripts ...simulator.Script) *simulator.Server {
	turns := -1
	return simulator.New(simulator.Options{Key: canary, Script: func(string, int) simulator.Script {
		turns = min(turns+1, len(scripts)-1)
		script := scripts[turns]
		script.Duration = 20 * time.Second
		return script
	}})
}

var cell = regexp.MustCompile(`(?m)^\| (.*?) \| .*? \| (.*) \| 2000-01-01 \|$`)

func TestContractHolds(t *testing.T) {
	s := service(simulator.Script{Stale: 3 * time.Second})
	table, _, err := runWith(t, direct{Server: s}, "", "-yes")
	want := strings.Join([]string{
		"api.example.com:",
		"",
		"| assumption | expected | seen | date |",
		"|---|---|---|---|",
		"| reading an unknown job | 404, JSON | 404, JSON | 2000-01-01 |",
		"| a message to an unknown job | 404, JSON | 404, JSON | 2000-01-01 |",
		"| reading with a wrong key | 401, JSON | 401, JSON | 2000-01-01 |",
		"| starting a job with a wrong key | 401, JSON | 401, JSON | 2000-01-01 |",
		"| starting a job with an empty prompt | 400, JSON | 400, JSON | 2000-01-01 |",
		"| starting a job | 2xx, a record with an id | 201, JSON | 2000-01-01 |",
		"| the record is whole | each field, with its type | yes | 2000-01-01 |",
		"| an id fits in a path | 1 to 256 letters, digits and punctuation | 30 characters | 2000-01-01 |",
		"| the same prompt again starts another job | 2xx, another id | 201, JSON, another id: true | 2000-01-01 |",
		"| reading a new job | 2xx, its record, within 60 s | 200, JSON after 0s | 2000-01-01 |",
		"| the job finishes | completed, archived or failed; prLink is null before | completed after 20s | 2000-01-01 |",
		"| the other job finishes | completed, archived or failed; prLink is null before | completed after 21s | 2000-01-01 |",
		"| prLink of the finished job | null or a URL | null: false | 2000-01-01 |",
		"| a message with a wrong key | 401, JSON, and the job stays finished | 401, JSON, the job is completed | 2000-01-01 |",
		"| a message to a finished job | 2xx, its record; or refused: 4xx, JSON | 200, JSON | 2000-01-01 |",
		"| the record from before the message is shown | for at most 10 s, then active | active after 3s | 2000-01-01 |",
		"| the job finishes again | completed, archived or failed; prLink is null before | completed after 20s | 2000-01-01 |",
		"| version 1 lists the job | not documented | 404, JSON, with the job: false | 2000-01-01 |",
		"",
	}, "\n")
	if diff := cmp.Diff(want, table); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	var prompts []int
	for _, job := range s.Jobs() {
		prompts = append(prompts, len(job.Prompts))
	}
	if counts := s.Counts(); counts.Create != 4 || counts.Message != 3 || !slices.Equal(prompts, []int{2, 1}) {
		t.Errorf("not two jobs and one message, with each request sent once: %+v, prompts of each job: %v", counts, prompts)
	}
	// An archived job refuses the message, which the contract allows.
	if table, _, err := runWith(t, direct{Server: service(simulator.Script{Status: "archived"})}, "", "-yes"); err != nil {
		t.Errorf("%v\n%s", err, table)
	}
}

func TestAsksFirst(t *testing.T) {
	for answer, jobs := range map[string]int{"": 0, "no\n": 0, "y\n": 0, "yes\n": 2} {
		s := service(simulator.Script{})
		table, text, err := runWith(t, direct{Server: s}, answer)
		if len(s.Jobs()) != jobs || (err == nil) != (jobs > 0) || jobs == 0 && table+fmt.Sprint(s.Requests()) != "[]" || !strings.Contains(text, "two jobs") {
			t.Errorf("%q: %v, %+v\n%s%s", answer, err, s.Counts(), table, text)
		}
	}
}

// Each assumption, broken: exactly its rows turn red.
func TestContractBroken(t *testing.T) {
	wrongKey := func(r *http.Request) bool { return r.Header.Get("Authorization") != "Bearer "+canary }
	unknown := func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/job_0000") }
	// ignoreKey makes a wrong key right, for one path.
	ignoreKey := func(part string) func(*http.Request) {
		return func(r *http.Request) {
			if strings.HasSuffix(r.URL.Path, part) && !unknown(r) {
				r.Header.Set("Authorization", "Bearer "+canary)
			}
		}
	}
	respond := func(match func(*http.Request) bool, method string, status int, body string) func(*http.Request, *httptest.ResponseRecorder) {
		return func(r *http.Request, w *httptest.ResponseRecorder) {
			if r.Method == method && match(r) {
				w.Code, w.Body = status, bytes.NewBufferString(body)
			}
		}
	}
	// rewrite replaces text in the responses that have it.
	rewrite := func(pattern, text string) func(*http.Request, *httptest.ResponseRecorder) {
		return func(_ *http.Request, w *httptest.ResponseRecorder) {
			w.Body = bytes.NewBufferString(regexp.MustCompile(pattern).ReplaceAllString(w.Body.String(), text))
		}
	}
	whole := func(field string, value any) []simulator.Script {
		return []simulator.Script{{Extra: map[string]any{field: value}}}
	}
	var first []byte
	tests := map[string]struct {
		turns  []simulator.Script
		fault  simulator.Fault
		before func(*http.Request)
		after  func(*http.Request, *httptest.ResponseRecorder)
		want   []string
	}{
		"404 as HTML":            {after: respond(unknown, "GET", 404, "<html>"), want: []string{"reading an unknown job"}},
		"404 as 500":             {after: respond(unknown, "POST", 500, "{}"), want: []string{"a message to an unknown job"}},
		"401 as 403":             {after: respond(wrongKey, "GET", 403, "{}"), want: []string{"reading with a wrong key"}},
		"any key may start":      {before: ignoreKey("/job"), want: []string{"starting a job with a wrong key"}},
		"create is an array":     {fault: simulator.Fault{Kind: "create", Skip: 2, Status: 201, Body: "[]"}, want: []string{"starting a job"}},
		"no model":               {turns: whole("model", simulator.Omit{}), want: []string{"the record is whole"}},
		"local time":             {turns: whole("createdAt", "2026-08-01T12:00:00+02:00"), want: []string{"the record is whole"}},
		"source is a text":       {turns: whole("source", "main"), want: []string{"the record is whole"}},
		"no repository":          {turns: whole("source", map[string]any{"ref": "main"}), want: []string{"the record is whole"}},
		"archivedAt of a job":    {turns: whole("archivedAt", "2026-08-01T12:00:00Z"), want: []string{"the record is whole"}},
		"an id with a slash":     {after: rewrite(`"id":"job_`, `"id":"job/`), want: []string{"an id fits in a path", "reading a new job", "the job finishes", "the other job finishes"}},
		"the new job comes late": {fault: simulator.Fault{Kind: "get", Skip: 2, Times: 70, Status: 404}, want: []string{"reading a new job"}},
		"it never finishes":      {turns: []simulator.Script{{Status: "active"}}, want: []string{"the job finishes", "the other job finishes"}},
		"nor the other job":      {turns: []simulator.Script{{}, {Status: "active"}}, want: []string{"the other job finishes"}},
		"nor after the message":  {turns: []simulator.Script{{}, {}, {Status: "active"}}, want: []string{"the job finishes again"}},
		"a relative link":        {after: rewrite(`"prLink":"https://[^/]*`, `"prLink":"`), want: []string{"prLink of the finished job"}},
		"a link while active": {after: rewrite(`"prLink":null`, `"prLink":"https://example.com"`), want: []string{
			"the record is whole", "the job finishes", "the job finishes again",
		}},
		"any key may write": {before: ignoreKey("/message"), want: []string{"a message with a wrong key"}},
		"401 with effect": {before: ignoreKey("/message"), fault: simulator.Fault{Kind: "message", Skip: 1, AfterEffect: true, Status: 401, Body: "{}"},
			want: []string{"a message with a wrong key"}},
		"message fails":     {fault: simulator.Fault{Kind: "message", Skip: 2, Status: 500}, want: []string{"a message to a finished job"}},
		"a stale record":    {turns: []simulator.Script{{}, {}, {Stale: 15 * time.Second}}, want: []string{"the record from before the message is shown"}},
		"the key is echoed": {fault: simulator.Fault{Kind: "create", Skip: 2, Status: 429, RetryAfter: canary}, want: []string{"Retry-After of a 429", "starting a job"}},
		"an empty prompt": {
			before: func(r *http.Request) {
				if body := new(bytes.Buffer); r.Method == "POST" {
					_, _ = body.ReadFrom(r.Body)
					r.Body = io.NopCloser(strings.NewReader(strings.Replace(body.String(), `""`, `"x"`, 1)))
				}
			},
			want: []string{"starting a job with an empty prompt"},
		},
		"the same job again": {
			after: func(r *http.Request, w *httptest.ResponseRecorder) {
				if r.URL.Path == jobs && w.Code == 201 {
					if first == nil {
						first = w.Body.Bytes()
					}
					w.Body = bytes.NewBuffer(first)
				}
			},
			want: []string{"the same prompt again starts another job"},
		},
	}
	breakable := map[string]bool{}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := service(append(tt.turns, simulator.Script{})...)
			if tt.fault.Kind != "" {
				s.Inject(tt.fault)
			}
			table, _, err := runWith(t, direct{s, tt.before, tt.after}, "", "-yes", "-timeout=3m")
			var got []string
			for _, match := range cell.FindAllStringSubmatch(table, -1) {
				if strings.HasPrefix(match[2], "**no:** ") {
					got = append(got, match[1])
				}
			}
			if diff := cmp.Diff(tt.want, got); err == nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s\n%s", err, diff, table)
			}
			for _, assumption := range got {
				breakable[assumption] = true
			}
			if tt.want[0] == "reading an unknown job" && len(s.Jobs()) > 0 {
				t.Error("it paid although the first request had failed")
			}
		})
	}
	table, _, _ := runWith(t, direct{Server: service(simulator.Script{})}, "", "-yes")
	for _, match := range cell.FindAllStringSubmatch(table, -1) {
		if !breakable[match[1]] && match[1] != "version 1 lists the job" {
			t.Errorf("nothing breaks %q", match[1])
		}
	}
}
