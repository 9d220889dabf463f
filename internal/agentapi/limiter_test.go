// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

// Neither the rush before a 429 nor the one after its pause is wider than the slots, and what waits for a slot when the pause begins
// waits for its end. Many 429s of one moment begin one pause, the longest of those that they name. (X20)
func TestLimiter_first429(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		const ms = time.Millisecond
		f := &fakeService{answers: slices.Concat(
			[]answer{limited(""), limited("60"), limited("30")}, slices.Repeat([]answer{limited("")}, maxConcurrent-3), []answer{accepted},
		)}
		for i, a := range f.answers {
			f.answers[i] = a.after(time.Second + time.Duration(i)*ms)
		}
		c := newFakeClient(t, f)
		var all sync.WaitGroup
		var recorders []*recorder
		call := func(project string) {
			r := new(recorder)
			recorders = append(recorders, r)
			all.Go(func() {
				if _, err := c.CreateJob(t.Context(), project, PostBody{Prompt: "x"}, r); err != nil {
					t.Errorf("%s: %v", project, err)
				}
			})
		}
		wantClaimed := func(want int) { // without an outcome
			t.Helper()
			synctest.Wait()
			for _, r := range recorders {
				r.mu.Lock()
				if len(r.calls) > 0 && r.calls[len(r.calls)-1] == "body" {
					want--
				}
				r.mu.Unlock()
			}
			if want != 0 {
				t.Errorf("%v: %d fewer are claimed", time.Since(start), want)
			}
		}
		for range 2*maxConcurrent + 2 {
			call("p") // the first are answered 429 at second 1, and so all are held until second 61
		}
		wantClaimed(maxConcurrent) // what waits for its turn is recorded nowhere
		time.Sleep(55 * time.Second)
		wantClaimed(0)
		call("other")
		all.Wait()

		got := map[time.Duration]int{}
		for _, at := range f.posts {
			got[at.Sub(start)]++
		}
		want := map[time.Duration]int{
			0:                                       maxConcurrent,
			55 * time.Second:                        1, // another project is not held
			61*time.Second + 1*ms:                   maxConcurrent,
			62*time.Second + (1+maxConcurrent)*ms:   maxConcurrent,
			63*time.Second + (1+2*maxConcurrent)*ms: 2,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("POSTs (-want +got):\n%s", diff)
		}
		if failures := c.postLimiter("p").growth; failures != 1 || f.dials != len(f.posts) {
			t.Errorf("%d pauses, want 1; %d connections for %d POSTs: some were opened in the pause", failures, f.dials, len(f.posts))
		}
	})
}

// A pause that begins while a POST connects holds it, and it is not claimed. One that begins during the claim
// withdraws that.
func TestLimiter_pauseBegins(t *testing.T) {
	t.Parallel()
	connecting := accepted
	connecting.dial = func(ctx context.Context) error { return sleep.For(ctx, time.Second) }
	for name, tc := range map[string]struct {
		first answer
		claim time.Duration // it takes
		calls []string
	}{
		"while it connects":   {connecting, 0, []string{"claim", "body", "accepted job_1"}},
		"while it is claimed": {accepted, 5 * time.Second, []string{"claim", "withdrawn", "claim", "body", "accepted job_1"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeService{answers: []answer{tc.first, limited("60"), accepted}} // the second one is refused at once
			c := newFakeClient(t, f)
			start := time.Now()
			var all sync.WaitGroup
			held := &recorder{latency: tc.claim}
			for _, r := range []Recorder{held, new(recorder)} {
				all.Go(func() {
					if _, err := c.CreateJob(t.Context(), "p", PostBody{Prompt: "x"}, r); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				})
				synctest.Wait()
			}
			all.Wait()
			if took := time.Since(start); took < time.Minute || len(f.posts) != 3 || !slices.Equal(held.calls, tc.calls) {
				t.Errorf("%s: %d POSTs in %v, want 3 in a minute; %q, want %q", name, len(f.posts), took, held.calls, tc.calls)
			}
		})
	}
}

