// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
)

// No response ends reading alone: what may be temporary is tried again for a minute, or left to the wait that polls, and
// a refusal until it has come for ten seconds, or for a minute where a job's outcome depends on it. The service's
// Retry-After is advice. Unlike a POST, a GET ends with its context, in flight or waiting for its turn.
func TestRead(t *testing.T) {
	t.Parallel()
	whole := answer{status: 200, body: record}
	status := func(status int) answer { return answer{status: status} }
	busy := func(retryAfter string) answer {
		return answer{status: 503, header: http.Header{"Retry-After": {retryAfter}}}
	}
	gone := busy("10")
	gone.status = 404
	read, find, poll := (*Client).ReadJob, (*Client).ReadJobPatiently, (*Client).PollJob
	large := answer{status: 200, body: record + strings.Repeat(" ", maxBody-len(record))}
	tooLarge := answer{status: 200, body: "x" + large.body}
	pollAgain := func(c *Client, ctx context.Context, projectID, jobID string) (*Job, error) {
		c.polls.SetLimit(rate.Every(time.Hour))
		for c.polls.Allow() {
		}
		return c.PollJob(ctx, projectID, jobID)
	}
	readAgain := func(c *Client, ctx context.Context, projectID, jobID string) (*Job, error) {
		_, _ = c.ReadJob(ctx, projectID, jobID)
		return c.ReadJob(ctx, projectID, jobID)
	}
	readAfterOutage := func(c *Client, ctx context.Context, projectID, jobID string) (*Job, error) {
		c.persisted.Store(down, true)
		return c.ReadJob(ctx, projectID, jobID)
	}
	createAndRead := func(c *Client, ctx context.Context, projectID, jobID string) (*Job, error) {
		_, _ = c.CreateJob(ctx, projectID, PostBody{Prompt: "x"}, new(recorder))
		return c.ReadJob(ctx, projectID, jobID)
	}
	const s = time.Second
	for name, tc := range map[string]struct {
		call     func(*Client, context.Context, string, string) (*Job, error)
		answers  []answer
		is       error // nil: the job
		requests int   // 0: any number
		lo, hi   time.Duration
	}{
		"503":                     {read, []answer{busy(""), busy(""), busy(""), whole}, nil, 4, time.Millisecond, 3500*time.Millisecond + 3},
		"503, a long pause":       {read, []answer{busy("3600"), whole}, nil, 2, 10 * s, 10 * s},
		"503 always, long pauses": {read, []answer{busy("120")}, ErrUnavailable, 6, 60 * s, 60 * s},
		"429":                     {read, []answer{limited(""), limited(""), limited(""), whole}, nil, 4, 6500 * time.Millisecond, 13 * s},
		"429, a long pause":       {read, []answer{limited("3600"), whole}, nil, 2, 60 * s, 60 * s},
		"429, two windows":        {read, []answer{limited("60"), busy(""), limited("60"), whole}, nil, 4, 120 * s, 121 * s},
		"429 always":              {read, []answer{busy(""), limited("45")}, ErrPauseTooLong, 17, 599 * s, 600 * s},
		"never a connection":      {read, []answer{{}}, errConnRefused, 0, 60 * s, 60 * s},
		"P11 another job":         {read, []answer{{status: 200, body: `{"id":"job_2"}`}, whole}, nil, 2, 0, s},
		"refused three ways":      {read, []answer{status(302), status(409), status(404), whole}, nil, 4, 0, 4 * s},
		"401 always":              {read, []answer{status(401)}, ErrRefused, fewestRefusals, 0, 2 * s},
		"403 of a firewall":       {read, []answer{{status: 403, body: "<html>"}}, ErrWebPage, 0, 10 * s, 20 * s},
		"find, 401 always":        {find, []answer{status(401)}, ErrRefused, fewestRefusals, 0, 2 * s},
		"poll, 401 for long":      {poll, append(slices.Repeat([]answer{status(401).after(5 * s)}, 6), whole), nil, 7, 30 * s, 60 * s},
		"401 after a job":         {readAgain, []answer{whole, status(401)}, ErrRefused, 0, 10 * s, 20 * s},
		"401 after a create":      {createAndRead, []answer{whole, status(401)}, ErrRefused, 0, 10 * s, 20 * s},
		"two 401":                 {read, []answer{status(401), status(401), whole}, nil, 3, 0, 2 * s},
		"404 always":              {read, []answer{status(404)}, ErrNotFound, 0, 10 * s, 20 * s},
		"404 after an outage":     {readAfterOutage, []answer{status(404)}, ErrNotFound, 0, 10 * s, 20 * s},
		"find, 404 for long":      {find, []answer{status(404)}, ErrNotFound, 0, 60 * s, 70 * s},
		"P08 poll, found late":    {poll, append(slices.Repeat([]answer{status(404).after(5 * s)}, 6), whole), nil, 7, 30 * s, 60 * s},
		"poll, 429, at last":      {poll, []answer{limited("59"), limited("3600"), whole}, nil, 3, 95 * s, 96 * s},
		"find, gone after a 429":  {find, []answer{status(404).after(s), status(404).after(20 * s), limited("1"), status(404)}, ErrNotFound, 0, 80 * s, 100 * s},
		"find, 404s around 429s":  {find, []answer{status(404), limited("30"), status(404), limited("31"), status(404), whole}, nil, 6, 61 * s, 75 * s},
		"find, 503, then one 404": {find, append(slices.Repeat([]answer{busy("10")}, 5), status(404).after(9*s), busy("")), ErrUnavailable, 0, 60 * s, 80 * s},
		"poll, one 404, the end":  {poll, []answer{gone.after(95 * s)}, ErrUnavailable, 1, 100 * s, 100 * s},
		"poll, 410 always":        {poll, []answer{status(410)}, ErrRefused, 0, 60 * s, 70 * s},
		"poll, 401 and 503":       {poll, []answer{status(401), busy("")}, ErrUnavailable, 2, 0, s},
		"poll, 503":               {poll, []answer{busy("7")}, ErrUnavailable, 1, 0, 0},
		"C13 64 kB":               {poll, []answer{large}, nil, 1, 0, 0},
		"C13 more":                {poll, []answer{tooLarge}, errTooLarge, 1, 0, 0},
		"poll, in flight":         {poll, []answer{whole.after(time.Hour)}, context.DeadlineExceeded, 1, 100 * s, 100 * s},
		"poll, not its turn":      {pollAgain, []answer{whole}, context.DeadlineExceeded, 0, 100 * s, 100 * s},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				limit := time.Hour
				if strings.HasPrefix(name, "poll") {
					limit = 100 * s
				}
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				f := &fakeService{answers: tc.answers}
				start := time.Now()
				c := newFakeClient(t, f, func(config *Config) { config.RequestTimeout = 2 * time.Hour })
				job, err := tc.call(c, ctx, "p", "job_1")
				took := time.Since(start)
				if (job == nil) != (tc.is != nil) || !errors.Is(err, tc.is) || took < tc.lo || took > tc.hi {
					t.Errorf("%v, %v after %v, want %v after %v to %v", job, err, took, tc.is, tc.lo, tc.hi)
				}
				failure, _ := errors.AsType[*Error](err)
				switch {
				case name == "never a connection" && failure.Lasted.Round(s) != took.Round(s):
					t.Errorf("tried for %v, want %v", failure.Lasted, took)
				case errors.Is(tc.is, ErrPauseTooLong) && failure.StatusCode != http.StatusTooManyRequests:
					t.Errorf("%v, want the 429", err)
				case errors.Is(tc.is, ErrUnavailable) && errors.Is(err, ErrNotFound):
					t.Errorf("%v passes for a job that is gone", err)
				}
				if tc.requests != 0 && f.dials != tc.requests {
					t.Errorf("%d requests, want %d", f.dials, tc.requests)
				}
			})
		})
	}
}

