// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
)

// What may pass is tried again until the context ends, by PollJob only after a 429. Unlike a POST,
// a GET ends with its context, in flight or waiting for its turn.
func TestGet(t *testing.T) {
	t.Parallel()
	whole := answer{status: 200, body: record}
	busy := func(retryAfter string) answer {
		return answer{status: 503, header: http.Header{"Retry-After": {retryAfter}}}
	}
	get, poll := (*Client).ReadJob, (*Client).PollJob
	large := answer{status: 200, body: record + strings.Repeat(" ", maxBody-len(record))}
	tooLarge := answer{status: 200, body: large.body + " "}
	pollAgain := func(c *Client, ctx context.Context, projectID, jobID string) (*Job, error) {
		c.polls.SetLimit(rate.Every(time.Hour))
		for c.polls.Allow() {
		}
		return c.PollJob(ctx, projectID, jobID)
	}
	for name, tc := range map[string]struct {
		call     func(*Client, context.Context, string, string) (*Job, error)
		answers  []answer
		is       error // nil: the job
		requests int   // 0: any number
		lo, hi   time.Duration
	}{
		"503":                {get, []answer{busy(""), busy(""), busy(""), whole}, nil, 4, time.Millisecond, 3500*time.Millisecond + 3},
		"503, a pause":       {get, []answer{busy("30"), busy("20"), whole}, nil, 3, 50 * time.Second, 50 * time.Second},
		"429":                {get, []answer{limited(""), limited(""), limited(""), whole}, nil, 4, 6500 * time.Millisecond, 13 * time.Second},
		"never a connection": {get, []answer{{}}, errConnRefused, 0, time.Minute, time.Minute},
		"429, too long":      {get, []answer{limited("3600")}, ErrPauseTooLong, 1, 0, 0},
		"poll, 429":          {poll, []answer{limited("30"), whole}, nil, 2, 30 * time.Second, 30 * time.Second},
		"poll, 404":          {poll, []answer{{status: 404}}, ErrNotFound, 1, 0, 0},
		"poll, 503":          {poll, []answer{busy("7")}, ErrUnavailable, 1, 0, 0},
		"C13 1 MiB":          {poll, []answer{large}, nil, 1, 0, 0},
		"C13 more":           {poll, []answer{tooLarge}, errTooLarge, 1, 0, 0},
		"poll, in flight":    {poll, []answer{whole.after(time.Hour)}, context.DeadlineExceeded, 1, time.Minute, time.Minute},
		"poll, not its turn": {pollAgain, []answer{whole}, context.DeadlineExceeded, 0, time.Minute, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				f := &fakeService{answers: tc.answers}
				start := time.Now()
				c := newFakeClient(t, f, func(config *Config) { config.RequestTimeout = 2 * time.Hour })
				job, err := tc.call(c, ctx, "p", "job_1")
				took := time.Since(start)
				if (job == nil) != (tc.is != nil) || !errors.Is(err, tc.is) || took < tc.lo || took > tc.hi {
					t.Errorf("%v, %v after %v, want %v after %v to %v", job, err, took, tc.is, tc.lo, tc.hi)
				}
				if job == nil && errors.Is(err, ErrUnavailable) == errors.Is(err, ErrNotFound) {
					t.Errorf("%v: of the wrong class", err)
				}
				if tc.requests != 0 && f.dials != tc.requests {
					t.Errorf("%d requests, want %d", f.dials, tc.requests)
				}
			})
		})
	}
}

// A 429 pauses every wait with the same provider configuration. After the pause they
// follow within the budget of polls, not all at once.
//
// Red without: the wait in PollJob.
func TestGet_P10_afterLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{answers: []answer{limited("50").after(time.Second), accepted.after(time.Second)}}
		c, apart := newFakeClient(t, f, func(config *Config) { config.MaxPollsPerSecond = 1 }), newFakeClient(t, f)
		start := time.Now()
		var calls sync.WaitGroup
		poll := func(c *Client) {
			if _, err := c.PollJob(t.Context(), "p", "job_1"); err != nil {
				t.Error(err)
			}
		}
		calls.Go(func() { poll(c) }) // answered 429 at second 1, and so held until second 51
		time.Sleep(10 * time.Second)
		for range 8 {
			calls.Go(func() { poll(c) })
		}
		poll(apart)
		if took := time.Since(start); took != 11*time.Second {
			t.Errorf("the poll of another client ended after %v, want 11s", took)
		}
		calls.Wait()
		if took := time.Since(start); took != 59*time.Second {
			t.Errorf("the last poll ended after %v, want 59s", took)
		}
	})
}

// Many waits share the budget, of which a tenth of a second's may go at once, and each
// gets its turn. A refresh does not queue behind them.
func TestPollJob_P13_budget(t *testing.T) {
	t.Parallel()
	for budget, waits := range map[float64]int{1: 10, 100: 1000} {
		synctest.Test(t, func(t *testing.T) {
			c := newFakeClient(t, &fakeService{answers: []answer{{status: 200, body: record}}}, func(config *Config) { config.MaxPollsPerSecond = budget })
			start := time.Now()
			var all sync.WaitGroup
			for range waits {
				all.Go(func() {
					for _, turn := range []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second} {
						if _, err := c.PollJob(t.Context(), "p", "job_1"); err != nil || time.Since(start) > turn {
							t.Errorf("%v after %v, want a poll by %v", err, time.Since(start), turn)
						}
					}
				})
			}
			synctest.Wait()
			if _, err := c.ReadJob(t.Context(), "p", "job_1"); err != nil || time.Since(start) != 0 {
				t.Errorf("%v after %v, want the job at once", err, time.Since(start))
			}
			all.Wait()
			want := 30*time.Second - time.Duration(max(1, budget/10)/budget*float64(time.Second))
			if took := time.Since(start).Round(time.Millisecond); took != want {
				t.Errorf("%d polls at %v a second took %v, want %v", 3*waits, budget, took, want)
			}
		})
	}
}

// While the service is down, the first read waits for its minute, and those after it try
// once, until a GET succeeds. Red without: down.
func TestReadJob_serviceDown(t *testing.T) {
	t.Parallel()
	healthy := &fakeService{answers: []answer{{status: 200, body: record}}}
	for name, tc := range map[string]struct {
		down *fakeService
		once time.Duration // how long a read lasts then
	}{
		"no connection": {&fakeService{answers: []answer{{}}}, 0},
		"no response":   {&fakeService{answers: []answer{accepted.after(time.Hour)}}, downTimeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newFakeClient(t, tc.down, func(config *Config) { config.RequestTimeout = time.Hour })
			read := func(f *fakeService, want time.Duration, class error) {
				t.Helper()
				c.getTransport = f
				start, before := time.Now(), f.dials
				_, err := c.ReadJob(t.Context(), "p", "job_1")
				if took := time.Since(start); took != want || !errors.Is(err, class) || want < readTimeout && f.dials != before+1 {
					t.Errorf("%s: %v after %v and %d requests, want %v after %v", name, err, took, f.dials-before, class, want)
				}
			}
			read(tc.down, readTimeout, ErrUnavailable)
			read(tc.down, tc.once, ErrUnavailable)
			read(tc.down, tc.once, ErrUnavailable)
			read(healthy, 0, nil)
			read(tc.down, readTimeout, ErrUnavailable)
		})
	}
}
