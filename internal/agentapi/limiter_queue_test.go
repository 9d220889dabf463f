// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A call is cancelled while it waits, and one in the moment of its turn, before it has
// left the queue: the others all get their turn.
func TestLimiter_cancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(postPause, maxConcurrent)
		l.width = 1
		if _, err := l.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		waiting, cancelWaiting := context.WithCancel(t.Context())
		turn, cancelTurn := context.WithCancel(t.Context())
		ended := make(chan error, 4)
		for _, ctx := range []context.Context{turn, waiting, t.Context(), t.Context()} {
			go func() {
				epoch, err := l.acquire(ctx)
				if err == nil {
					defer l.release(epoch, true)
				}
				ended <- err
			}()
			synctest.Wait()
		}
		cancelWaiting()
		synctest.Wait()
		if len(ended) != 1 || len(l.queue) != 3 {
			t.Errorf("%d calls have ended and %d wait, want 1 and 3", len(ended), len(l.queue))
		}
		l.mu.Lock()
		cancelTurn()
		l.busy--
		l.admit()
		l.mu.Unlock()
		synctest.Wait()
		if len(ended) != 4 || l.busy != 0 || len(l.queue) != 0 {
			t.Fatalf("%d calls have ended, %d are under way and %d wait, want all ended", len(ended), l.busy, len(l.queue))
		}
		for _, want := range []error{context.Canceled, context.Canceled, nil, nil} {
			if err := <-ended; !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		}
	})
}

// The rush before the first 429 is as narrow as the one after it, or most of the
// rush would be refused.
func TestLimiter_concurrentPOSTs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{latency: time.Second, answers: []answer{accepted}}
		c := newFakeClient(t, f)
		var all sync.WaitGroup
		for _, project := range slices.Repeat([]string{"p", "other"}, 50) {
			all.Go(func() { _, _ = c.CreateJob(t.Context(), project, "x", nil) }) // f counts
		}
		all.Wait()
		if len(f.posts) != 100 || f.widest != 2*maxConcurrent {
			t.Errorf("%d POSTs, %d at once, for two projects, want 100, and %d at once for each", len(f.posts), f.widest, maxConcurrent)
		}
	})
}

func TestLimiter_late429s(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		pause    time.Duration // that the 429s name; 0: none
		failures int
		lo, hi   time.Duration // when the limiter opens again
	}{
		{time.Minute, 0, time.Minute + 49*time.Millisecond, time.Minute + 49*time.Millisecond},
		{0, 1, getPause / 2, getPause},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(getPause, math.MaxInt)
			start := time.Now()
			for range 50 {
				if _, err := l.acquire(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 50 {
				time.Sleep(time.Duration(min(i, 1)) * time.Millisecond)
				l.limited(0, tc.pause, tc.pause != 0)
			}
			_, err := l.acquire(t.Context())
			if took := time.Since(start); err != nil || took < tc.lo || took > tc.hi || l.failures != tc.failures || l.epoch != 1 {
				t.Errorf("after fifty 429s, %v: the probe went after %v, want %v to %v; %d failures and %d pauses", err, took, tc.lo, tc.hi, l.failures, l.epoch)
			}
		})
	}
}
