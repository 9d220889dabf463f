// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wait

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
)

// How a wait ends, by what the polls say. The matrix has each of these rows with
// the resource around it; here are the exact times and numbers of polls.
func TestWait(t *testing.T) {
	t.Parallel()
	old := &agentapi.Job{ID: "job_1", Status: completed, PRLink: new("https://x.invalid/old")}
	linked := &agentapi.Job{ID: "job_1", Status: active, PRLink: old.PRLink}
	busy := fault(agentapi.ErrUnavailable, 503, nil)
	busy.RetryAfter = 2 * time.Minute
	foundLate := change(fault404, 50*time.Second, active)
	const settled = Settle + 1200*time.Millisecond
	for name, tc := range map[string]struct {
		after   Event
		limit   time.Duration // 0: an hour
		answers answers
		status  agentapi.Status // last seen
		is      error           // nil: the job has ended
		polls   int             // 0: any number
		lo, hi  time.Duration
	}{
		"archived":              {Created, 0, sequence(agentapi.StatusArchived), agentapi.StatusArchived, nil, 1, time.Second, 2 * time.Second},
		"P04 link while active": {Created, 0, sequence(linked, linked, completed), completed, nil, 3, 0, 10 * time.Second},
		"P06 Retry-After, once": {Resumed, 0, sequence(busy, active, completed), completed, nil, 3, 2 * time.Minute, 2*time.Minute + 15*time.Second},
		"P08 stored late":       {Created, time.Minute, foundLate, active, context.DeadlineExceeded, 0, time.Minute, time.Minute},
		"P08 never found":       {Created, 0, sequence(fault404), "", agentapi.ErrNotFound, 0, NewJobGrace, NewJobGrace + 8*time.Second},
		"P09 when resumed":      {Resumed, 0, foundLate, "", agentapi.ErrNotFound, 1, 0, 0},
		"P09 after a message":   {Messaged, 0, foundLate, "", agentapi.ErrNotFound, 1, 0, 2 * time.Second},
		"M01 old, then active":  {Messaged, 0, sequence(old, old, active, failed), failed, nil, 4, 3 * time.Second, 6 * time.Second},
		"M05 the old link":      {Messaged, 0, sequence(linked, linked, completed), completed, nil, 3, 0, 10 * time.Second},
		"M02 ended unseen":      {Messaged, 0, sequence(old), completed, nil, 0, Settle, settled},
		"M02 no status":         {Messaged, 0, sequence(noStatus, completed), completed, nil, 0, Settle, settled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, tc.after, cmp.Or(tc.limit, time.Hour), tc.answers, func(p *poller, status agentapi.Status, failure *Error) {
				took := time.Since(p.start)
				if status != tc.status || !errors.Is(failure.Err, tc.is) || tc.polls != 0 && len(p.at) != tc.polls || took < tc.lo || took > tc.hi {
					t.Errorf("%q and %v by %d polls after %v, want %q and %v by %d after %v to %v",
						status, failure.Err, len(p.at), took, tc.status, tc.is, tc.polls, tc.lo, tc.hi)
				}
			})
		})
	}
}

// What cannot pass ends a wait at once, everything else at its timeout. The error knows of
// the last poll.
func TestWait_error(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		then      []any // after the first poll, which says active
		is        error
		lastFault error
		status    agentapi.Status
	}{
		"P07 401":        {[]any{fault401}, agentapi.ErrKeyRejected, fault401, active},
		"pause too long": {[]any{pauseTooLong}, agentapi.ErrPauseTooLong, pauseTooLong, active},
		"P01 the status": {[]any{agentapi.Status("que\x1bued")}, context.DeadlineExceeded, nil, "que\x1bued"},
		"P02 no status":  {[]any{noStatus}, context.DeadlineExceeded, errNoStatus, active},
		"the last fault": {[]any{fault500}, context.DeadlineExceeded, fault500, active},
		"no past fault":  {[]any{fault500, active}, context.DeadlineExceeded, nil, active},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, Created, time.Minute, sequence(append([]any{active}, tc.then...)...), func(p *poller, status agentapi.Status, failure *Error) {
				if !errors.Is(failure, tc.is) || !errors.Is(failure.LastFault, tc.lastFault) || status != tc.status {
					t.Errorf("%+v after %q, want %v after %q and %v", failure, status, tc.is, tc.status, tc.lastFault)
				}
				atTimeout := errors.Is(tc.is, context.DeadlineExceeded)
				if atTimeout && failure.Waited != time.Minute || !atTimeout && len(p.at) != 2 {
					t.Errorf("it took %d polls and %v", len(p.at), failure.Waited)
				}
			})
		})
	}
}

