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

// What directives make of a job that would take a minute: when it ends, and how.
func TestDirectives(t *testing.T) {
	type end struct {
		after  time.Duration
		status string
		link   bool
	}
	for prompt, want := range map[string]end{
		"Add a quickstart":               {time.Minute, "completed", true},
		"a [simulate: 30s] b":            {30 * time.Second, "completed", true},
		"[simulate: 1m30s, failed]":      {90 * time.Second, "failed", false},
		"[simulate:archived,0s]":         {0, "archived", true},
		"[simulate: active ]":            {time.Time{}.Sub(start), "active", false}, // never
		"[simulate: no-pull-request]":    {time.Minute, "completed", false},
		"[simulate: 20s, stale=5s] more": {20 * time.Second, "completed", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(simulator.Script{Duration: time.Minute})
			create(t, s, prompt)
			time.Sleep(time.Hour)
			job := s.Jobs()[0]
			if got := (end{job.EndedAt.Sub(start), job.Status, get(t, s, job.ID).fields["prLink"] != nil}); got != want {
				t.Errorf("%s: %+v, want %+v", prompt, got, want)
			}
		})
	}
}

// The life of a job with a message, whose old record is shown for a while: what GET shows, and what is true.
func TestJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(
			simulator.Script{Duration: 10 * time.Second, Extra: map[string]any{"model": simulator.Omit{}, "new": []any{"x"}}},
			simulator.Script{Duration: 2 * time.Second, Status: "archived"},
		)
		create(t, s, "1")
		job := s.Jobs()[0]
		record := map[string]any{
			"id": job.ID, "status": "completed", "prLink": "https://github.com/example/docs/pull/1", "new": []any{"x"},
			"source":    map[string]any{"repository": "https://github.com/example/docs", "ref": "main"},
			"createdAt": "2000-01-01T00:00:00.000Z", "archivedAt": nil,
		}
		expect := func(step string, shown map[string]any) {
			t.Helper()
			if diff := cmp.Diff(record, shown); diff != "" {
				t.Errorf("%s: record (-want +got):\n%s", step, diff)
			}
			if got, ok := s.Job(job.ID); !ok || !cmp.Equal(job, got) {
				t.Errorf("%s: job (-want +got):\n%s", step, cmp.Diff(job, got))
			}
		}
		time.Sleep(11 * time.Second)
		shown := get(t, s, job.ID).fields
		job.Status, job.PullRequest = "completed", "https://github.com/example/docs/pull/1"
		job.EndedAt, job.FirstTerminalGet = start.Add(10*time.Second), start.Add(11*time.Second)
		expect("ended", shown)

		shown = message(t, s, job.ID, "2 [simulate: stale=5s]").fields
		job.Status, job.PullRequest, job.Prompts = "active", "", []string{"1", "2 [simulate: stale=5s]"}
		job.EndedAt, job.FirstTerminalGet = time.Time{}, time.Time{}
		expect("stale answer", shown)
		time.Sleep(5*time.Second - 1)
		shown = get(t, s, job.ID).fields
		job.Status, job.PullRequest, job.EndedAt = "archived", "https://github.com/example/docs/pull/1", start.Add(13*time.Second)
		expect("stale GET", shown)

		time.Sleep(time.Nanosecond)
		shown = get(t, s, job.ID).fields
		record["status"], record["archivedAt"] = "archived", "2000-01-01T00:00:13.000Z"
		job.FirstTerminalGet = start.Add(16 * time.Second)
		expect("fresh GET", shown)
	})
}
