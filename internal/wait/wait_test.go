// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wait

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	active    = agentapi.StatusActive
	completed = agentapi.StatusCompleted
	failed    = agentapi.StatusFailed
	noStatus  = agentapi.Status("")
)

var (
	usual    = Schedule{Min: 800 * time.Millisecond, Max: 10 * time.Second}
	fault401 = fault(agentapi.ErrRefused, 401, nil)
	fault404 = fault(agentapi.ErrRefused, 404, nil)
	fault500 = fault(agentapi.ErrUnavailable, 500, nil)
)

func fault(class error, status int, cause error) *agentapi.Error {
	return &agentapi.Error{Op: agentapi.OpGet, Class: class, StatusCode: status, Err: cause}
}

// poller is the service, and remembers when the polls came. A test creates it in the bubble
// whose clock it uses.
type poller struct {
	answers []any // for each poll a status or a function that returns it, a job or an error; the last one stays
	latency time.Duration
	start   time.Time
	at      []time.Duration // since start
}

func newPoller(answers ...any) *poller { return &poller{answers: answers, start: time.Now()} }

func (p *poller) PollJob(ctx context.Context, _, _ string) (*agentapi.Job, error) {
	p.at = append(p.at, time.Since(p.start))
	if err := sleep.For(ctx, p.latency); err != nil {
		if failure, isError := p.answers[min(len(p.at), len(p.answers))-1].(error); isError {
			return nil, failure // as the client, which has tried in vain
		}
		return nil, fault(agentapi.ErrUnavailable, 0, err)
	}
	switch a := p.answers[min(len(p.at), len(p.answers))-1].(type) {
	case agentapi.Status:
		return withLink(a), nil
	case func() agentapi.Status:
		return withLink(a()), nil
	case *agentapi.Job:
		return a, nil
	case error:
		return nil, a
	}
	panic("not an answer")
}

// withLink is a job with a link, if it has completed.
func withLink(status agentapi.Status) *agentapi.Job {
	job := &agentapi.Job{ID: "job_1", Status: status}
	if status == completed {
		job.PRLink = new("https://x.invalid/1")
	}
	return job
}

// How a wait ends, by what the polls say: at once by what has persisted, at its timeout by anything else. TestJob_steps
// has some of them with the resource around them.
func TestWait(t *testing.T) {
	t.Parallel()
	old := &agentapi.Job{ID: "job_1", Status: completed, PRLink: new("https://x.invalid/old")}
	linked := &agentapi.Job{ID: "job_1", Status: active, PRLink: old.PRLink}
	bare := &agentapi.Job{ID: "job_1", Status: completed}
	archived := &agentapi.Job{ID: "job_1", Status: agentapi.StatusArchived, PRLink: old.PRLink}
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
		noLink  bool            // it has completed, and no link came
		min     time.Duration   // of the schedule; 0: the usual one
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
		"M02 old, then gone":    {after: Messaged, answers: all(bare, fault404), status: completed, noLink: true, is: agentapi.ErrNotFound, last: fault404, polls: 2, hi: 2},
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
		// A link may come some seconds after the status. A job that has completed has done so whatever is read then. (P05)
		"a link 3 s later":         {answers: all(bare, bare, bare, completed), status: completed, polls: 4, lo: 3.2, hi: 3.2},
		"… after failures":         {answers: all(bare, fault500, fault401, completed), status: completed, polls: 4, lo: 3.2, hi: 3.2},
		"no link":                  {answers: all(bare), status: completed, noLink: true, polls: 7, lo: 10, hi: 10},
		"no link, seldom read":     {answers: all(bare), min: time.Minute, status: completed, noLink: true, polls: 5, lo: 10, hi: 10},
		"only failures":            {answers: all(bare, fault401, fault404, fault500), status: completed, noLink: true, polls: 7, lo: 10, hi: 10},
		"then archived":            {answers: all(bare, archived), status: completed, noLink: true, polls: 7, lo: 10, hi: 10},
		"then failed":              {answers: all(bare, failed), status: completed, noLink: true, polls: 7, lo: 10, hi: 10},
		"then active":              {answers: all(bare, active, noStatus), status: completed, noLink: true, polls: 7, lo: 10, hi: 10},
		"no further response":      {answers: all(bare), limit: 2 * time.Hour, latency: time.Hour, status: completed, noLink: true, polls: 2, lo: 3615, hi: 3615},
		"timeouts expire meantime": {answers: all(bare), limit: 2 * time.Second, status: completed, noLink: true, polls: 3, lo: 2, hi: 2},
		"at the job's end":         {answers: all(interrupting), limit: timeout, status: completed, polls: 1, lo: 3600, hi: 3600},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPoller(tc.answers...)
				p.latency = tc.latency
				ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(tc.limit, time.Hour))
				defer cancel()
				shown := noStatus
				last, sawActive, err := Waiter{Poller: p, Schedule: Schedule{Min: cmp.Or(tc.min, usual.Min), Max: usual.Max}}.Wait(ctx, Target{
					ProjectID: "p", JobID: "job_1", After: tc.after, At: p.start.Add(-tc.ago),
					Progress: func(job *agentapi.Job, age time.Duration) {
						if shown = job.Status; age != time.Since(p.start) {
							t.Errorf("progress: %q at %v", shown, age)
						}
					},
				})
				took := time.Since(p.start).Seconds()
				if (last == nil) != (tc.status == noStatus) || last != nil && last.Status != tc.status || shown != tc.status || !errors.Is(err, tc.is) {
					t.Errorf("%+v, %v, last progress %q; want %q, %v", last, err, shown, tc.status, tc.is)
				}
				if isBare := last != nil && last.Status == completed && last.PRLink == nil; isBare != tc.noLink {
					t.Errorf("%+v, without a link: %t", last, tc.noLink)
				}
				if failure, _ := errors.AsType[*Error](err); tc.is != nil {
					want := Error{JobID: "job_1", LastStatus: tc.status, Waited: time.Since(p.start), LastFault: failure.LastFault, Err: failure.Err}
					if *failure != want || !errors.Is(failure.LastFault, tc.last) || strings.Contains(err.Error(), "\x1b") {
						t.Errorf("%+v, want %+v after %v", failure, want, tc.last)
					}
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

func TestSchedule(t *testing.T) {
	t.Parallel()
	for age, mean := range map[time.Duration]time.Duration{
		0: 800 * time.Millisecond, 20 * time.Second: 2 * time.Second, 24 * time.Hour: 10 * time.Second,
	} {
		var offs []time.Duration // the jitter
		for range 500 {
			offs = append(offs, usual.next(age)-mean)
		}
		if low, high := slices.Min(offs), slices.Max(offs); low < -mean/10 || low > -mean/12 || high < mean/12 || high > mean/10 {
			t.Errorf("at age %v: from %v to %v beside %v, want a tenth", age, low, high, mean)
		}
	}
}
