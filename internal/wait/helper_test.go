// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wait

import (
	"context"
	"errors"
	"strings"
	"testing"
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

// wait waits for job_1, and checks what every *Error says. It returns an empty
// one when there is none.
func (p *poller) wait(ctx context.Context, t *testing.T, target Target) (_ agentapi.Status, sawActive bool, _ *Error) {
	t.Helper()
	target.ProjectID, target.JobID = "p", "job_1"
	shown := noStatus
	target.Progress = func(job *agentapi.Job, age time.Duration) {
		if shown = job.Status; shown == noStatus || age != time.Since(p.start) {
			t.Errorf("progress: %q at %v", shown, age)
		}
	}
	last, sawActive, err := Waiter{Poller: p, Schedule: usual}.Wait(ctx, target)
	status := noStatus
	if last != nil {
		status = last.Status
	}
	if shown != status {
		t.Errorf("the last progress is %q, want %q", shown, status)
	}
	if err == nil {
		return status, sawActive, new(Error)
	}
	failure, ok := errors.AsType[*Error](err)
	waited := time.Since(p.start)
	if !ok || !errors.Is(err, failure.Err) || strings.Contains(err.Error(), "\x1b") || failure.JobID != "job_1" || failure.Waited != waited || failure.LastStatus != status {
		t.Fatalf("the error is %+v, want an *Error of job_1 after %v with the status %q", err, waited, status)
	}
	return status, sawActive, failure
}
