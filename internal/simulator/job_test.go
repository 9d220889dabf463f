// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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

// Neither a forced status nor the next message is hidden by an old stale record.
func TestStaleEndsEarly(t *testing.T) { synctest.Test(t, staleEndsEarly) }

func staleEndsEarly(t *testing.T) {
	s := simulator.New(simulator.Options{Key: canary, Script: scripted(
		simulator.Script{Stale: time.Hour}, simulator.Script{Duration: second, Stale: time.Hour}, simulator.Script{Duration: second})})
	id := createID(t, s, "one")
	if got := status(t, s, id); got != "completed" {
		t.Errorf("the first turn: %v", got)
	}
	message(t, s, id, "two")
	if got := status(t, s, id); got != "completed" {
		t.Errorf("stale: %v", got)
	}
	message(t, s, id, "three")
	if got := status(t, s, id); got != "active" {
		t.Errorf("after the next message: %v", got)
	}

	forced := createID(t, s, "one")
	message(t, s, forced, "two")
	s.SetStatus(forced, "failed")
	if got := status(t, s, forced); got != "failed" {
		t.Errorf("forced: %v", got)
	}
}

func TestForget(t *testing.T) {
	s := simulator.New(simulator.Options{Key: canary})
	kept, gone := createID(t, s, "x"), createID(t, s, "y")
	s.Forget(gone)
	s.Forget("job_unknown")
	s.SetStatus("job_unknown", "failed")
	if got := get(t, s, gone).status; got != 404 {
		t.Errorf("GET answers %d", got)
	}
	if got := message(t, s, gone, "z").status; got != 404 {
		t.Errorf("message answers %d", got)
	}
	if _, ok := s.Job(gone); ok {
		t.Error("Job still has it")
	}
	if jobs := s.Jobs(); len(jobs) != 1 || jobs[0].ID != kept {
		t.Errorf("jobs %v", jobs)
	}
}

func TestCreateOutside(t *testing.T) { synctest.Test(t, createOutside) }

func createOutside(t *testing.T) {
	s := simulator.New(simulator.Options{Key: canary, Limit: &simulator.Limit{Uses: 1, Per: time.Hour}})
	job := s.Create("proj", "x")
	want := simulator.Job{ID: job.ID, Project: "proj", Status: "active", Prompts: []string{"x"}, CreatedAt: start}
	if diff := cmp.Diff(want, job, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("job (-want +got):\n%s", diff)
	}
	if len(s.Requests()) != 0 {
		t.Error("it is on record")
	}
	if got := create(t, s, "y").status; got != 201 {
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
	id := createID(t, s, "x")
	message(t, s, id, "y")
	message(t, s, id, "z")
	s.Jobs()[0].Prompts[0] = "changed by a caller"
	if job, _ := s.Job(id); job.Prompts[0] != "x" {
		t.Errorf("prompts %q", job.Prompts)
	}
	if diff := cmp.Diff([]int{0, 0, 1, 1, 2, 1}, turns); diff != "" {
		t.Errorf("turns and jobs (-want +got):\n%s", diff)
	}
}

func TestLimit(t *testing.T) { synctest.Test(t, limit) }

func limit(t *testing.T) {
	s := simulator.New(simulator.Options{Key: canary, Limit: &simulator.Limit{Uses: 2, Per: time.Minute, RetryAfter: true}})
	time.Sleep(time.Hour)
	id := createID(t, s, "x")
	time.Sleep(10*second + 500*time.Millisecond)
	if got := message(t, s, "job_none", "x").status; got != 404 {
		t.Errorf("unknown job: %d", got)
	}
	if got := message(t, s, id, "x").status; got != 200 {
		t.Errorf("second use: %d", got)
	}
	for name, got := range map[string]reply{"create": create(t, s, "y"), "message": message(t, s, id, "y")} {
		if got.status != 429 || got.header.Get("Retry-After") != "50" || got.object(t)["error"] != "rate limit exceeded" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if job, _ := s.Job(id); len(job.Prompts) != 2 || len(s.Jobs()) != 1 {
		t.Error("what was refused had an effect")
	}
	if got := get(t, s, id).status; got != 200 {
		t.Errorf("GET is limited too: %d", got)
	}
	if got := call(t, s, "POST", "/v2/agent/other/job", `{"prompt":"x"}`).status; got != 201 {
		t.Errorf("another project is limited too: %d", got)
	}
	time.Sleep(49*second + 500*time.Millisecond - time.Nanosecond)
	if got := create(t, s, "y"); got.status != 429 || got.header.Get("Retry-After") != "1" {
		t.Errorf("end of the window: %+v", got)
	}
	time.Sleep(time.Nanosecond)
	if got := create(t, s, "y").status; got != 201 {
		t.Errorf("next window: %d", got)
	}

	if got := message(t, s, id, "y").status; got != 200 {
		t.Errorf("second use of the next window: %d", got)
	}
	s.EndWindows()
	if got := create(t, s, "y").status; got != 201 {
		t.Errorf("after the end of all windows: %d", got)
	}

	silent := simulator.New(simulator.Options{Key: canary, Limit: &simulator.Limit{Per: time.Minute}})
	if got := create(t, silent, "y"); got.status != 429 || got.header.Get("Retry-After") != "" {
		t.Errorf("without Retry-After: %+v", got)
	}
}
