// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"cmp"
	"context"
	"errors"
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
	// againTime is how long a single read tries when a failure of the same kind has just persisted
	// for another one: a refresh of 1,000 jobs would last for hours.
	againTime = 10 * time.Second
	// fewestRefusals is how many refusals count, however long they take.
	fewestRefusals = 3
	// limitedTime is how long a single read waits for the service's rate limit.
	limitedTime = 10 * time.Minute
)

var (
	errNoResponse = errors.New("no usable response within a minute")
	errStillDown  = errors.New("no usable response within ten seconds, and none within a minute to an earlier request")
	errLimited    = errors.New("the service's rate limit allowed no read within ten minutes")
)

// ReadJob reads a job once: it returns its record, or a failure that has persisted. The error is an
// *Error.
func (c *Client) ReadJob(ctx context.Context, projectID, jobID string) (*Job, error) {
	return c.read(ctx, projectID, jobID, reader{refused: refusedTime, shares: true})
}

// FindJob reads a job that was just created, or whose outcome depends on it. A 404, for example,
// counts only once it has lasted for a minute.
func (c *Client) FindJob(ctx context.Context, projectID, jobID string) (*Job, error) {
	return c.read(ctx, projectID, jobID, reader{refused: refusedLong})
}

// PollJob reads a job for a wait, within the shared budget of polls. It tries again after a
// refusal, until that has persisted, and leaves it to the caller after ErrUnavailable. After a 429
// it waits for the shared pause.
func (c *Client) PollJob(ctx context.Context, projectID, jobID string) (*Job, error) {
	return c.read(ctx, projectID, jobID, reader{isPoll: true, refused: refusedLong})
}

// reader is a way to read.
type reader struct {
	isPoll  bool
	refused time.Duration // how long refusals must persist
	shares  bool          // what has persisted for one such read counts sooner for the next
}

// read is the one place that decides whether a failed GET counts.
func (c *Client) read(ctx context.Context, projectID, jobID string, how reader) (*Job, error) {
	r := request{op: OpGet, projectID: projectID, jobID: jobID}
	if err := r.checkIDs(); err != nil {
		return nil, err
	}
	if !how.isPoll {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limitedTime, errLimited)
		defer cancel()
	}
	t := c.newTrial(how)
	var last *Error
	failed := 0
	for {
		if err := t.turn(ctx); err != nil {
			return nil, cmp.Or(last, r.fail(ErrUnavailable, err))
		}
		job, failure := t.get(ctx, r)
		switch {
		case failure == nil:
			return job, nil
		case failure.StatusCode == http.StatusTooManyRequests: // the service is there
			t, last, failed, r.status = c.newTrial(how), nil, 0, failure.StatusCode
			continue
		case t.note(failure):
			return nil, failure
		}
		last = failure.unproven()
		pause := t.pause(failed, failure)
		failed++
		if sleep.For(ctx, pause) != nil || t.ends() {
			if !errors.Is(last, t.cause) { // the text of t.cause says how long it lasted
				last.Lasted = time.Since(t.began)
			}
			return nil, last
		}
	}
}

// down is a kind of failed reads: no usable response came. The others are the statuses of refusals.
const down = -1

// trial is what reading a job has come to so far.
type trial struct {
	reader

	client       *Client
	began        time.Time     // pauses for the rate limit do not count
	limit        time.Duration // of a single read
	cause        error         // the error once limit is over
	outages      int           // in a row
	refusals     int           // in a row
	firstRefusal time.Time
}

// end is when a single read is over. Refusals that have begun may go on until they count.
func (t *trial) end() time.Time {
	if t.refusals > 0 {
		return t.firstRefusal.Add(t.refused + againTime)
	}
	return t.began.Add(t.limit)
}

func (c *Client) newTrial(how reader) *trial {
	t := &trial{reader: how, client: c, began: time.Now(), limit: downTime, cause: errNoResponse}
	if t.isKnown(down) {
		t.limit, t.cause = againTime, errStillDown
	}
	return t
}

// turn waits until the rate limit and, for a poll, the budget allow a GET.
func (t *trial) turn(ctx context.Context) error {
	waiting, gets := time.Now(), t.client.gets
	defer func() { t.began = t.began.Add(time.Since(waiting)) }()
	if err := gets.wait(ctx); err != nil || !t.isPoll {
		return err
	}
	// If the pause after a 429 still lasts, gets.wait has let this through as the last GET before the
	// deadline: it must not wait for the pause again.
	isLate := gets.pause() > 0
	if err := t.client.polls.Wait(ctx); err != nil {
		<-ctx.Done() // if it has not ended yet, the turn would come after its deadline
		return context.Cause(ctx)
	}
	if isLate {
		return nil
	}
	return gets.wait(ctx) // in the meantime, another call may have begun a pause
}

// get makes one GET.
func (t *trial) get(ctx context.Context, r request) (*Job, *Error) {
	c := t.client
	if !t.isPoll {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, t.end(), t.cause)
		defer cancel()
	}
	sent := time.Now()
	got, err := c.do(ctx, c.getTransport, r)
	c.gets.responded(sent, got)
	job, failure := c.classifyGet(r, got, err)
	if failure != nil && got.isSuccess() { // the status alone does not say what is wrong
		err = failure
	}
	c.logExchange(ctx, r, got, job, err, c.gets.pause())
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

// note notes a failure. It reports whether that counts: it has persisted, or is for the caller to
// try again. What has persisted for another read counts sooner.
func (t *trial) note(failure *Error) bool {
	if !errors.Is(failure, ErrRefused) {
		t.refusals = 0
		t.outages++
		return t.isPoll || t.outages > 1 && t.isKnown(down)
	}
	t.outages = 0
	t.client.persisted.Delete(down)
	if t.refusals++; t.refusals == 1 {
		t.firstRefusal = time.Now()
	}
	failure.Lasted = time.Since(t.firstRefusal)
	if t.refusals < fewestRefusals {
		return false
	}
	if failure.Lasted < t.refused {
		return t.isKnown(failure.StatusCode) || t.isSetup(failure)
	}
	if t.shares {
		t.client.persisted.Store(failure.StatusCode, true)
	}
	return true
}

// isSetup reports whether a single read is refused because of the key or the connection before
// either has worked: they were never good, and a person waits to hear it.
func (t *trial) isSetup(failure *Error) bool {
	isKey := errors.Is(failure, ErrKeyRejected) && !errors.Is(failure, ErrWebPage) // a web page is a firewall's
	return !t.isPoll && !t.client.worked.Load() && (isKey || failure.StatusCode == 0)
}

// pause is how long to wait until the job is read again.
func (t *trial) pause(failed int, failure *Error) time.Duration {
	pause := max(backoff(failed), min(failure.RetryAfter, retryCap))
	if t.isPoll {
		return pause
	}
	return min(pause, time.Until(t.end()))
}

// ends reports whether the time of a single read is over, and if so, notes that for others.
func (t *trial) ends() bool {
	isOver := !t.isPoll && !time.Now().Before(t.end())
	if isOver && t.shares && t.refusals == 0 {
		t.client.persisted.Store(down, true)
	}
	return isOver
}

// isKnown reports whether such a failure has persisted for another read. A GET that succeeds since
// then ends that, but for a job that is gone.
func (t *trial) isKnown(kind int) bool {
	_, known := t.client.persisted.Load(kind)
	return known && t.shares
}
