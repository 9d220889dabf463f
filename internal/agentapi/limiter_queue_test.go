// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestLimiter_cancelledInTheQueue cancels half of the waiting calls, some of them in
// the very moment of their turn: the others all get theirs.
func TestLimiter_cancelledInTheQueue(t *testing.T) {
	t.Parallel()
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{latency: time.Second, answer: limitedUntil(time.Now().Add(5*time.Second), "10")}
			c := newFakeClient(t, f)
			var all sync.WaitGroup
			for i := range 40 {
				ctx, cancel := context.WithCancel(t.Context())
				if i%2 == 1 {
					time.AfterFunc(time.Duration(11+i/4)*time.Second, cancel) // permits come at whole seconds
				}
				all.Go(func() {
					defer cancel()
					time.Sleep(time.Duration(i) * time.Nanosecond)
					if i > 0 {
						time.Sleep(2 * time.Second)
					}
					_, err := c.CreateJob(ctx, "p", "x")
					if err != nil && (i%2 == 0 || !errors.Is(err, context.Canceled) || !errors.Is(err, ErrNotSent)) {
						t.Errorf("call %d: %v", i, err)
					}
				})
			}
			all.Wait()
			l := c.posts.project("p")
			if l.busy != 0 || len(l.queue) != 0 {
				t.Errorf("the limiter counts %d calls under way and %d waiting, want none", l.busy, len(l.queue))
			}
			if f.posts < 21 || f.posts > 41 || f.maxBusy > maxConcurrent {
				t.Errorf("%d POSTs, %d at once", f.posts, f.maxBusy)
			}
		})
	}
}

// The turn comes after the cancellation, and
// before the call has left the queue.
func TestLimiter_cancelledAtItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(postPause, maxConcurrent)
		l.width = 1
		if _, err := l.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		for _, ctx := range []context.Context{ctx, t.Context()} {
			go func() {
				permit, err := l.acquire(ctx)
				if err == nil {
					defer l.release(permit, true)
				}
				ended <- err
			}()
			synctest.Wait()
		}
		l.mu.Lock()
		cancel()
		l.busy--
		l.admit()
		l.mu.Unlock()
		synctest.Wait()
		if len(ended) != 2 || !errors.Is(<-ended, context.Canceled) || <-ended != nil || l.busy != 0 {
			t.Errorf("%d calls have ended and %d are under way, want both: one cancelled, one through", 2-len(ended), l.busy)
		}
	})
}

// TestLimiter_concurrentPOSTs: the rush before the first 429 is as narrow as the one
// after it, or most of the rush would be refused.
func TestLimiter_concurrentPOSTs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{latency: time.Second, answer: func(int, *http.Request) (int, http.Header, string) { return 201, nil, record }}
		c := newFakeClient(t, f)
		for range 50 {
			go c.CreateJob(t.Context(), "p", "x")     //nolint:errcheck // f counts
			go c.CreateJob(t.Context(), "other", "x") //nolint:errcheck // f counts
		}
		time.Sleep(500 * time.Millisecond)
		if got := len(f.soFar()); got != 2*maxConcurrent {
			t.Errorf("%d POSTs are under way for two projects, want %d for each", got, maxConcurrent)
		}
		time.Sleep(time.Minute)
	})
}

func TestLimiter_late429s(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		hasRetryAfter bool
		lo, hi        time.Duration // when the limiter opens again
	}{
		"Retry-After": {true, 60*time.Second + 49*time.Millisecond, 60*time.Second + 49*time.Millisecond},
		"own":         {false, postPause / 2, postPause},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(postPause, 0) // as many under way as there are GETs
				start := time.Now()
				permits := make([]permit, 50)
				for i := range permits {
					permits[i], _ = l.acquire(t.Context())
				}
				for i, permit := range permits {
					l.limited(permit, map[bool]time.Duration{true: time.Minute}[tc.hasRetryAfter], tc.hasRetryAfter)
					if i < len(permits)-1 {
						time.Sleep(time.Millisecond)
					}
				}
				if end := l.reopens.Sub(start); end < tc.lo || end > tc.hi {
					t.Errorf("fifty 429s hold the limiter for %v, want %v to %v", end, tc.lo, tc.hi)
				}
				if want := map[bool]int{true: 0, false: 1}[tc.hasRetryAfter]; l.failures != want || l.epoch != 1 {
					t.Errorf("they count as %d failures and %d pauses, want %d and 1", l.failures, l.epoch, want)
				}
				permit, err := l.acquire(t.Context())
				if err != nil || time.Since(start) < tc.lo {
					t.Errorf("the probe went after %v, %v", time.Since(start), err)
				}
				l.release(permit, true)
			})
		})
	}
}