// Without a Retry-After that helps, the pauses grow threefold, up to an hour: the documented limit is hourly. They shrink again
// after one that was enough: a service that refuses at random must not end in pauses of an hour. (C09)
func TestLimiter_growingPause(t *testing.T) {
	t.Parallel()
	enough := []answer{limited(""), limited(""), limited(""), accepted, limited(""), accepted}
	random := slices.Repeat([]answer{limited(""), limited(""), accepted}, 4)
	for name, tc := range map[string]struct {
		answers []answer
		pauses  []int // seconds at most, before each POST but the first, and half of them at least
	}{
		"no Retry-After": {[]answer{limited("")}, []int{10, 30, 90, 270, 810, 2430, 3600, 3600, 3600}},
		"Retry-After: 0": {[]answer{limited("0")}, []int{10, 30, 90}},
		"enough":         {enough, []int{10, 30, 90, 0, 30}},
		"at random":      {random, []int{10, 30, 0, 10, 30, 0, 10, 30, 0, 10, 30}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fakeService{answers: tc.answers}
				c := newFakeClient(t, f)
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(48*time.Hour, cancel)
				for ctx.Err() == nil && len(f.posts) <= len(tc.pauses) {
					if _, err := c.CreateJob(ctx, "p", PostBody{Prompt: "x"}, new(recorder)); err != nil && !errors.Is(err, context.Canceled) {
						t.Fatal(err)
					}
				}
				if len(f.posts) <= len(tc.pauses) {
					t.Fatalf("%d POSTs in two days, want more than %d", len(f.posts), len(tc.pauses))
				}
				for i, seconds := range tc.pauses {
					pause := time.Duration(seconds) * time.Second
					if got := f.posts[i+1].Sub(f.posts[i]); got < pause/2 || got > pause {
						t.Errorf("pause %d is %v, want %v to %v", i, got, pause/2, pause)
					}
				}
			})
		})
	}
}

// What was sent before a pause says nothing about its length, however late its response comes.
func TestLimiter_lateResponse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &limiter{base: 10 * time.Second, most: time.Hour}
		early := time.Now()
		for _, wait := range []time.Duration{time.Second, 10 * time.Second} {
			time.Sleep(wait)
			l.responded(&response{began: time.Now(), status: 429})
			l.responded(&response{began: early, status: 201})
		}
		if pause := l.pause(); pause < 15*time.Second {
			t.Errorf("the second pause is %v, want at least 15s", pause)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // the clock stands still
		date := func(d time.Duration) string { return time.Now().UTC().Add(d).Format(http.TimeFormat) }
		for name, tc := range map[string]struct {
			value, date string
			want        time.Duration
		}{
			"none":                  {},
			"seconds":               {value: "120", want: 2 * time.Minute},
			"fraction":              {value: "1.5", want: 1500 * time.Millisecond},
			"negative":              {value: "-5"},
			"other notations":       {value: "1e3"},
			"a unit":                {value: "30m"},
			"infinite":              {value: "Inf"},
			"huge":                  {value: "99999999999999999999", want: 365 * 24 * time.Hour},
			"date":                  {value: date(90 * time.Second), want: 90 * time.Second},
			"past date":             {value: date(-time.Hour)},
			"far date":              {value: "Fri, 31 Dec 9999 23:59:59 GMT", want: math.MaxInt64},
			"P12 date, clock ahead": {value: date(time.Hour + time.Minute), date: date(time.Hour), want: time.Minute},
		} {
			if got := retryAfter(http.Header{"Retry-After": {tc.value}, "Date": {tc.date}}); got != tc.want {
				t.Errorf("%s: %v, want %v", name, got, tc.want)
			}
		}
	})
}

// A pause is anywhere below its ceiling, so that many callers do not retry at once.
func TestBackoff(t *testing.T) {
	t.Parallel()
	for attempt, ceiling := range map[int]time.Duration{
		0: 500 * time.Millisecond, 1: time.Second, 4: 8 * time.Second, 5: retryCap, 63: retryCap, 1 << 40: retryCap,
	} {
		var pauses []time.Duration
		for range 500 {
			pauses = append(pauses, backoff(attempt))
		}
		if low, high := slices.Min(pauses), slices.Max(pauses); low <= 0 || low > ceiling/10 || high < ceiling*9/10 || high > ceiling+time.Millisecond {
			t.Errorf("backoff(%d) is between %v and %v, want between 0 and %v", attempt, low, high, ceiling)
		}
	}
}
