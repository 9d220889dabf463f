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

// maxConcurrent is how many POSTs to a project may be in flight at once, each with its record. Up
// to that many responses are 429 when a limit is hit, and again after a pause that was too short.
const maxConcurrent = 16

// posts limits the POSTs to a project.
type posts struct {
	*limiter

	slots *semaphore.Weighted
}

// acquire waits for a slot and the end of the pause, and returns when that was. The POST
// must end in release.
func (p *posts) acquire(ctx context.Context) (sent time.Time, _ error) {
	for {
		if err := p.wait(ctx); err != nil {
			return sent, err
		}
		if p.slots.Acquire(ctx, 1) != nil {
			return sent, context.Cause(ctx)
		}
		if p.pause() <= 0 {
			return time.Now(), nil
		}
		p.slots.Release(1) // another POST has begun a pause meanwhile
	}
}

// release ends a POST with its response, or nil if it was not sent.
func (p *posts) release(sent time.Time, got *response) {
	defer p.slots.Release(1) // once a pause has begun
	if got != nil {
		p.responded(sent, got)
	}
}

// limiter is what the calls of one kind share: the pause after a 429.
type limiter struct {
	base   time.Duration // longest first pause without Retry-After
	most   time.Duration // longest pause
	isRead bool          // a call is tried once more before its deadline, although the pause lasts longer

	mu          sync.Mutex
	began, ends time.Time // of the last pause
	tooShort    bool      // no call has got past the limit since
	failures    int       // exponent of the next pause without Retry-After
}

// wait waits for the end of the pause. If that outlasts the deadline of ctx, a POST fails at once
// with ErrPauseTooLong.
func (l *limiter) wait(ctx context.Context) error {
	for ctx.Err() == nil {
		pause := l.pause()
		if pause <= 0 {
			return nil
		}
		deadline, ok := ctx.Deadline()
		left := time.Until(deadline)
		switch {
		case !ok || pause <= left:
		case !l.isRead: // fails at once: the error says when to apply again
			return fmt.Errorf("%w: it lasts another %s", ErrPauseTooLong, pause.Round(time.Second))
		case left > time.Second:
			return sleep.For(ctx, left-left/10)
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

// responded follows the response to a call that began at that time.
func (l *limiter) responded(sent time.Time, got *response) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case got.status == 0 || got.status >= 500:
	case got.status == http.StatusTooManyRequests:
		pause, hasRetryAfter := retryAfter(got.header, time.Now())
		l.limited(sent, min(pause, l.most), hasRetryAfter)
	case !sent.Before(l.ends): // the limit let it pass, whether or not the service then refused it
		l.tooShort = false
	}
}

// limited begins or extends the pause after a 429.
func (l *limiter) limited(sent time.Time, after time.Duration, hasRetryAfter bool) {
	if !sent.Before(l.began) { // else it was under way when the pause began
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
// hourly limit is found with few requests. After one that was long enough, the next is a third of
// it: were it as long, each 429 of a service that refuses at random would lengthen all that follow.
func (l *limiter) defaultPause() time.Duration {
	if !l.tooShort {
		l.failures = max(l.failures-2, 0)
	}
	pause := l.base
	for range min(l.failures, 6) {
		pause *= 3
	}
	l.failures++
	pause = min(pause, l.most)
	return pause/2 + rand.N(pause/2+1)
}
