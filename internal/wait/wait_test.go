// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wait

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
)

// answers is a function that answers the polls of a test.
type answers = func(n int, age time.Duration) (*agentapi.Job, error)

const (
	active    = agentapi.StatusActive
	completed = agentapi.StatusCompleted
	failed    = agentapi.StatusFailed
)

// How a wait ends, by what the polls say. The matrix has each of these rows with
// the resource around it; here are the exact times and numbers of polls.
func TestWait(t *testing.T) {
	t.Parallel()
	none := &agentapi.Job{ID: "job_1"}
	old := &agentapi.Job{ID: "job_1", Status: completed, PRLink: new("https://x.invalid/old")}
	busy := fault(agentapi.Unavailable, 503, nil)
	busy.RetryAfter = 2 * time.Minute
	found := func(from, until time.Duration) answers {
		return func(_ int, age time.Duration) (*agentapi.Job, error) {
			if age < from || age >= until {
				return nil, fault404
			}
			return job(active), nil
		}
	}
	stale := func(_ int, age time.Duration) (*agentapi.Job, error) {
		switch {
		case age < 7*time.Second:
			return old, nil
		case age < time.Minute:
			return job(active), nil
		}
		return job(failed), nil
	}
	troubles := []error{fault500, fault(agentapi.Unavailable, 502, agentapi.ErrWebPage), fault(agentapi.Unavailable, 200, errors.New("truncated")), fault(agentapi.Unavailable, 0, errors.New("reset"))}
	tenMinutes := func(n int, age time.Duration) (*agentapi.Job, error) {
		if age < 10*time.Minute {
			return nil, troubles[n%len(troubles)]
		}
		return job(failed), nil
	}
	const settled = Settle + 1200*time.Millisecond
	for name, tc := range map[string]struct {
		after  Event
		limit  time.Duration // 0: an hour
		answer answers
		status agentapi.Status // last seen
		is     error           // nil: the job has ended
		polls  int             // 0: any number
		lo, hi time.Duration
	}{
		"completed when resumed": {Resumed, 0, sequence(completed), completed, nil, 1, 0, 0},
		"archived when created":  {Created, 0, sequence(agentapi.StatusArchived), agentapi.StatusArchived, nil, 1, time.Second, 2 * time.Second},
		"failed when created":    {Created, 0, sequence(failed), failed, nil, 1, time.Second, 2 * time.Second},
		"P01 unknown status":     {Created, 0, sequence(active, agentapi.Status("paused"), agentapi.Status("Completed"), completed), completed, nil, 4, 0, 10 * time.Second},
		"P02 no status":          {Created, 0, sequence(none), "", ErrNoStatus, 3, 0, 10 * time.Second},
		"P02 now and then":       {Created, 0, sequence(active, none, none, active, none, none, none), active, ErrNoStatus, 7, 0, 10 * time.Second},
		"P02 twice":              {Created, 0, sequence(none, none, completed), completed, nil, 3, 0, 10 * time.Second},
		"P06 ten minutes":        {Created, 0, tenMinutes, failed, nil, 0, 10 * time.Minute, 10*time.Minute + 11*time.Second},
		"P06 Retry-After":        {Resumed, 0, sequence(busy, completed), completed, nil, 2, 2 * time.Minute, 2 * time.Minute},
		"P06 Retry-After, once":  {Resumed, 0, sequence(busy, active, completed), completed, nil, 3, 2 * time.Minute, 2*time.Minute + 15*time.Second},
		"P08 stored late":        {Created, time.Minute, found(50*time.Second, time.Hour), active, ErrTimeout, 0, time.Minute, time.Minute},
		"P08 stored at once":     {Created, 0, sequence(fault404, completed), completed, nil, 2, 0, 5 * time.Second},
		"P08 never found":        {Created, 0, found(24*time.Hour, 0), "", agentapi.ErrNotFound, 0, NewJobGrace, NewJobGrace + 8*time.Second},
		"P09 gone later":         {Created, 0, found(0, 5*time.Minute), active, agentapi.ErrNotFound, 0, 5 * time.Minute, 5*time.Minute + 11*time.Second},
		"P09 when resumed":       {Resumed, 0, found(time.Second, time.Hour), "", agentapi.ErrNotFound, 1, 0, 0},
		"P09 after a message":    {Messaged, 0, found(50*time.Second, time.Hour), "", agentapi.ErrNotFound, 1, 0, 2 * time.Second},
		"M01 the old record":     {Messaged, 0, stale, failed, nil, 0, time.Minute, 67 * time.Second},
		"M01 active at once":     {Messaged, 0, sequence(active, completed), completed, nil, 2, time.Second, 4 * time.Second},
		"M01 old, then active":   {Messaged, 0, sequence(old, old, active, failed), failed, nil, 4, 3 * time.Second, 6 * time.Second},
		"M01 an unknown status":  {Messaged, 0, sequence(agentapi.Status("queued"), completed), completed, nil, 2, time.Second, 4 * time.Second},
		"M01 cut short":          {Messaged, 8 * time.Second, sequence(completed), completed, ErrTimeout, 0, 8 * time.Second, 8 * time.Second},
		"M02 ended unseen":       {Messaged, 0, sequence(old), completed, nil, 0, Settle, settled},
		"M02 no status":          {Messaged, 0, sequence(none, completed), completed, nil, 0, Settle, settled},
		"M02 a fault":            {Messaged, 0, sequence(fault500, completed), completed, nil, 0, Settle, settled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.limit == 0 {
				tc.limit = time.Hour
			}
			run(t, tc.after, tc.limit, tc.answer, func(r result, _ *Error) {
				if r.status != tc.status || !errors.Is(r.is, tc.is) || tc.polls != 0 && r.polls != tc.polls || r.took < tc.lo || r.took > tc.hi {
					t.Errorf("%+v, want %q and %v by %d polls after %v to %v", r, tc.status, tc.is, tc.polls, tc.lo, tc.hi)
				}
			})
		})
	}
}

