// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bytes"
	"fmt"
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

const canary = "canary_4e1b"

// direct passes requests to the simulator, without a connection: fake time stands still for one.
type direct struct {
	*simulator.Server

	change func(s *simulator.Server, r *http.Request, w *httptest.ResponseRecorder) // changes a response, unless it is nil
}

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	if d.change != nil {
		d.change(d.Server, r, w)
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
		script.Duration = max(script.Duration, 20*time.Second)
		return script
	}})
}

var cell = regexp.MustCompile(`(?m)^\| (.*?) \| .*? \| (.*) \| 2000-01-01 \|$`)

func TestContractHolds(t *testing.T) {
	s := service(simulator.Script{Stale: 3 * time.Second})
	table, _, err := runWith(t, direct{Server: s}, "", "-yes")
	if head := "api.example.com:\n\n| assumption | expected | seen | date |\n|---|---|---|---|\n| reading an unknown job | 404, JSON | 404, JSON | 2000-01-01 |\n"; err != nil ||
		!strings.HasPrefix(table, head) || !strings.HasSuffix(table, notChecked) {
		t.Errorf("%v\n%s", err, table)
	}
	var prompts []int
	for _, job := range s.Jobs() {
		prompts = append(prompts, len(job.Prompts))
	}
	if counts := s.Counts(); counts.Create != 4 || counts.Message != 4 || !slices.Equal(prompts, []int{2, 2}) {
		t.Errorf("not two jobs with a message each, with each request sent once: %+v, prompts of each job: %v", counts, prompts)
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

// An assumption is broken: exactly its rows turn red.
func TestContractBroken(t *testing.T) {
	// rewrite replaces text in the responses that have it.
	rewrite := func(pattern, text string) func(*simulator.Server, *http.Request, *httptest.ResponseRecorder) {
		return func(_ *simulator.Server, _ *http.Request, w *httptest.ResponseRecorder) {
			w.Body = bytes.NewBufferString(regexp.MustCompile(pattern).ReplaceAllString(w.Body.String(), text))
		}
	}
	type fault = simulator.Fault
	const create, message, get = simulator.KindCreate, simulator.KindMessage, simulator.KindGet
	tests := map[string]struct {
		turns  []simulator.Script
		fault  fault
		change func(*simulator.Server, *http.Request, *httptest.ResponseRecorder)
		want   []string
	}{
		"404 as HTML":        {fault: fault{Kind: get, Status: 404, Body: "<html>"}, want: []string{"reading an unknown job"}},
		"an empty prompt":    {fault: fault{Kind: create, Skip: 1, Status: 201, Body: "{}"}, want: []string{"starting a job with an empty prompt"}},
		"create is an array": {fault: fault{Kind: create, Skip: 2, Status: 201, Body: "[]"}, want: []string{"starting a job"}},
		"no model":           {turns: []simulator.Script{{Extra: map[string]any{"model": simulator.Omit{}}}}, want: []string{"the record is whole"}},
		"an id with a slash": {change: rewrite(`"id":"job_`, `"id":"job/`), want: []string{
			"an id fits in a path", "reading a new job", "a message to an active job", "the job finishes", "the other job finishes",
		}},
		"the same job again": {want: []string{"the same prompt again starts another job"}, change: func(s *simulator.Server, r *http.Request, w *httptest.ResponseRecorder) {
			if jobs := s.Jobs(); strings.HasSuffix(r.URL.Path, "/job") && len(jobs) == 2 {
				w.Body = bytes.NewBufferString(strings.Replace(w.Body.String(), jobs[1].ID, jobs[0].ID, 1))
			}
		}},
		"the new job comes late": {fault: fault{Kind: get, Skip: 2, Times: 70, Status: 404}, want: []string{"reading a new job"}},
		"it never finishes":      {turns: []simulator.Script{{Status: "active"}}, want: []string{"the job finishes", "the other job finishes"}},
		"a relative link":        {change: rewrite(`"prLink":"https://[^/]*`, `"prLink":"`), want: []string{"prLink of the finished job"}},
		"a link while active": {change: rewrite(`"prLink":null`, `"prLink":"https://example.com"`), want: []string{
			"the record is whole", "the job finishes", "the job finishes again",
		}},
		"any key may write": {fault: fault{Kind: message, Skip: 2, Status: 200, Body: "{}"}, want: []string{"a message with a wrong key"}},
		"an active job":     {fault: fault{Kind: message, Skip: 1, Status: 500}, want: []string{"a message to an active job"}},
		"message fails":     {fault: fault{Kind: message, Skip: 3, Status: 500}, want: []string{"a message to a finished job"}},
		"a stale record":    {turns: []simulator.Script{{}, {}, {}, {Duration: 100 * time.Second, Stale: 65 * time.Second}}, want: []string{"the record from before the message is shown"}},
		"the key is echoed": {fault: fault{Kind: create, Skip: 2, Status: 429, RetryAfter: canary}, want: []string{
			"Retry-After of a 429", "starting a job",
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := service(append(tt.turns, simulator.Script{})...)
			if tt.fault.Kind != "" {
				s.Inject(tt.fault)
			}
			table, _, err := runWith(t, direct{s, tt.change}, "", "-yes", "-timeout=3m")
			var got []string
			for _, match := range cell.FindAllStringSubmatch(table, -1) {
				if strings.HasPrefix(match[2], "**no:** ") {
					got = append(got, match[1])
				}
			}
			if diff := cmp.Diff(tt.want, got); err == nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s\n%s", err, diff, table)
			}
			if tt.want[0] == "reading an unknown job" && len(s.Jobs()) > 0 {
				t.Error("it paid although the first request had failed")
			}
		})
	}
}
