// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator_test

import (
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
	const link = "https://github.com/example/docs/pull/1"
	type shown struct{ Status, Link any }
	s := simulator.New(simulator.Options{Key: canary, Script: scripted(
		simulator.Script{Duration: 10 * second, Extra: map[string]any{"model": "m"}},
		simulator.Script{Duration: 20 * second, Stale: 5 * second},
		simulator.Script{Duration: 2 * second, Stale: 5 * second, Status: "archived"},
	)})
	at := func(d time.Duration) time.Time { return start.Add(d) }
	id := createID(t, s, "one")
	steps := []struct {
		name string
		do   func() reply // the answer to look at; nil: a GET
		wait time.Duration
		want shown
		job  simulator.Job
	}{
		{name: "young", want: shown{"active", nil},
			job: simulator.Job{Status: "active", Prompts: []string{"one"}}},
		{name: "just before the end", wait: 10*second - 1, want: shown{"active", nil},
			job: simulator.Job{Status: "active", Prompts: []string{"one"}}},
		{name: "ended", wait: 1, want: shown{"completed", link},
			job: simulator.Job{Status: "completed", Prompts: []string{"one"}, PullRequest: link, EndedAt: at(10 * second), FirstTerminalGet: at(10 * second)}},
		{name: "later", wait: 5 * second, want: shown{"completed", link},
			job: simulator.Job{Status: "completed", Prompts: []string{"one"}, PullRequest: link, EndedAt: at(10 * second), FirstTerminalGet: at(10 * second)}},
		{name: "stale answer", do: func() reply { return message(t, s, id, "two") }, want: shown{"completed", link},
			job: simulator.Job{Status: "active", Prompts: []string{"one", "two"}}},
		{name: "stale GET", wait: 5*second - 1, want: shown{"completed", link},
			job: simulator.Job{Status: "active", Prompts: []string{"one", "two"}}},
		{name: "fresh GET", wait: 1, want: shown{"active", nil},
			job: simulator.Job{Status: "active", Prompts: []string{"one", "two"}}},
		{name: "ended again", wait: 16 * second, want: shown{"completed", link},
			job: simulator.Job{Status: "completed", Prompts: []string{"one", "two"}, PullRequest: link, EndedAt: at(35 * second), FirstTerminalGet: at(36 * second)}},
		{name: "third turn", do: func() reply { return message(t, s, id, "three") }, want: shown{"completed", link},
			job: simulator.Job{Status: "active", Prompts: []string{"one", "two", "three"}}},
		{name: "ended while stale", wait: 3 * second, want: shown{"completed", link},
			job: simulator.Job{Status: "archived", Prompts: []string{"one", "two", "three"}, PullRequest: link, EndedAt: at(38 * second)}},
		{name: "the end is shown", wait: 2 * second, want: shown{"archived", link},
			job: simulator.Job{Status: "archived", Prompts: []string{"one", "two", "three"}, PullRequest: link, EndedAt: at(38 * second), FirstTerminalGet: at(41 * second)}},
		{name: "forced to fail", do: func() reply { s.SetStatus(id, "failed"); return get(t, s, id) }, want: shown{"failed", nil},
			job: simulator.Job{Status: "failed", Prompts: []string{"one", "two", "three"}, EndedAt: at(38 * second), FirstTerminalGet: at(41 * second)}},
		{name: "forced back", do: func() reply { s.SetStatus(id, "active"); return get(t, s, id) }, want: shown{"active", nil},
			job: simulator.Job{Status: "active", Prompts: []string{"one", "two", "three"}}},
		{name: "forced to complete", do: func() reply { s.SetStatus(id, "completed"); return get(t, s, id) }, want: shown{"completed", link},
			job: simulator.Job{Status: "completed", Prompts: []string{"one", "two", "three"}, PullRequest: link, EndedAt: at(41 * second), FirstTerminalGet: at(41 * second)}},
	}
	for _, step := range steps {
		time.Sleep(step.wait)
		if step.do == nil {
			step.do = func() reply { return get(t, s, id) }
		}
		r := step.do().object(t)
		if diff := cmp.Diff(step.want, shown{r["status"], r["prLink"]}); diff != "" {
			t.Errorf("%s: answer (-want +got):\n%s", step.name, diff)
		}
		if r["model"] != "m" {
			t.Errorf("%s: what the first turn set is lost: %v", step.name, r)
		}
		job, ok := s.Job(id)
		step.job.ID, step.job.Project, step.job.CreatedAt = id, "proj", start
		if diff := cmp.Diff(step.job, job); diff != "" || !ok {
			t.Errorf("%s: job (-want +got):\n%s", step.name, diff)
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
		{"next window", func() reply { time.Sleep(1); return create(t, s, "y") }, 201, ""},
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