// P07, P09 and P11: what cannot pass ends every wait at once.
func TestWait_finalFaults(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ fault, is error }{
		"401":            {fault(agentapi.Refused, http.StatusUnauthorized, nil), agentapi.ErrUnauthorized},
		"404 HTML":       {fault(agentapi.Unusable, http.StatusNotFound, agentapi.ErrWebPage), agentapi.ErrWebPage},
		"wrong job":      {fault(agentapi.Unusable, http.StatusOK, agentapi.ErrWrongJob), agentapi.ErrWrongJob},
		"certificate":    {fault(agentapi.Refused, 0, agentapi.ErrCertificate), agentapi.ErrCertificate},
		"pause too long": {fault(agentapi.Unavailable, 0, agentapi.ErrPauseTooLong), agentapi.ErrPauseTooLong},
		"a bad id":       {fault(agentapi.NotSent, 0, errors.New("bad id")), agentapi.ErrNotSent},
		"another error":  {http.ErrBodyNotAllowed, http.ErrBodyNotAllowed},
	} {
		for _, after := range []Event{Resumed, Created, Messaged} {
			t.Run(fmt.Sprint(name, after), func(t *testing.T) {
				t.Parallel()
				run(t, after, time.Hour, sequence(active, tc.fault), func(r result, failure *Error) {
					if !errors.Is(failure, tc.is) || !errors.Is(failure.LastFault, tc.is) || r.polls != 2 || r.took > 5*time.Second || failure.LastStatus != active {
						t.Errorf("%+v, %+v, want %v at the second poll", r, failure, tc.is)
					}
				})
			})
		}
	}
}

// What the error of a timeout knows of the polls before it.
func TestWait_timeout(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer answers
		status agentapi.Status
		fault  error
	}{
		"P01 the status": {sequence(agentapi.Status("que\x1bued")), "que\x1bued", nil},
		"the last fault": {sequence(active, fault500), active, fault500},
		"no past fault":  {sequence(fault500, active), active, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, Created, time.Minute, tc.answer, func(r result, failure *Error) {
				if !errors.Is(failure, ErrTimeout) || errors.Is(failure, agentapi.ErrUnavailable) || !errors.Is(failure.LastFault, tc.fault) || failure.LastStatus != tc.status || r.took != time.Minute {
					t.Errorf("%+v, %+v, want a timeout with %q and %v", r, failure, tc.status, tc.fault)
				}
			})
		})
	}
}

