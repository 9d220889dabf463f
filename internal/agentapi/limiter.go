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

// postLimiter limits the POSTs to a project.
type postLimiter struct {
	limiter

	slots *semaphore.Weighted
}

// acquire waits for a slot and the end of the pause. The caller must release the slot.
func (p *postLimiter) acquire(ctx context.Context) error {
	for {
		if err := p.wait(ctx); err != nil {
			return err
		}
		if p.slots.Acquire(ctx, 1) != nil {
			return context.Cause(ctx)
		}
		if p.pause() <= 0 {
			return nil
		}
		p.slots.Release(1) // another POST has begun a pause meanwhile
	}
}

// limiter is what the calls of one kind share: the pause after a 429.
type limiter struct {
	base time.Duration // longest first pause without Retry-After
	most time.Duration // longest pause

	mu          sync.Mutex
	began, ends time.Time // of the last pause
	isTooShort  bool      // no call has got past the limit since the last pause began
	growth      int       // exponent of the next pause without Retry-After
}

// wait waits for the end of the pause. If that outlasts the deadline of ctx, it fails at once with
// ErrPauseTooLong: for a POST, a person learns early when to apply again.
func (l *limiter) wait(ctx context.Context) error {
	for ctx.Err() == nil {
		pause := l.pause()
		if pause <= 0 {
			return nil
		}
		if deadline, ok := ctx.Deadline(); ok && pause > time.Until(deadline) {
			return fmt.Errorf("%w: it lasts another %s", ErrPauseTooLong, pause.Round(time.Second))
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

// responded begins or extends the pause, if the response is a 429.
func (l *limiter) responded(got *response) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case got.status == 0 || got.status >= 500: // perhaps it did not get as far as the limit
	case got.status != http.StatusTooManyRequests:
		if !got.began.Before(l.ends) {
			l.isTooShort = false
		}
	default:
		pause := min(retryAfter(got.header), l.most)
		if !got.began.Before(l.began) { // else it was under way when the pause began
			if pause == 0 {
				pause = l.defaultPause()
			}
			l.began, l.isTooShort = time.Now(), true
		}
		if end := time.Now().Add(pause); end.After(l.ends) {
			l.ends = end
		}
	}
}

// defaultPause grows threefold from one pause that is too short to the next, with jitter: an
// hourly limit is found with few requests. After one that was long enough, the next is a third of
// it: were it as long, each 429 of a service that refuses at random would lengthen all that follow.
func (l *limiter) defaultPause() time.Duration {
	if !l.isTooShort {
		l.growth = max(l.growth-2, 0)
	}
	pause := l.base
	for range min(l.growth, 6) {
		pause *= 3
	}
	l.growth++
	pause = min(pause, l.most)
	return pause/2 + rand.N(pause/2+1)
}
