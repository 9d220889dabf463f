// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// maxConcurrent is how many calls may be in flight at once: POSTs always, GETs just
// after a pause. Up to that many responses are 429 when a limit is hit.
const maxConcurrent = 4

// limiter is the shared pause after a 429: all calls wait until it is over, one is
// sent as a probe, and once the service accepts that, the rest follow in the order
// they came, a few at a time; each that is accepted lets one more GET pass at once.
type limiter struct {
	base time.Duration // longest first pause without Retry-After
	most int           // calls allowed at once, long after a 429

	mu       sync.Mutex
	width    int       // calls allowed at once
	busy     int       // calls under way
	reopens  time.Time // no call passes before
	epoch    int       // counts the pauses, so that late 429 responses do not add up
	failures int       // exponent of the next pause without Retry-After
	queue    []*waiter // in the order they came
}

type waiter struct {
	ready    chan error // buffered: nil = go
	epoch    int        // valid once ready received nil
	deadline time.Time  // zero = none
}

func newLimiter(base time.Duration, most int) *limiter {
	return &limiter{base: base, most: most, width: most}
}

// acquire waits for the turn of one call, and returns the epoch it belongs to. It
// fails at once with ErrPauseTooLong when the pause outlasts the deadline of ctx.
func (l *limiter) acquire(ctx context.Context) (epoch int, _ error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	l.mu.Lock()
	if len(l.queue) == 0 && l.isOpen() {
		l.busy++
		defer l.mu.Unlock()
		return l.epoch, nil
	}
	w := &waiter{ready: make(chan error, 1)}
	w.deadline, _ = ctx.Deadline()
	if l.outlasts(w) {
		defer l.mu.Unlock()
		return 0, l.tooLong()
	}
	l.queue = append(l.queue, w)
	l.mu.Unlock()

	select {
	case err := <-w.ready:
		return w.epoch, err
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		l.queue = slices.DeleteFunc(l.queue, func(other *waiter) bool { return other == w })
		select {
		case err := <-w.ready: // the turn came at the same moment: pass it on
			if err == nil {
				l.busy--
				l.admit()
			}
		default:
		}
		return 0, context.Cause(ctx)
	}
}

// release ends a call. accepted reports that the rate limit let it pass, whether or
// not the service then refused it, so the rest may follow the probe.
func (l *limiter) release(epoch int, accepted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy--
	if accepted && epoch == l.epoch && l.width < l.most {
		if l.width == 1 { // the probe: start the next pause near the length that this one had
			l.failures = max(l.failures-1, 0)
		}
		l.width = min(max(l.width+1, maxConcurrent), l.most)
	}
	l.admit()
}

// limited ends a call whose response was 429, and starts or extends the pause.
func (l *limiter) limited(epoch int, after time.Duration, hasRetryAfter bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy--
	if epoch == l.epoch { // the first 429 since the last pause
		l.epoch++
		if !hasRetryAfter || l.width == 1 && after == 0 {
			after = max(after, l.defaultPause())
			l.failures++
		}
	} else if !hasRetryAfter {
		after = 0
	}
	l.width = 1
	if end := time.Now().Add(after); end.After(l.reopens) {
		l.reopens = end
		time.AfterFunc(after, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.admit()
		})
	}
	l.queue = slices.DeleteFunc(l.queue, func(w *waiter) bool {
		tooLong := l.outlasts(w)
		if tooLong {
			w.ready <- l.tooLong()
		}
		return tooLong
	})
	l.admit()
}

// defaultPause grows threefold from one failed probe to the next, with jitter: an
// hourly limit is found with few probes.
func (l *limiter) defaultPause() time.Duration {
	pause := l.base
	for range min(l.failures, 6) {
		pause *= 3
	}
	return pause/2 + rand.N(pause/2+1)
}

func (l *limiter) isOpen() bool {
	return l.busy < l.width && !time.Now().Before(l.reopens)
}

func (l *limiter) outlasts(w *waiter) bool {
	return !w.deadline.IsZero() && l.reopens.After(w.deadline)
}

// tooLong says when to apply again, or how long timeouts must be.
func (l *limiter) tooLong() error {
	return fmt.Errorf("%w: the next request can be sent in %s", ErrPauseTooLong, time.Until(l.reopens).Round(time.Second))
}

// admit lets in as many waiting calls as the limiter allows.
func (l *limiter) admit() {
	for len(l.queue) > 0 && l.isOpen() {
		w := l.queue[0]
		l.queue = slices.Delete(l.queue, 0, 1)
		l.busy++
		w.epoch = l.epoch
		w.ready <- nil
	}
}
