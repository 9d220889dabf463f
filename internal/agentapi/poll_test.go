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

func perSecond(n float64) func(*Config) {
	return func(c *Config) { c.MaxPollsPerSecond = n }
}

// TestThousandWaits is row P13: a thousand callers that poll without a pause of
// their own stay within the budget, and each gets its share.
func TestThousandWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const callers, budget, minutes = 1000, 100, 1
		perSecondSent := map[int]int{}
		start := time.Now()
		f := &fake{latency: 50 * time.Millisecond}
		f.answer = func(int, *http.Request) (int, http.Header, string) {
			perSecondSent[int(time.Since(start)/time.Second)]++
			return 200, nil, record
		}
		c := newFakeClient(t, f, perSecond(budget))
		ctx, cancel := context.WithTimeout(t.Context(), minutes*time.Minute)
		defer cancel()
		polls := make([]int, callers)
		longest := make([]time.Duration, callers)
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				for {
					asked := time.Now()
					if _, err := c.PollJob(ctx, "p", "job_1"); err != nil {
						if !errors.Is(err, context.DeadlineExceeded) {
							t.Error(err)
						}
						return
					}
					polls[i]++
					longest[i] = max(longest[i], time.Since(asked))
				}
			})
		}
		all.Wait()
		total, most := 0, 0
		for second, n := range perSecondSent {
			total += n
			most = max(most, n)
			if n > budget+budget/10 {
				t.Errorf("%d polls in second %d, want at most %d and the burst", n, second, budget)
			}
		}
		least, worst := polls[0], longest[0]
		for i := range polls {
			least = min(least, polls[i])
			worst = max(worst, longest[i])
		}
		t.Logf("%d polls in %d minute, at most %d in a second; the caller with the fewest has %d, the longest wait for a turn is %v", total, minutes, most, least, worst)
		if fair := budget * 60 * minutes / callers; least < fair-2 {
			t.Errorf("a caller had %d polls, want about %d", least, fair)
		}
		if total < budget*60*minutes*98/100 {
			t.Errorf("%d polls: the budget is not used", total)
		}
		if worst > 11*time.Second {
			t.Errorf("a caller waited %v for its turn, want about %ds", worst, callers/budget)
		}
	})
}

// TestGetJobIsNotHeldByTheBudget: a refresh does not queue behind the waits, of
// which a tenth of a second's budget may go at once.
func TestGetJobIsNotHeldByTheBudget(t *testing.T) {
	t.Parallel()
	for budget, want := range map[float64]time.Duration{1: 29 * time.Second, 100: 200 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			c := newFakeClient(t, scripted([]outcome{whole}), perSecond(budget))
			var all sync.WaitGroup
			for range 30 {
				all.Go(func() {
					if _, err := c.PollJob(t.Context(), "p", "job_1"); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			start := time.Now()
			if _, err := c.GetJob(t.Context(), "p", "job_1"); err != nil || time.Since(start) != 0 {
				t.Errorf("%v after %v, want the job at once", err, time.Since(start))
			}
			all.Wait()
			if took := time.Since(start).Round(time.Millisecond); took != want {
				t.Errorf("thirty polls at %v a second took %v, want %v", budget, took, want)
			}
		})
	}
}

// TestPollEndsWithItsContext: a poll whose turn never comes ends when its
// context does, neither before nor after.
func TestPollEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Minute)
		},
		"cancel": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Minute, cancel)
			return ctx, cancel
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := scripted([]outcome{whole})
				c := newFakeClient(t, f, perSecond(0.001))
				ctx, cancel := end(t.Context())
				defer cancel()
				start := time.Now()
				if _, err := c.PollJob(ctx, "p", "job_1"); err != nil {
					t.Fatal(err)
				}
				_, err := c.PollJob(ctx, "p", "job_1")
				if !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.Cause(ctx)) || time.Since(start) != time.Minute || f.gets != 1 {
					t.Errorf("%v after %v and %d GETs, want the end of the context after 1m and 1", err, time.Since(start), f.gets)
				}
			})
		})
	}
}

// TestPollsShareThePause is row P10: a 429 pauses all GETs of the client, and
// is no failure of any of them.
func TestPollsShareThePause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var early, refused int
		f := &fake{latency: 100 * time.Millisecond}
		f.answer = func(int, *http.Request) (int, http.Header, string) {
			now := time.Since(start)
			if now < 30*time.Second {
				if now > f.latency {
					early++
				}
				refused++
				return 429, headers("Retry-After", "30"), ""
			}
			return 200, nil, record
		}
		c := newFakeClient(t, f)
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 20 * time.Millisecond)
				if _, err := c.PollJob(t.Context(), "p", "job_1"); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if refused > 6 || early > 5 {
			t.Errorf("%d GETs met the limit, %d of them in the pause, want the few that were under way", refused, early)
		}
		if took := time.Since(start); took > 33*time.Second {
			t.Errorf("fifty polls took %v", took)
		}
	})
}

func TestPollWithAPauseBeyondItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		c := newFakeClient(t, scripted([]outcome{{status: 429, header: headers("Retry-After", "61")}}))
		if _, err := c.PollJob(ctx, "p", "job_1"); !errors.Is(err, ErrPauseTooLong) || time.Since(start) != 0 {
			t.Errorf("%v after %v, want ErrPauseTooLong at once", err, time.Since(start))
		}
	})
}
