// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wait

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
)

// TestAfterAMessage are the rows M01, M02 and M05: which terminal record counts
// when the job had ended once before.
func TestAfterAMessage(t *testing.T) {
	t.Parallel()
	old := &agentapi.Job{ID: "job_1", Status: agentapi.StatusCompleted, PRLink: new("https://x.invalid/old")}
	stale := func(until, end time.Duration) func(int, time.Duration) (*agentapi.Job, error) {
		return func(_ int, age time.Duration) (*agentapi.Job, error) {
			switch {
			case age < until:
				return old, nil
			case age < end:
				return job(agentapi.StatusActive), nil
			}
			return job(agentapi.StatusFailed), nil
		}
	}
	for name, tc := range map[string]struct {
		answer func(int, time.Duration) (*agentapi.Job, error)
		want   agentapi.Status
		lo, hi time.Duration
	}{
		"M01 the old record shows for a while":   {stale(7*time.Second, time.Minute), agentapi.StatusFailed, time.Minute, 67 * time.Second},
		"M01 active at once, ended soon":         {sequence(agentapi.StatusActive, agentapi.StatusCompleted), agentapi.StatusCompleted, time.Second, 4 * time.Second},
		"M01 old, active, ended within settling": {sequence(old, old, agentapi.StatusActive, agentapi.StatusFailed), agentapi.StatusFailed, 3 * time.Second, 6 * time.Second},
		"M01 unknown status counts as active":    {sequence(agentapi.Status("queued"), agentapi.StatusCompleted), agentapi.StatusCompleted, time.Second, 4 * time.Second},
		"M02 ended before active was seen":       {sequence(agentapi.StatusCompleted), agentapi.StatusCompleted, Settle, Settle + 1200*time.Millisecond},
		"M02 a missing status is not active":     {sequence(&agentapi.Job{ID: "job_1"}, agentapi.StatusCompleted), agentapi.StatusCompleted, Settle, Settle + 1200*time.Millisecond},
		"M02 a fault is not active":              {sequence(fault500, agentapi.StatusCompleted), agentapi.StatusCompleted, Settle, Settle + 1200*time.Millisecond},
		"M05 the old link still present":         {sequence(old), agentapi.StatusCompleted, Settle, Settle + 1200*time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, Messaged, time.Hour, tc.answer, func(r result, _ *Error) {
				if r.is != nil || r.status != tc.want || r.took < tc.lo || r.took > tc.hi {
					t.Errorf("%+v, want %s after %v to %v", r, tc.want, tc.lo, tc.hi)
				}
			})
		})
	}
}

// TestStaleRecordIsNoEnd: cut short while only the old record was seen, the
// wait is an error, whatever that record says.
func TestStaleRecordIsNoEnd(t *testing.T) {
	t.Parallel()
	run(t, Messaged, 8*time.Second, sequence(agentapi.StatusCompleted), func(r result, failure *Error) {
		if !errors.Is(failure, ErrTimeout) || r.took != 8*time.Second || r.polls < 5 {
			t.Errorf("%+v, %v, want a timeout after 8s", r, failure)
		}
	})
}

// TestSettleCountsFromTheMessage: a wait that is resumed does not begin the
// settle time anew.
func TestSettleCountsFromTheMessage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		since  time.Duration
		lo, hi time.Duration
	}{
		"in the settle time": {7 * time.Second, 3 * time.Second, 4200 * time.Millisecond},
		"after it":           {Settle, 0, 1760 * time.Millisecond},
		"long ago":           {24 * time.Hour, 0, 1760 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPoller(sequence(agentapi.StatusCompleted))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err := Waiter{Poller: p, Schedule: usual}.Wait(ctx, Request{ProjectID: "p", JobID: "job_1", After: Messaged, At: p.start.Add(-tc.since)})
				if took := time.Since(p.start); err != nil || took < tc.lo || took > tc.hi {
					t.Errorf("%v after %v, want the end after %v to %v", err, took, tc.lo, tc.hi)
				}
			})
		})
	}
}

// TestMessageEffect: only a job that is active within the settle time shows it.
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
