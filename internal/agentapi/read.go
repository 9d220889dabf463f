// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

// A job is read many times, through proxies, firewalls and rollouts, and each of them may respond
// once what the service does not mean. So no response ends reading: a failure counts once nothing
// else has come for some time.
const (
	// downTime is how long a single read tries while the service is unavailable (5xx, 408, 425, no
	// usable response). A wait tries until it ends.
	downTime = time.Minute
	// refusedTime is how long a single read is refused (any other response but a 429) until that
	// counts: its caller can read again.
	refusedTime = 10 * time.Second
	// refusedLong is the same where a job's outcome depends on it. It is also how long a new job
	// may not be found.
	refusedLong = time.Minute
	// againTime is how long a single read tries when the service has just been unavailable to
	// another one: otherwise a refresh of 1,000 jobs would last for hours.
	againTime = 10 * time.Second
	// fewestRefusals is how many refusals of a GET it takes at least, however long they last; of a POST, it
	// is how many by TLS or a proxy end it.
	fewestRefusals = 3
	// limitedTime is how long a single read waits for the service's rate limit.
	limitedTime = 10 * time.Minute
)

// forever is how long a poll may last: the context of its wait ends it.
const forever time.Duration = math.MaxInt64

var errNoResponse = errors.New("no usable response")

// patience is how long a way to read tries.
type patience struct {
	isPoll     bool          // a wait tries again while the service is unavailable
	refusedFor time.Duration // how long refusals must persist
	isShared   bool          // what has persisted for one such read counts for the next without persisting again
}

// ReadJob reads a job once: it returns its record, or a failure that has persisted. The error is an
// *Error.
func (c *Client) ReadJob(ctx context.Context, projectID, jobID string) (*Job, error) {
	return c.read(ctx, projectID, jobID, patience{refusedFor: refusedTime, isShared: true})
}

// ReadJobPatiently reads a job that was just created, or on which depends what is sent. A 404, for example,
// counts only once it has lasted for a minute.
func (c *Client) ReadJobPatiently(ctx context.Context, projectID, jobID string) (*Job, error) {
	return c.read(ctx, projectID, jobID, patience{refusedFor: refusedLong})
}

// PollJob reads a job for a wait, within the shared budget of polls. It tries again after a
// refusal, until that has persisted, and leaves it to the caller after ErrUnavailable. After a 429
// it waits for the shared pause.
func (c *Client) PollJob(ctx context.Context, projectID, jobID string) (*Job, error) {
	return c.read(ctx, projectID, jobID, patience{isPoll: true, refusedFor: refusedLong})
}

// read is the one place that decides whether a failed GET counts.
func (c *Client) read(ctx context.Context, projectID, jobID string, how patience) (*Job, error) {
	call := apiCall{op: OpGet, projectID: projectID, jobID: jobID}
	if err := call.checkIDs(); err != nil {
		return nil, err
	}
	if !how.isPoll {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limitedTime)
		defer cancel()
	}
	began, soFar := time.Now(), failures{patience: how, client: c}
	var last *Error // a failure that does not count
	for tries := 0; ; tries++ {
		waiting := time.Now()
		if err := c.readTurn(ctx, how.isPoll); err != nil {
			return nil, cmp.Or(last, call.fail(ErrUnavailable, err))
		}
		began = began.Add(time.Since(waiting)) // pauses for the rate limit do not count
		deadline := began.Add(soFar.limit())
		job, failure := c.get(ctx, call, deadline)
		switch {
		case failure == nil:
			return job, nil
		case failure.StatusCode == http.StatusTooManyRequests: // the service is there
			last, call.status, began = nil, failure.StatusCode, time.Now()
			soFar.refusals, soFar.outages = 0, 0
			continue
		case soFar.count(failure):
			return nil, failure
		}
		last, failure.Class = failure, ErrUnavailable // nothing has shown that it persists
		pause := max(backoff(tries), min(failure.RetryAfter, retryCap))
		err := sleep.For(ctx, min(pause, time.Until(deadline)))
		if isOver := !time.Now().Before(deadline); err != nil || isOver {
			if isOver && how.isShared && soFar.refusals == 0 {
				c.persisted.Store(down, true)
			}
			last.Lasted = time.Since(began)
			return nil, last
		}
	}
}

