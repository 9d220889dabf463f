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

// TestCancelledInTheQueue cancels half of the waiting calls, some of them in
// the very moment of their turn: the others all get theirs.
func TestCancelledInTheQueue(t *testing.T) {
	t.Parallel()
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{latency: time.Second, answer: limitedUntil(time.Now().Add(5*time.Second), "10")}
			c := newFakeClient(t, f)
			var all sync.WaitGroup
			for i := range 40 {
				ctx, cancel := context.WithCancel(t.Context())
				if i%2 == 1 {
					time.AfterFunc(time.Duration(11+i/4)*time.Second, cancel) // turns come at whole seconds
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
			g := c.posts.project("p")
			if g.busy != 0 || len(g.queue) != 0 {
				t.Errorf("the gate counts %d calls under way and %d waiting, want none", g.busy, len(g.queue))
			}
			if f.posts < 21 || f.posts > 41 || f.maxBusy > gateWidth {
				t.Errorf("%d POSTs, %d at once", f.posts, f.maxBusy)
			}
		})
	}
}

// TestTurnOfACancelledCallGoesOn: the turn comes after the cancellation, and
// before the call has left the queue.
func TestTurnOfACancelledCallGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(postPause, gateWidth)
		g.width = 1
		if _, err := g.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		for _, ctx := range []context.Context{ctx, t.Context()} {
			go func() {
				turn, err := g.enter(ctx)
				if err == nil {
					defer g.leave(turn, true)
				}
				ended <- err
			}()
			synctest.Wait()
		}
		g.mu.Lock()
		cancel()
		g.busy--
		g.admit()
		g.mu.Unlock()
		synctest.Wait()
		if len(ended) != 2 || !errors.Is(<-ended, context.Canceled) || <-ended != nil || g.busy != 0 {
			t.Errorf("%d calls have ended and %d are under way, want both: one cancelled, one through", 2-len(ended), g.busy)
		}
	})
}

// TestFewPOSTsAtOnce: the rush before the first 429 is as narrow as the one
// after it, or most of the rush would be refused.
func TestFewPOSTsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{latency: time.Second, answer: func(int, *http.Request) (int, http.Header, string) { return 201, nil, record }}
		c := newFakeClient(t, f)
		for range 50 {
			go c.CreateJob(t.Context(), "p", "x")     //nolint:errcheck // f counts
			go c.CreateJob(t.Context(), "other", "x") //nolint:errcheck // f counts
		}
		time.Sleep(500 * time.Millisecond)
		if got := len(f.soFar()); got != 2*gateWidth {
			t.Errorf("%d POSTs are under way for two projects, want %d for each", got, gateWidth)
		}
		time.Sleep(time.Minute)
	})
}

func TestLate429sDoNotAddUp(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		told   bool
		lo, hi time.Duration // when the gate opens again
	}{
		"told": {true, 60*time.Second + 49*time.Millisecond, 60*time.Second + 49*time.Millisecond},
		"own":  {false, postPause / 2, postPause},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newGate(postPause, 0) // as many under way as there are GETs
				start := time.Now()
				turns := make([]pass, 50)
				for i := range turns {
					turns[i], _ = g.enter(t.Context())
				}
				for i, turn := range turns {
					g.limited(turn, map[bool]time.Duration{true: time.Minute}[tc.told], tc.told)
					if i < len(turns)-1 {
						time.Sleep(time.Millisecond)
					}
				}
				if end := g.reopens.Sub(start); end < tc.lo || end > tc.hi {
					t.Errorf("fifty 429s hold the gate for %v, want %v to %v", end, tc.lo, tc.hi)
				}
				if want := map[bool]int{true: 0, false: 1}[tc.told]; g.failures != want || g.epoch != 1 {
					t.Errorf("they count as %d failures and %d pauses, want %d and 1", g.failures, g.epoch, want)
				}
				turn, err := g.enter(t.Context())
				if err != nil || time.Since(start) < tc.lo {
					t.Errorf("the probe went after %v, %v", time.Since(start), err)
				}
				g.leave(turn, true)
			})
		})
	}
}