// A 429 pauses every wait with the same provider configuration, also those that have been waiting for the budget of polls.
// After the pause they follow within the budget, not all at once.
func TestPollJob_P10_afterLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{answers: []answer{limited("50").after(time.Second / 2), accepted}}
		c := newFakeClient(t, f, func(config *Config) { config.MaxPollsPerSecond = 1 })
		start := time.Now()
		var calls sync.WaitGroup
		for range 9 { // the first is refused after half a second
			calls.Go(func() {
				if _, err := c.PollJob(t.Context(), "p", "job_1"); err != nil {
					t.Error(err)
				}
				if took := time.Since(start); took < 50500*time.Millisecond {
					t.Errorf("a poll after %v, in the pause", took)
				}
			})
		}
		time.Sleep(10 * time.Second)
		if _, err := newFakeClient(t, f).PollJob(t.Context(), "p", "job_1"); err != nil || time.Since(start) != 10*time.Second {
			t.Errorf("the poll of another client ended after %v with %v, want 10s", time.Since(start), err)
		}
		calls.Wait()
		if took := time.Since(start); took < 58*time.Second || took > 60*time.Second {
			t.Errorf("the last poll ended after %v, want 58s to 60s", took)
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

// What has persisted for one read counts for the next when it has come a few times: else a refresh of many jobs would last
// for hours. A GET that succeeds ends that, but not for jobs that are gone. Red without: isKnown.
func TestReadJob_persisted(t *testing.T) {
	t.Parallel()
	healthy := &fakeService{answers: []answer{{status: 200, body: record}}}
	for name, tc := range map[string]struct {
		failing     *fakeService
		first, next time.Duration // how long a read lasts
		after       time.Duration // a success
	}{
		"no connection": {&fakeService{answers: []answer{{}}}, downTime, 0, downTime},
		"no response":   {&fakeService{answers: []answer{accepted.after(time.Hour)}}, downTime, againTime, downTime},
		"401":           {&fakeService{answers: []answer{{status: 401}}}, refusedTime, 0, refusedTime},
		"404":           {&fakeService{answers: []answer{{status: 404}}}, refusedTime, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newFakeClient(t, tc.failing, func(config *Config) { config.RequestTimeout = time.Hour })
			c.worked.Store(true)
			read := func(f *fakeService, want time.Duration) {
				t.Helper()
				c.getTransport = f
				start, before := time.Now(), f.dials
				_, err := c.ReadJob(t.Context(), "p", "job_1")
				if want == 0 && f != healthy && f.dials < before+2 {
					t.Errorf("%s: one failure counts", name)
				}
				if took := time.Since(start); took < want || took > want+retryCap || (err == nil) != (f == healthy) || want == 0 && took > 2*time.Second {
					t.Errorf("%s: %v after %v, want %v", name, err, took, want)
				}
			}
			read(tc.failing, tc.first)
			read(tc.failing, tc.next)
			read(tc.failing, tc.next)
			read(healthy, 0)
			read(tc.failing, tc.after)
		})
	}
}