// readTurn waits until the rate limit and, for a poll, the budget allow a GET.
func (c *Client) readTurn(ctx context.Context, isPoll bool) error {
	for {
		err := c.gets.wait(ctx)
		isLast := errors.Is(err, ErrPauseTooLong)
		if deadline, _ := ctx.Deadline(); isLast && time.Until(deadline) > time.Second {
			// Further GETs, the last one shortly before the deadline, may still find a job that has finished.
			err = sleep.For(ctx, time.Until(deadline)*9/10)
		}
		if err != nil || !isPoll {
			return err
		}
		if c.polls.Wait(ctx) != nil {
			<-ctx.Done() // if it has not ended yet, the turn would come after its deadline
			return context.Cause(ctx)
		}
		if isLast || c.gets.pause() <= 0 {
			return nil
		} // else another call has begun a pause meanwhile
	}
}

// get makes one GET.
func (c *Client) get(ctx context.Context, call apiCall, deadline time.Time) (*Job, *Error) {
	ctx, cancel := context.WithDeadlineCause(ctx, deadline, errNoResponse)
	defer cancel()
	got, err := c.exchange(ctx, c.getTransport, call)
	c.gets.responded(got)
	job, failure := c.classifyGet(call, got, err)
	c.logExchange(ctx, call, got, job, failure, c.gets.pause())
	if failure == nil {
		c.worked.Store(true)
		c.persisted.Range(func(kind, _ any) bool {
			if kind != http.StatusNotFound && kind != http.StatusGone { // another job says nothing about those
				c.persisted.Delete(kind)
			}
			return true
		})
	}
	return job, failure
}

// down is a kind of failed reads: no usable response came. The others are the statuses of refusals.
const down = -1

// failures are those of one read so far.
type failures struct {
	patience

	client            *Client
	outages, refusals int // in a row
	firstRefusal      time.Time
}

// limit is how long the service may be unavailable. It leaves time for refusals to count.
func (f *failures) limit() time.Duration {
	switch {
	case f.isPoll:
		return forever
	case f.isKnown(down):
		return againTime
	}
	return max(downTime, f.refusedFor+againTime)
}

// count reports whether a failure counts: it has persisted, or is for the caller to try again.
func (f *failures) count(failure *Error) bool {
	if !errors.Is(failure, ErrRefused) {
		f.refusals = 0
		f.outages++
		return f.isPoll || f.outages > 1 && f.isKnown(down)
	}
	f.outages = 0
	f.client.persisted.Delete(down) // it is up again
	if f.refusals++; f.refusals == 1 {
		f.firstRefusal = time.Now()
	}
	failure.Lasted = time.Since(f.firstRefusal)
	switch {
	case f.refusals < fewestRefusals:
		return false
	case failure.Lasted < f.refusedFor:
		return f.isKnown(failure.StatusCode) || f.isSetup(failure)
	case f.isShared:
		f.client.persisted.Store(failure.StatusCode, true)
	}
	return true
}

// isSetup reports whether a single read is refused because of the key or the connection before
// either has worked: they were never good, and a person waits to hear it.
func (f *failures) isSetup(failure *Error) bool {
	isKey := failure.IsKeyRejected() && !errors.Is(failure, ErrWebPage) // a web page is a firewall's
	return !f.isPoll && !f.client.worked.Load() && (isKey || failure.StatusCode == 0)
}

// isKnown reports whether such a failure has just persisted for another read. A GET that succeeds
// since then ends that, but for a job that is gone.
func (f *failures) isKnown(kind int) bool {
	_, known := f.client.persisted.Load(kind)
	return known && f.isShared
}
