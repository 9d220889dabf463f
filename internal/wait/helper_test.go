// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wait

import (
	"context"
	"errors"
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
)

var (
	usual    = Schedule{Min: 800 * time.Millisecond, Max: 10 * time.Second}
	noStatus = &agentapi.Job{ID: "job_1"}
	fault401 = fault(agentapi.ErrRefused, 401, nil)
	fault404 = fault(agentapi.ErrRefused, 404, nil)
	fault500 = fault(agentapi.ErrUnavailable, 500, nil)

	pauseTooLong = fault(agentapi.ErrUnavailable, 0, agentapi.ErrPauseTooLong)
)

func job(status agentapi.Status) *agentapi.Job { return &agentapi.Job{ID: "job_1", Status: status} }

func fault(class error, status int, cause error) *agentapi.Error {
	return &agentapi.Error{Op: agentapi.OpGet, Class: class, StatusCode: status, Err: cause}
}

// answers gives the answer to poll number n (from 1), made at that age of the
// poller: a status, a job or an error.
type answers = func(n int, age time.Duration) any

// sequence answers the polls in turn, and with the last answer from then on.
func sequence(all ...any) answers {
	return func(n int, _ time.Duration) any { return all[min(n, len(all))-1] }
}

// change gives one answer until that age, and another from then on.
func change(before any, age time.Duration, after any) answers {
	return func(_ int, now time.Duration) any {
		if now < age {
			return before
		}
		return after
	}
}

// poller is the service, and remembers when the polls came.
type poller struct {
	answers answers
	latency time.Duration
	start   time.Time
	at      []time.Duration // since start
}

// newPoller must be called in the bubble whose clock it uses.
func newPoller(a answers) *poller { return &poller{answers: a, start: time.Now()} }

func (p *poller) PollJob(ctx context.Context, _, _ string) (*agentapi.Job, error) {
	p.at = append(p.at, time.Since(p.start))
	if p.latency > 0 {
		if err := sleep.For(ctx, p.latency); err != nil {
			return nil, fault(agentapi.ErrUnavailable, 0, err)
		}
	}
	switch a := p.answers(len(p.at), time.Since(p.start)).(type) {
	case agentapi.Status:
		return job(a), nil
	case *agentapi.Job:
		return a, nil
	case error:
		return nil, a
	}
	panic("neither a status, nor a job, nor an error")
}

// wait waits for job_1, and checks what every *Error says. It returns an empty
// one when there is none.
func (p *poller) wait(ctx context.Context, t *testing.T, target Target) (agentapi.Status, *Error) {
	t.Helper()
	target.ProjectID, target.JobID = "p", "job_1"
	last, err := Waiter{Poller: p, Schedule: usual}.Wait(ctx, target)
	status := agentapi.Status("")
	if last != nil {
		status = last.Status
	}
	if err == nil {
		return status, new(Error)
	}
	failure, ok := errors.AsType[*Error](err)
	if !ok || failure.JobID != "job_1" || failure.Waited != time.Since(p.start) || failure.LastStatus != status {
		t.Fatalf("the error is %+v, want an *Error of job_1 after %v with the status %q", err, time.Since(p.start), status)
	}
	return status, failure
}

// run waits in a bubble of its own.
func run(t *testing.T, after Event, limit time.Duration, a answers, check func(*poller, agentapi.Status, *Error)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPoller(a)
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		status, failure := p.wait(ctx, t, Target{After: after, At: p.start})
		check(p, status, failure)
	})
}
