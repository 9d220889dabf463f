// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

const second = time.Second

func TestJobRecord(t *testing.T) {
	tests := map[string]struct {
		script simulator.Script
		want   map[string]any // what differs from the default when ended; Omit: missing
	}{
		"default":    {},
		"no link":    {script: simulator.Script{NoPullRequest: true}, want: map[string]any{"prLink": nil}},
		"failed":     {script: simulator.Script{Status: "failed"}, want: map[string]any{"status": "failed", "prLink": nil}},
		"archived":   {script: simulator.Script{Status: "archived"}, want: map[string]any{"status": "archived", "archivedAt": "2000-01-01T00:00:10.000Z"}},
		"unknown":    {script: simulator.Script{Status: "paused"}, want: map[string]any{"status": "paused", "prLink": nil}},
		"never ends": {script: simulator.Script{Status: "active"}, want: map[string]any{"status": "active", "prLink": nil}},
		"extra": {
			script: simulator.Script{Extra: map[string]any{"id": 7, "new": []any{"x"}, "createdAt": nil, "model": simulator.Omit{}}},
			want:   map[string]any{"id": 7.0, "new": []any{"x"}, "createdAt": nil, "model": simulator.Omit{}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.script.Duration = 10 * second
				s := simulator.New(simulator.Options{Key: canary, Script: scripted(tt.script)})
				create(t, s, "x")
				id := s.Jobs()[0].ID
				want := map[string]any{
					"id": id, "status": "completed", "model": "simulated-model", "prLink": "https://github.com/example/docs/pull/1",
					"source":    map[string]any{"repository": "example/docs", "ref": "main"},
					"createdAt": "2000-01-01T00:00:00.000Z", "archivedAt": nil,
				}
				for name, value := range tt.want {
					want[name] = value
					if value == (simulator.Omit{}) {
						delete(want, name)
					}
				}
				time.Sleep(10 * second)
				if diff := cmp.Diff(want, get(t, s, id).object(t)); diff != "" {
					t.Errorf("record (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// One job's life: what GET shows, and what is true, step by step.
func TestJobLife(t *testing.T) { synctest.Test(t, jobLife) }

func jobLife(t *testing.T) {
	s := simulator.New(simulator.Options{Key: canary, Script: scripted(
		simulator.Script{Duration: 10 * second, Extra: map[string]any{"model": "m"}},
		simulator.Script{Duration: 20 * second, Stale: 5 * second},
		simulator.Script{Duration: 2 * second, Stale: 5 * second, Status: "archived"},
	)})
	id := createID(t, s, "1")
	send := func(prompt string) func() reply { return func() reply { return message(t, s, id, prompt) } }
	force := func(status string) func() reply {
		return func() reply { s.SetStatus(id, status); return get(t, s, id) }
	}
	for _, step := range []struct {
		name        string
		do          func() reply // the answer to look at; nil: a GET
		wait        time.Duration
		shown, real string        // status
		prompts     string        // so far
		ended, seen time.Duration // since the start; 0: not
	}{
		{"young", nil, 0, "active", "active", "1", 0, 0},
		{"just before the end", nil, 10*second - 1, "active", "active", "1", 0, 0},
		{"ended", nil, 1, "completed", "completed", "1", 10 * second, 10 * second},
		{"later", nil, 5 * second, "completed", "completed", "1", 10 * second, 10 * second},
		{"stale answer", send("2"), 0, "completed", "active", "12", 0, 0},
		{"stale GET", nil, 5*second - 1, "completed", "active", "12", 0, 0},
		{"fresh GET", nil, 1, "active", "active", "12", 0, 0},
		{"ended again", nil, 16 * second, "completed", "completed", "12", 35 * second, 36 * second},
		{"third turn", send("3"), 0, "completed", "active", "123", 0, 0},
		{"ended while stale", nil, 3 * second, "completed", "archived", "123", 38 * second, 0},
		{"the end is shown", nil, 2 * second, "archived", "archived", "123", 38 * second, 41 * second},
		{"forced to fail", force("failed"), 0, "failed", "failed", "123", 38 * second, 41 * second},
		{"forced back", force("active"), 0, "active", "active", "123", 0, 0},
		{"forced to complete", force("completed"), 0, "completed", "completed", "123", 41 * second, 41 * second},
	} {
		time.Sleep(step.wait)
		if step.do == nil {
			step.do = func() reply { return get(t, s, id) }
		}
		r := step.do().object(t)
		if link := r["prLink"] != nil; r["status"] != step.shown || link != (step.shown == "completed" || step.shown == "archived") || r["model"] != "m" {
			t.Errorf("%s: %v, want %s", step.name, r, step.shown)
		}
		want := simulator.Job{ID: id, Project: "proj", Status: step.real, Prompts: strings.Split(step.prompts, ""), CreatedAt: start}
		if step.real == "completed" || step.real == "archived" {
			want.PullRequest = "https://github.com/example/docs/pull/1"
		}
		for at, since := range map[*time.Time]time.Duration{&want.EndedAt: step.ended, &want.FirstTerminalGet: step.seen} {
			if since > 0 {
				*at = start.Add(since)
			}
		}
		if job, ok := s.Job(id); !ok || !cmp.Equal(want, job) {
			t.Errorf("%s: job (-want +got):\n%s", step.name, cmp.Diff(want, job))
		}
	}
}

// A job that somebody else starts, and that the service forgets.
func TestCreateAndForget(t *testing.T) {
	s := simulator.New(simulator.Options{Key: canary, Limit: &simulator.Limit{Uses: 1, Per: time.Hour}})
	kept, gone := s.Create("proj", "x"), s.Create("proj", "y")
	s.Forget(gone.ID)
	s.Forget("job_unknown")
	s.SetStatus("job_unknown", "failed")
	want := simulator.Job{ID: kept.ID, Project: "proj", Status: "active", Prompts: []string{"x"}, CreatedAt: kept.CreatedAt}
	if diff := cmp.Diff([]simulator.Job{want}, s.Jobs()); diff != "" || len(s.Requests()) != 0 {
		t.Errorf("requests %v, jobs (-want +got):\n%s", s.Requests(), diff)
	}
	if got := get(t, s, gone.ID).status; got != 404 {
		t.Errorf("GET answers %d", got)
	}
	if got := create(t, s, "z").status; got != 201 {
		t.Errorf("it took a use of the limit: %d", got)
	}
}

// A script may ask the server, which must not deadlock.
func TestScriptAsksServer(t *testing.T) {
	var s *simulator.Server
	var turns []int
	s = simulator.New(simulator.Options{Key: canary, Script: func(_ string, turn int) simulator.Script {
		turns = append(turns, turn, len(s.Jobs()))
		return simulator.Script{}
	}})
	message(t, s, createID(t, s, "x"), "y")
	if diff := cmp.Diff([]int{0, 0, 1, 1}, turns); diff != "" {
		t.Errorf("turns and jobs (-want +got):\n%s", diff)
	}
}

func TestLimit(t *testing.T) { synctest.Test(t, limit) }

func limit(t *testing.T) {
	s := simulator.New(simulator.Options{Key: canary, Limit: &simulator.Limit{Uses: 2, Per: time.Minute, RetryAfter: true}})
	time.Sleep(time.Hour)
	id := createID(t, s, "x")
	time.Sleep(10*second + 500*time.Millisecond)
	for _, step := range []struct {
		name       string
		got        func() reply
		want       int
		retryAfter string
	}{
		{"unknown job", func() reply { return message(t, s, "job_none", "x") }, 404, ""},
		{"second use", func() reply { return message(t, s, id, "x") }, 200, ""},
		{"create", func() reply { return create(t, s, "y") }, 429, "50"},
		{"message", func() reply { return message(t, s, id, "y") }, 429, "50"},
		{"GET", func() reply { return get(t, s, id) }, 200, ""},
		{"another project", func() reply { return call(t, s, "POST", "/v2/agent/other/job", `{"prompt":"x"}`) }, 201, ""},
		{"end of the window", func() reply { time.Sleep(49*second + 500*time.Millisecond - 1); return create(t, s, "y") }, 429, "1"},
		{"next window", func() reply { time.Sleep(time.Nanosecond); return create(t, s, "y") }, 201, ""},
		{"its second use", func() reply { return message(t, s, id, "y") }, 200, ""},
		{"all windows ended", func() reply { s.EndWindows(); return create(t, s, "y") }, 201, ""},
	} {
		if got := step.got(); got.status != step.want || got.header.Get("Retry-After") != step.retryAfter {
			t.Errorf("%s: %+v, want %d with Retry-After %q", step.name, got, step.want, step.retryAfter)
		}
	}
	if job, _ := s.Job(id); len(job.Prompts) != 3 {
		t.Errorf("what was refused had an effect: %q", job.Prompts)
	}
	silent := simulator.New(simulator.Options{Key: canary, Limit: &simulator.Limit{Per: time.Minute}})
	if got := create(t, silent, "y"); got.status != 429 || got.header.Get("Retry-After") != "" {
		t.Errorf("without Retry-After: %+v", got)
	}
}
