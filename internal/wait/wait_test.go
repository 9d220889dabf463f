// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wait

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
)

// How a wait ends, by what the polls say: at once by what has persisted, at its timeout by anything else. TestJob_steps
// has some of them with the resource around them.
func TestWait(t *testing.T) {
	t.Parallel()
	old := &agentapi.Job{ID: "job_1", Status: completed, PRLink: new("https://x.invalid/old")}
	linked := &agentapi.Job{ID: "job_1", Status: active, PRLink: old.PRLink}
	busy := fault(agentapi.ErrUnavailable, 503, nil)
	busy.RetryAfter = 2 * time.Minute
	all := func(answers ...any) []any { return answers }
	gone := all(fault404)
	odd := agentapi.Status("que\x1bued")
	stale := func() agentapi.Status { // since the start of the bubble's clock
		switch age := time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)); {
		case age < 59*time.Second:
			return completed
		case age < 70*time.Second:
			return active
		}
		return failed
	}
	interrupting := func() agentapi.Status { time.Sleep(time.Hour); return completed }
	expired, timeout := context.DeadlineExceeded, time.Minute
	for name, tc := range map[string]struct {
		after   Event
		answers []any
		ago     time.Duration // was the message
		limit   time.Duration // 0: an hour
		latency time.Duration
		status  agentapi.Status // last seen
		unseen  bool            // that the job was active, before its end
		is      error           // nil: the job has ended
		last    error           // fault
		polls   int             // 0: any number
		lo, hi  float64         // seconds that it takes
	}{
		"archived":              {after: Created, answers: all(agentapi.StatusArchived), status: agentapi.StatusArchived, polls: 1, lo: 0.7, hi: 0.9},
		"P04 link while active": {after: Created, answers: all(linked, linked, completed), status: completed, polls: 3, hi: 10},
		"P06 Retry-After":       {answers: all(busy, active, completed), status: completed, polls: 3, lo: 10, hi: 12},
		"P06 as time runs out":  {answers: all(busy, completed), limit: 10 * time.Second, status: completed, polls: 2, lo: 4, hi: 6},
		"P09 after a message":   {after: Messaged, answers: gone, is: agentapi.ErrNotFound, last: fault404, polls: 1, hi: 0},
		"M01 old, then active":  {after: Messaged, answers: all(old, old, active, failed), status: failed, polls: 4, lo: 2, hi: 4},
		"M01 old for 59 s":      {after: Messaged, answers: all(stale), status: failed, lo: 70, hi: 78},
		"M05 the old link":      {after: Messaged, answers: all(linked, linked, completed), status: completed, polls: 3, hi: 10},
		"M02 ended unseen":      {after: Messaged, answers: all(old), status: completed, unseen: true, lo: 60, hi: 66.6},
		"M02 no status":         {after: Messaged, answers: all(noStatus, completed), status: completed, unseen: true, lo: 60, hi: 66.6},
		"M02 when resumed":      {after: Messaged, ago: 57 * time.Second, answers: all(completed), status: completed, unseen: true, lo: 3, hi: 4.2},
		"M02 resumed later":     {after: Messaged, ago: time.Minute, answers: all(completed), status: completed, unseen: true, polls: 1},
		"M02 other clock ahead": {after: Messaged, ago: -time.Hour, answers: all(completed), status: completed, unseen: true, lo: 60, hi: 66.6},
		"P07 401":               {answers: all(active, fault401), status: active, is: fault401, last: fault401, polls: 2, hi: 1},
		"P07 as time runs out":  {answers: all(active, fault401), latency: 40 * time.Second, limit: timeout, status: active, is: expired, last: fault401, polls: 2, lo: 60, hi: 60},
		"P01 the status":        {answers: all(active, odd), limit: timeout, status: odd, is: expired, lo: 60, hi: 60},
		"P02 no status":         {answers: all(active, noStatus), limit: timeout, status: active, is: expired, last: errNoStatus, lo: 60, hi: 60},
		"no past fault":         {answers: all(fault500, active), limit: timeout, status: active, is: expired, lo: 60, hi: 60},
		"before the first poll": {after: Created, answers: all(active), limit: time.Second / 2, is: expired, lo: 0.5, hi: 0.5},
		"in a poll":             {answers: all(active), latency: time.Hour, limit: time.Second, is: expired, polls: 1, lo: 1, hi: 1},
		"at the job's end":      {answers: all(interrupting), limit: timeout, status: completed, polls: 1, lo: 3600, hi: 3600},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPoller(tc.answers...)
				p.latency = tc.latency
				ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(tc.limit, time.Hour))
				defer cancel()
				status, sawActive, failure := p.wait(ctx, t, Target{After: tc.after, At: p.start.Add(-tc.ago)})
				took := time.Since(p.start).Seconds()
				if status != tc.status || !errors.Is(failure.Err, tc.is) || !errors.Is(failure.LastFault, tc.last) {
					t.Errorf("%q, %+v, want %q, %v after %v", status, failure, tc.status, tc.is, tc.last)
				}
				if tc.after == Messaged && tc.is == nil && sawActive == tc.unseen {
					t.Errorf("the job was seen active: %t", sawActive)
				}
				if tc.polls != 0 && len(p.at) != tc.polls || took < tc.lo || took > tc.hi {
					t.Errorf("%d polls in %vs, want %d in %vs to %vs", len(p.at), took, tc.polls, tc.lo, tc.hi)
				}
			})
		})
	}
}

