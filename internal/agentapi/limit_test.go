// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// hourly is a limit of 100 POSTs an hour. fixed counts them from the first one
// of each hour, sliding over the last hour at any time.
type hourly struct {
	mu       sync.Mutex
	sliding  bool
	accepted []time.Time
	opened   time.Time
}

func (h *hourly) take() (wait time.Duration, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	const limit = 100
	now := time.Now()
	if h.sliding {
		if n := len(h.accepted); n >= limit && now.Sub(h.accepted[n-limit]) < time.Hour {
			return h.accepted[n-limit].Add(time.Hour).Sub(now), false
		}
	} else {
		if now.Sub(h.opened) >= time.Hour {
			h.opened, h.accepted = now, nil
		}
		if len(h.accepted) >= limit {
			return h.opened.Add(time.Hour).Sub(now), false
		}
	}
	h.accepted = append(h.accepted, now)
	return 0, true
}

// TestLimiter_hourlyLimit: all succeed, and once the limit is
// known hardly any POST is wasted on it.
func TestLimiter_hourlyLimit(t *testing.T) {
	t.Parallel()
	for _, hasRetryAfter := range []bool{true, false} {
		for _, sliding := range []bool{false, true} {
			for _, spread := range []time.Duration{0, 10 * time.Millisecond, time.Second} {
				t.Run(fmt.Sprintf("hasRetryAfter=%t/sliding=%t/one call each %v", hasRetryAfter, sliding, spread), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						limit := &hourly{sliding: sliding}
						var first time.Time
						var sent, refused, known, wasted int
						f := &fake{latency: 300 * time.Millisecond}
						f.answer = func(int, *http.Request) (int, http.Header, string) {
							sent++
							late := !first.IsZero() && time.Now().Add(-f.latency).After(first)
							if late {
								known++
							}
							wait, ok := limit.take()
							if ok {
								return 201, nil, record
							}
							refused++
							if late {
								wasted++
							}
							if first.IsZero() {
								first = time.Now()
							}
							if hasRetryAfter {
								return 429, headers("Retry-After", fmt.Sprint(int(wait/time.Second)+1)), ""
							}
							return 429, nil, ""
						}
						c := newFakeClient(t, f)
						start := time.Now()
						var all sync.WaitGroup
						for i := range 300 {
							all.Go(func() {
								time.Sleep(time.Duration(i) * spread)
								if _, err := c.CreateJob(t.Context(), "p", "x"); err != nil {
									t.Errorf("call %d: %v", i, err)
								}
							})
						}
						all.Wait()
						if sent-refused != 300 {
							t.Errorf("%d jobs, want 300", sent-refused)
						}
						// Where the slots of a sliding hour come free one by one, a pause may be
						// good for a few POSTs only, and the next ones meet the limit again.
						trickle := sliding && (!hasRetryAfter || spread == time.Second)
						if wasted*20 >= known && !trickle {
							t.Errorf("%d of the %d POSTs sent after the first 429 were answered 429, want less than 5%%", wasted, known)
						}
						if time.Since(start) > 8*time.Hour {
							t.Errorf("it took %v", time.Since(start))
						}
					})
				})
			}
		}
	}
}