func TestError_text(t *testing.T) {
	t.Parallel()
	for want, failure := range map[string]*Error{
		"job job_1: context deadline exceeded after 1m1s": {JobID: "job_1", Waited: 61499 * time.Millisecond, Err: context.DeadlineExceeded},
		`job job_1: context canceled after 0s, last status "` + strings.Repeat("x", 511) + `…"`: {
			JobID: "job_1", LastStatus: agentapi.Status(strings.Repeat("x", 10000)), Err: context.Canceled,
		},
	} {
		if got := failure.Error(); got != want {
			t.Errorf("Error() = %q, want %q", got, want)
		}
	}
}

// A wait that is resumed does not begin the settle time again.
func TestWait_sinceTheMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPoller(sequence(completed))
		_, failure := p.wait(t.Context(), t, Target{After: Messaged, At: p.start.Add(-7 * time.Second)})
		if took := time.Since(p.start); failure.Err != nil || took < 3*time.Second || took > 4200*time.Millisecond {
			t.Errorf("%v after %v, want the end after 3s to 4.2s", failure.Err, took)
		}
	})
}

func TestMayBeStale(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // a clock that stands still
		for age, want := range map[time.Duration]bool{0: true, Settle - 1: true, Settle: false, time.Hour: false} {
			if at := time.Now().Add(-age); MayBeStale(failed, at) != want || MayBeStale(active, at) {
				t.Errorf("%v after the message: failed may be stale is %t", age, !want)
			}
		}
	})
}

func TestWait_progress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPoller(sequence(active, fault500, noStatus, agentapi.Status("paused"), completed))
		got := map[time.Duration]agentapi.Status{}
		_, failure := p.wait(t.Context(), t, Target{After: Created, Progress: func(j *agentapi.Job, age time.Duration) { got[age] = j.Status }})
		if want := (map[time.Duration]agentapi.Status{p.at[0]: active, p.at[3]: "paused", p.at[4]: completed}); failure.Err != nil || !maps.Equal(got, want) {
			t.Errorf("%v, progress %v, want %v", failure.Err, got, want)
		}
	})
}

// A wait that ends before the first poll, in one, or between two, returns in that moment.
func TestWait_interrupted(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Duration{0, 2 * time.Second, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			p := newPoller(sequence(active))
			p.latency = time.Second
			ctx, cancel := context.WithCancel(t.Context())
			if time.AfterFunc(at, cancel); at == 0 {
				cancel()
			}
			if _, failure := p.wait(ctx, t, Target{After: Created}); !errors.Is(failure, context.Canceled) || failure.Waited != at {
				t.Errorf("at %v: %+v, want the end of the context", at, failure)
			}
		})
	}
}

// The end of a job counts even if the wait is interrupted in that moment.
func TestWait_interruptedAtTheEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	p := newPoller(func(int, time.Duration) any { cancel(); return completed })
	if status, failure := p.wait(ctx, t, Target{}); failure.Err != nil || status != completed {
		t.Errorf("%q, %v, want completed", status, failure.Err)
	}
}

func TestSchedule(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		schedule Schedule
		age      time.Duration // negative: the first poll
		mean     time.Duration
	}{
		{usual, -1, 1600 * time.Millisecond},
		{usual, 0, 800 * time.Millisecond},
		{usual, 20 * time.Second, 2 * time.Second},
		{usual, 24 * time.Hour, 10 * time.Second},
		{Schedule{Min: 6 * time.Second, Max: 10 * time.Second}, -1, 10 * time.Second},
	} {
		distinct := map[time.Duration]bool{}
		least, most := time.Duration(1<<62), time.Duration(0)
		for range 1000 {
			pause := tc.schedule.next(tc.age)
			if tc.age < 0 {
				pause = tc.schedule.first()
			}
			if off := (pause - tc.mean).Abs(); off > tc.mean/10 {
				t.Fatalf("%+v at age %v pauses %v, want %v within a tenth", tc.schedule, tc.age, pause, tc.mean)
			}
			distinct[pause] = true
			least, most = min(least, pause), max(most, pause)
		}
		if len(distinct) < 500 || most-least < tc.mean/10 {
			t.Errorf("%+v at age %v pauses %v to %v in %d ways: too little jitter", tc.schedule, tc.age, least, most, len(distinct))
		}
	}
}
