// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// hourly is a limit of 100 POSTs in each hour that begins with a POST.
type hourly struct {
	accepted []time.Time
}

func (h *hourly) take() (pause time.Duration, ok bool) {
	const limit = 100
	now := time.Now()
	if len(h.accepted) > 0 && now.Sub(h.accepted[0]) >= time.Hour {
		h.accepted = nil
	}
	if n := len(h.accepted); n >= limit && now.Sub(h.accepted[n-limit]) < time.Hour {
		return h.accepted[n-limit].Add(time.Hour).Sub(now), false
	}
	h.accepted = append(h.accepted, now)
	return 0, true
}

// All succeed, and once the limit is known hardly any POST is wasted on it.
func TestLimiter_hourlyLimit(t *testing.T) {
	t.Parallel()
	for _, hasRetryAfter := range []bool{true, false} {
		for _, spread := range []time.Duration{0, 10 * time.Millisecond, time.Second} {
			t.Run(fmt.Sprintf("hasRetryAfter=%t/one call each %v", hasRetryAfter, spread), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					limit := &hourly{}
					var first time.Time           // 429
					var late, refused, wasted int // late: sent after the first 429
					f := &fakeService{latency: 300 * time.Millisecond}
					f.answer = func() answer {
						isLate := !first.IsZero() && time.Now().Add(-f.latency).After(first)
						if isLate {
							late++
						}
						pause, ok := limit.take()
						if ok {
							return accepted
						}
						refused++
						if isLate {
							wasted++
						}
						if first.IsZero() {
							first = time.Now()
						}
						if hasRetryAfter {
							return limited(fmt.Sprint(int(pause/time.Second) + 1))
						}
						return limited("")
					}
					c := newFakeClient(t, f)
					start := time.Now()
					var all sync.WaitGroup
					for i := range 300 {
						all.Go(func() {
							time.Sleep(time.Duration(i) * spread)
							if _, err := c.CreateJob(t.Context(), "p", "x", nil); err != nil {
								t.Errorf("call %d: %v", i, err)
							}
						})
					}
					all.Wait()
					if jobs := len(f.posts) - refused; jobs != 300 || time.Since(start) > 8*time.Hour {
						t.Errorf("%d jobs in %v, want 300 within 8h", jobs, time.Since(start))
					}
					allowed := late / 20
					if !hasRetryAfter {
						allowed = late / 7
					}
					if wasted > allowed {
						t.Errorf("%d of the %d POSTs sent after the first 429 were answered 429, want at most %d", wasted, late, allowed)
					}
				})
			})
		}
	}
}