func TestError_text(t *testing.T) {
	t.Parallel()
	for want, failure := range map[string]*Error{
		"job job_1: the job did not end in time after 1m1s": {JobID: "job_1", Waited: 61499 * time.Millisecond, Err: ErrTimeout},
		`job job_1: the wait was interrupted after 0s, last seen as "` + strings.Repeat("x", 511) + `…"`: {
			JobID: "job_1", LastStatus: agentapi.Status(strings.Repeat("x", 10000)), Err: ErrInterrupted,
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
	for name, tc := range map[string]struct{ since, lo, hi time.Duration }{
		"in the settle time": {7 * time.Second, 3 * time.Second, 4200 * time.Millisecond},
		"after it":           {Settle, 0, 1760 * time.Millisecond},
		"long ago":           {24 * time.Hour, 0, 1760 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPoller(sequence(completed))
				_, err := Waiter{Poller: p, Schedule: usual}.Wait(t.Context(), Request{ProjectID: "p", JobID: "job_1", After: Messaged, At: p.start.Add(-tc.since)})
				if took := time.Since(p.start); err != nil || took < tc.lo || took > tc.hi {
					t.Errorf("%v after %v, want the end after %v to %v", err, took, tc.lo, tc.hi)
				}
			})
		})
	}
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
		p := newPoller(sequence(active, fault500, &agentapi.Job{ID: "job_1"}, agentapi.Status("paused"), completed))
		var statuses []agentapi.Status
		var ages []time.Duration
		_, err := Waiter{Poller: p, Schedule: usual}.Wait(t.Context(), Request{ProjectID: "p", JobID: "job_1", After: Created, Progress: func(j *agentapi.Job, age time.Duration) {
			statuses = append(statuses, j.Status)
			ages = append(ages, age)
		}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]agentapi.Status{active, "paused", completed}, statuses); diff != "" {
			t.Errorf("statuses (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]time.Duration{p.at[0], p.at[3], p.at[4]}, ages); diff != "" {
			t.Errorf("at the ages (-want +got):\n%s", diff)
		}
	})
}

// A wait that ends at any moment, in a poll, between two or before the first,
// returns in that moment.
func TestWait_interrupted(t *testing.T) {
	t.Parallel()
	for i := range 300 {
		at := rand.N(40 * time.Second)
		if i < 6 {
			at = 0
		}
		want := map[int]error{0: ErrInterrupted, 1: ErrTimeout}[i%2]
		synctest.Test(t, func(t *testing.T) {
			p := newPoller(func(int, time.Duration) (*agentapi.Job, error) { return job(active), nil })
			p.latency = time.Second
			ctx, cancel := context.WithCancelCause(t.Context())
			if errors.Is(want, ErrTimeout) {
				var stop context.CancelFunc
				ctx, stop = context.WithTimeout(ctx, at)
				defer stop()
			} else if time.AfterFunc(at, func() { cancel(errors.New("stop")) }); at == 0 {
				cancel(errors.New("stop"))
			}
			defer cancel(nil)
			_, err := Waiter{Poller: p, Schedule: usual}.Wait(ctx, Request{ProjectID: "p", JobID: "job_1", After: Event(rand.N(3))})
			if took := time.Since(p.start); !errors.Is(err, want) || took != at {
				t.Errorf("at %v: %v after %v, want %v", at, err, took, want)
			}
		})
	}
}

// The end of a job counts even if the wait is interrupted in that moment.
func TestWait_interruptedAtTheEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	p := newPoller(func(int, time.Duration) (*agentapi.Job, error) { cancel(); return job(completed), nil })
	got, err := Waiter{Poller: p, Schedule: usual}.Wait(ctx, Request{ProjectID: "p", JobID: "job_1"})
	if err != nil || got.Status != completed {
		t.Errorf("%v, %v, want completed", got, err)
	}
}
