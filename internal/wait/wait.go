// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package wait polls a job until it finishes.
package wait

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/escape"
	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

// linkTime is how long a job is read again that has completed without a link: a service may show
// the link of its pull request some seconds after the status.
const linkTime = 10 * time.Second

var errNoStatus = errors.New("the response has no status")

// Poller retrieves a job once; *agentapi.Client is one. Any error but ErrUnavailable ends a wait.
type Poller interface {
	PollJob(ctx context.Context, projectID, jobID string) (*agentapi.Job, error)
}

// Event is what happened to the job just before the wait.
type Event int

const (
	// Resumed: nothing; the wait polls at once.
	Resumed Event = iota
	// Created: the job is new and may not be found yet.
	Created
	// Messaged: the job accepted a message and may still show its earlier final status.
	Messaged
)

// Target says which job to wait for.
type Target struct {
	ProjectID, JobID string
	After            Event
	// At is when the message was accepted.
	At time.Time
	// Progress, if not nil, is called after each poll that returned a status.
	Progress func(job *agentapi.Job, age time.Duration)
}

// Waiter polls jobs by one schedule. It is safe for concurrent use.
type Waiter struct {
	Poller   Poller
	Schedule Schedule
}

// Wait polls until the job is terminal and returns its record, and whether a poll has shown it
// unfinished. If it stops earlier, the error is an *Error, and the record is the last one read, or
// nil.
func (w Waiter) Wait(ctx context.Context, target Target) (last *agentapi.Job, sawActive bool, err error) {
	start := time.Now()
	if target.At.After(start) {
		target.At = start // another machine's clock was ahead
	}
	p := progress{target: target, start: start}
	var pause time.Duration
	if target.After == Created { // after a message, a poll at once mostly sees the job active
		pause = w.Schedule.next(0)
	}
	for {
		var job *agentapi.Job
		err := sleep.For(ctx, pause)
		if err == nil {
			job, err = w.Poller.PollJob(ctx, target.ProjectID, target.JobID)
		}
		if err != nil && ctx.Err() != nil {
			if failure, isCall := errors.AsType[*agentapi.Error](err); isCall && failure.StatusCode != 0 {
				p.lastFault = err
			}
			return p.last, p.sawActive, p.fail(context.Cause(ctx))
		}
		switch done, err := p.classify(job, err); {
		case err != nil:
			return p.last, p.sawActive, err
		case done:
			return w.AwaitLink(ctx, target.ProjectID, p.last), p.sawActive, nil
		}
		pause = max(w.Schedule.next(time.Since(start)), p.retryAfter(ctx, w.Schedule.Max))
	}
}

// AwaitLink reads a job that has completed without a link for some seconds more, and returns its
// record, with the link if one came; any other record it returns at once. The job has completed
// whatever these reads show, so neither their failures nor the end of ctx are errors. They come at
// the shortest interval first, and then each doubles the time.
func (w Waiter) AwaitLink(ctx context.Context, projectID string, job *agentapi.Job) *agentapi.Job {
	if job == nil || job.Status != agentapi.StatusCompleted || job.PRLink != nil {
		return job
	}
	ctx, cancel := context.WithTimeout(ctx, 3*linkTime/2) // if the last one gets no response
	defer cancel()
	start, age := time.Now(), time.Duration(0)
	for ; age < linkTime; age = time.Since(start) {
		if sleep.For(ctx, min(max(age, w.Schedule.Min), linkTime/4, linkTime-age)) != nil {
			break
		}
		again, err := w.Poller.PollJob(ctx, projectID, job.ID)
		if err == nil && again.Status == agentapi.StatusCompleted && again.PRLink != nil {
			return again
		}
	}
	return job
}

// progress is what a wait has observed so far.
type progress struct {
	target    Target
	start     time.Time
	last      *agentapi.Job
	lastFault error
	sawActive bool // since the start
}

// classify records the outcome of one poll and reports whether the job has finished.
// With an error, further polls cannot help.
func (p *progress) classify(job *agentapi.Job, err error) (done bool, _ error) {
	age := time.Since(p.start)
	p.lastFault = err
	switch {
	case errors.Is(err, agentapi.ErrUnavailable):
		return false, nil
	case err != nil:
		return false, p.fail(err)
	}
	if job.Status == "" {
		p.lastFault = errNoStatus
		return false, nil
	}
	p.last = job
	if p.target.Progress != nil {
		p.target.Progress(job, age)
	}
	if !job.Status.Terminal() {
		p.sawActive = true
		return false, nil
	}
	return p.target.After != Messaged || p.sawActive || !agentapi.MayBeStale(job.Status, p.target.At), nil
}

// retryAfter is the pause that the service requested with the last fault: advice, so it is bounded,
// and leaves time to try again before the wait ends.
func (p *progress) retryAfter(ctx context.Context, most time.Duration) time.Duration {
	failure, isCall := errors.AsType[*agentapi.Error](p.lastFault)
	if !isCall {
		return 0
	}
	if deadline, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(deadline)/2)
	}
	return min(failure.RetryAfter, most)
}

func (p *progress) fail(reason error) error {
	failure := &Error{JobID: p.target.JobID, Waited: time.Since(p.start), LastFault: p.lastFault, Err: reason}
	if p.last != nil {
		failure.LastStatus = p.last.Status
	}
	return failure
}

// Error is a wait that stopped before its job finished. It wraps the cause of the
// context's end, or the *agentapi.Error that ended it.
type Error struct {
	JobID      string
	LastStatus agentapi.Status // as last read; empty if it never was
	Waited     time.Duration
	LastFault  error // what was wrong with the last poll, if anything was
	Err        error
}

// Error says how long the wait lasted and which status was read last.
func (e *Error) Error() string {
	text := fmt.Sprintf("job %s: %v after %s", e.JobID, e.Err, e.Waited.Round(time.Second))
	if e.LastStatus != "" {
		text += fmt.Sprintf(", last status %q", escape.Printable(string(e.LastStatus)))
	}
	return text
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Schedule is how often a wait polls its job: after a tenth of the time that it has
// lasted, so that the delay stays in proportion to the job, within bounds and with
// 10% jitter.
type Schedule struct {
	Min time.Duration // shortest interval
	Max time.Duration // longest interval
}

// next is the time until the poll after one made when the wait had lasted for age.
func (s Schedule) next(age time.Duration) time.Duration {
	interval := min(max(age/10, s.Min), s.Max)
	return interval - interval/10 + rand.N(interval/5+1)
}
