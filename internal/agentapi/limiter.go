// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

// maxConcurrent is how many POSTs to a project may be in flight at once. Up to that many
// responses are 429 when a limit is hit, and again after a pause that was too short.
const maxConcurrent = 4

const (
	// maxRecorded is how many POSTs to a project may be recorded and not finished: accesses to
	// the journal overlap, and a run that is killed leaves few records of POSTs that were never sent.
	maxRecorded = 16
	// maxTurn is how long a recorded POST may wait for a slot.
	maxTurn = 10 * time.Second
)

// posts limits the POSTs to a project.
type posts struct {
	*limiter

	recorded *semaphore.Weighted
}

// turn records a POST and waits for a slot. During a pause, nothing stays recorded.
func (p *posts) turn(ctx context.Context, recorder Recorder) (sent time.Time, _ error) {
	for {
		if err := p.wait(ctx); err != nil {
			return sent, err
		}
		if err := recorder.Sending(); err != nil {
			return sent, err
		}
		soon, cancel := context.WithTimeout(ctx, maxTurn)
		sent, err := p.acquire(soon)
		cancel()
		if err == nil {
			return sent, nil
		}
		recorder.Withdrawn()
		if ctx.Err() != nil {
			return sent, context.Cause(ctx)
		}
	}
}

// limiter is what the calls of one kind share: a number of slots, and the pause after a 429.
type limiter struct {
	base  time.Duration // longest first pause without Retry-After
	slots *semaphore.Weighted

	mu          sync.Mutex
	began, ends time.Time // of the last pause
	tooShort    bool      // no call was accepted since
	failures    int       // exponent of the next pause without Retry-After
}

func newLimiter(base time.Duration, most int64) *limiter {
	return &limiter{base: base, slots: semaphore.NewWeighted(most)}
}

// acquire waits for a slot and the end of the pause, and returns when that was. The call
// must end in release.
func (l *limiter) acquire(ctx context.Context) (sent time.Time, _ error) {
	for {
		if err := l.wait(ctx); err != nil {
			return sent, err
		}
		if l.slots.Acquire(ctx, 1) != nil {
			return sent, context.Cause(ctx)
		}
		if l.pause() <= 0 {
			return time.Now(), nil
		}
		l.slots.Release(1) // another call has begun a pause meanwhile
	}
}

// wait waits for the end of the pause. It fails at once with ErrPauseTooLong when that
// outlasts the deadline of ctx.
func (l *limiter) wait(ctx context.Context) error {
	for ctx.Err() == nil {
		pause := l.pause()
		if pause <= 0 {
			return nil
		}
		if deadline, ok := ctx.Deadline(); ok && pause > time.Until(deadline) { // says when to apply again, or how long timeouts must be
			return fmt.Errorf("%w: the next request can be sent in %s", ErrPauseTooLong, pause.Round(time.Second))
		}
		_ = sleep.For(ctx, pause)
	}
	return context.Cause(ctx)
}

func (l *limiter) pause() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(l.ends)
}

// release ends a call with its response, or nil if it was not sent.
func (l *limiter) release(sent time.Time, got *response) {
	defer l.slots.Release(1) // once a pause has begun
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case got == nil || got.status == 0 || got.status >= 500:
	case got.status == http.StatusTooManyRequests:
		pause, hasRetryAfter := retryAfter(got.header, time.Now())
		l.limited(sent, pause, hasRetryAfter)
	case !sent.Before(l.ends): // the limit let it pass, whether or not the service then refused it
		l.tooShort = false
	}
}

// limited begins or extends the pause after a 429.
func (l *limiter) limited(sent time.Time, after time.Duration, hasRetryAfter bool) {
	if !sent.Before(l.began) { // not one more of those that began the pause
		if !hasRetryAfter || after == 0 && l.tooShort {
			after = l.defaultPause()
		}
		l.began, l.tooShort = time.Now(), true
	}
	if end := time.Now().Add(after); end.After(l.ends) {
		l.ends = end
	}
}

// defaultPause grows threefold from one pause that is too short to the next, with jitter: an
// hourly limit is found with few requests. After one that was long enough, the next is as long.
func (l *limiter) defaultPause() time.Duration {
	if !l.tooShort {
		l.failures = max(l.failures-1, 0)
	}
	pause := l.base
	for range min(l.failures, 6) {
		pause *= 3
	}
	l.failures++
	return pause/2 + rand.N(pause/2+1)
}
