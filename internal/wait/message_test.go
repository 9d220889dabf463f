// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wait

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
)

// Only a job that is active within the settle time shows it.
func TestMessageEffect(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer func(int, time.Duration) (*agentapi.Job, error)
		shown  bool
		gets   int
		took   time.Duration
	}{
		"active at once":        {sequence(agentapi.StatusActive), true, 1, 0},
		"active at the last":    {activeFrom(9 * time.Second), true, 4, 9 * time.Second},
		"active too late":       {activeFrom(Settle + time.Second), false, 4, Settle},
		"an unknown status":     {sequence(agentapi.Status("queued")), false, 4, Settle},
		"the job is not found":  {sequence(agentapi.StatusCompleted, fault404), false, 2, 3 * time.Second},
		"no status, and active": {sequence(agentapi.Status(""), agentapi.StatusActive), true, 2, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPoller(tc.answer)
				got := MessageEffect(t.Context(), getter{p}, "p", "job_1", 3*time.Second)
				if shown := got != nil; shown != tc.shown || len(p.at) != tc.gets || time.Since(p.start) != tc.took {
					t.Errorf("shown %t by %d GETs in %s, want %t by %d in %s", shown, len(p.at), time.Since(p.start), tc.shown, tc.gets, tc.took)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p := newPoller(sequence(agentapi.StatusCompleted))
		if got := MessageEffect(ctx, getter{p}, "p", "job_1", 3*time.Second); got != nil || time.Since(p.start) != 0 {
			t.Errorf("%v after %s, want an end at once", got, time.Since(p.start))
		}
	})
}

// getter makes the poller a Getter.
type getter struct{ *poller }

func (g getter) GetJob(ctx context.Context, projectID, jobID string) (*agentapi.Job, error) {
	return g.PollJob(ctx, projectID, jobID)
}

// activeFrom is a job that has ended, and is active again from that age on.
func activeFrom(age time.Duration) func(int, time.Duration) (*agentapi.Job, error) {
	return func(_ int, now time.Duration) (*agentapi.Job, error) {
		if now < age {
			return job(agentapi.StatusCompleted), nil
		}
		return job(agentapi.StatusActive), nil
	}
}