// A link may come some seconds after the status. A job that has completed has done so whatever is read then. (P05)
func TestAwaitLink(t *testing.T) {
	t.Parallel()
	bare := &agentapi.Job{ID: "job_1", Status: completed}
	all := func(answers ...any) []any { return answers }
	for name, tc := range map[string]struct {
		answers []any
		min     time.Duration
		limit   time.Duration // of the whole wait; 0: two hours
		latency time.Duration // of each read
		hasLink bool
		polls   int
		seconds float64
	}{
		"with a link":              {answers: all(completed), hasLink: true, polls: 1},
		"a link 3 s later":         {answers: all(bare, bare, bare, completed), hasLink: true, polls: 4, seconds: 3.2},
		"… after failures":         {answers: all(bare, fault500, fault401, completed), hasLink: true, polls: 4, seconds: 3.2},
		"no link":                  {answers: all(bare), polls: 7, seconds: 10},
		"no link, seldom read":     {answers: all(bare), min: time.Minute, polls: 5, seconds: 10},
		"only failures":            {answers: all(bare, fault401, fault404, fault500), polls: 7, seconds: 10},
		"then archived":            {answers: all(bare, agentapi.StatusArchived), polls: 7, seconds: 10},
		"then failed":              {answers: all(bare, failed), polls: 7, seconds: 10},
		"then active":              {answers: all(bare, active, noStatus), polls: 7, seconds: 10},
		"no further response":      {answers: all(bare), latency: time.Hour, polls: 2, seconds: 3615},
		"timeouts expire meantime": {answers: all(bare), limit: 2 * time.Second, polls: 3, seconds: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPoller(tc.answers...)
				p.latency = tc.latency
				ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(tc.limit, 2*time.Hour))
				defer cancel()
				waiter := Waiter{Poller: p, Schedule: Schedule{Min: cmp.Or(tc.min, usual.Min), Max: usual.Max}}
				job, _, err := waiter.Wait(ctx, Target{ProjectID: "p", JobID: "job_1"})
				if err != nil || job.Status != completed || (job.PRLink != nil) != tc.hasLink {
					t.Fatalf("%+v, %v, want a completed job with a link: %t", job, err, tc.hasLink)
				}
				if took := time.Since(p.start).Seconds(); took != tc.seconds || len(p.at) != tc.polls {
					t.Errorf("%d polls in %vs, want %d in %vs", len(p.at), took, tc.polls, tc.seconds)
				}
			})
		})
	}
}

func TestSchedule(t *testing.T) {
	t.Parallel()
	for age, mean := range map[time.Duration]time.Duration{
		0: 800 * time.Millisecond, 20 * time.Second: 2 * time.Second, 24 * time.Hour: 10 * time.Second,
	} {
		hundredths := map[time.Duration]bool{} // of the jitter
		for range 5000 {
			pause := usual.next(age)
			if off := (pause - mean).Abs(); off > mean/10 {
				t.Fatalf("the pause at age %v is %v, want %v within a tenth", age, pause, mean)
			}
			hundredths[500*(pause-mean+mean/10)/mean] = true
		}
		if len(hundredths) < 100 {
			t.Errorf("the pauses at age %v come in %d hundredths of their jitter", age, len(hundredths))
		}
	}
}
