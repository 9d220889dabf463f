// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wait

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var usual = Schedule{Min: 800 * time.Millisecond, Max: 10 * time.Second}

// poller answers polls by a function of their number (from 1) and of the time
// since it was made, and remembers when they came.
type poller struct {
	latency time.Duration
	answer  func(n int, age time.Duration) (*agentapi.Job, error)

	start time.Time
	at    []time.Duration // since start
}

func (p *poller) PollJob(ctx context.Context, _, _ string) (*agentapi.Job, error) {
	if p.start.IsZero() {
		panic("newPoller was not called")
	}
	p.at = append(p.at, time.Since(p.start))
	if p.latency > 0 {
		if err := sleep.For(ctx, p.latency); err != nil {
			return nil, fault(agentapi.Unavailable, 0, err)
		}
	}
	return p.answer(len(p.at), time.Since(p.start))
}

// newPoller must be called in the bubble whose clock it uses.
func newPoller(answer func(n int, age time.Duration) (*agentapi.Job, error)) *poller {
	return &poller{answer: answer, start: time.Now()}
}

func job(status agentapi.Status) *agentapi.Job { return &agentapi.Job{ID: "job_1", Status: status} }

func fault(class agentapi.Class, status int, cause error) *agentapi.Error {
	return &agentapi.Error{Op: agentapi.OpGet, Class: class, ProjectID: "p", JobID: "job_1", StatusCode: status, Err: cause}
}

// activeUntil is a job that works until its age and then ends.
func activeUntil(end time.Duration, status agentapi.Status) func(int, time.Duration) (*agentapi.Job, error) {
	return func(_ int, age time.Duration) (*agentapi.Job, error) {
		if age < end {
			return job(agentapi.StatusActive), nil
		}
		return job(status), nil
	}
}

// sequence answers the polls in turn, and with the last answer from then on.
func sequence(answers ...any) func(int, time.Duration) (*agentapi.Job, error) {
	return func(n int, _ time.Duration) (*agentapi.Job, error) {
		switch a := answers[min(n, len(answers))-1].(type) {
		case agentapi.Status:
			return job(a), nil
		case *agentapi.Job:
			return a, nil
		case error:
			return nil, a
		}
		panic("neither a status, nor a job, nor an error")
	}
}

var (
	fault404 = fault(agentapi.Refused, http.StatusNotFound, nil)
	fault500 = fault(agentapi.Unavailable, http.StatusInternalServerError, nil)
)

// result is how a wait ended, for tables.
type result struct {
	status agentapi.Status
	is     error
	took   time.Duration
	polls  int
}

// run waits for job_1 in a bubble of its own; check gets an empty *Error when
// the wait had none.
func run(t *testing.T, after Event, limit time.Duration, answer func(int, time.Duration) (*agentapi.Job, error), check func(result, *Error)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPoller(answer)
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		got, err := Waiter{Poller: p, Schedule: usual}.Wait(ctx, Request{ProjectID: "p", JobID: "job_1", After: after})
		r := result{is: err, took: time.Since(p.start), polls: len(p.at)}
		if got != nil {
			r.status = got.Status
		}
		var failure *Error
		if err != nil && !errors.As(err, &failure) {
			t.Fatalf("the error is a %T, want an *Error", err)
		}
		if failure != nil && (failure.JobID != "job_1" || failure.Waited != r.took) {
			t.Errorf("the error tells of job %q and %v, want job_1 and %v", failure.JobID, failure.Waited, r.took)
		}
		if failure == nil {
			failure = new(Error) // so that a check may look into it
		}
		check(r, failure)
	})
}
