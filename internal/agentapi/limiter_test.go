// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Neither the rush before a 429 nor the one after its pause is wider than the slots, and
// what waits for a slot when the pause begins waits for its end. Many 429s of one moment
// begin one pause, the longest of those that they name. (X20)
func TestLimiter_first429(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := new(fakeService)
		const ms = time.Millisecond
		f.answers = append(f.answers, limited(""), limited("60"), limited("30"))
		f.answers = append(f.answers, slices.Repeat([]answer{limited("")}, maxConcurrent-3)...)
		f.answers = append(f.answers, accepted)
		for i, a := range f.answers {
			f.answers[i] = a.after(time.Second + time.Duration(i)*ms)
		}
		c := newFakeClient(t, f)
		var all sync.WaitGroup
		var recorded atomic.Int64
		call := func(project string) {
			all.Go(func() {
				if _, err := c.CreateJob(t.Context(), project, NewJob{Prompt: "x"}, counter{&recorded, 0}); err != nil {
					t.Errorf("%s: %v", project, err)
				}
			})
		}
		wantRecorded := func(want int) {
			t.Helper()
			synctest.Wait()
			if got := int(recorded.Load()); got != want {
				t.Errorf("%v: %d are recorded without an outcome, want %d", time.Since(start), got, want)
			}
		}
		for range 2*maxConcurrent + 2 {
			call("p") // the first are answered 429 at second 1, and so all are held until second 61
		}
		wantRecorded(maxConcurrent) // what waits for its turn is recorded nowhere
		time.Sleep(55 * time.Second)
		wantRecorded(0)
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
		if failures := c.postLimiter("p").growth; failures != 1 {
			t.Errorf("%d pauses, want 1", failures)
		}
	})
}

// A pause that begins while a POST is being recorded holds it, too. Red without: isPaused in stopped.
func TestLimiter_pauseWhileRecording(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{answers: []answer{accepted, limited("60"), accepted}} // the first POST is recorded when the second is refused
		c := newFakeClient(t, f)
		start := time.Now()
		var all sync.WaitGroup
		for _, latency := range []time.Duration{5 * time.Second, 0} {
			all.Go(func() {
				if _, err := c.CreateJob(t.Context(), "p", NewJob{Prompt: "x"}, counter{new(atomic.Int64), latency}); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		for _, at := range f.posts[1:] {
			if at.Sub(start) < time.Minute {
				t.Errorf("a POST after %v, in the pause", at.Sub(start))
			}
		}
		if len(f.posts) != 3 {
			t.Errorf("%d POSTs, want 3", len(f.posts))
		}
	})
}

// counter counts the records without an outcome. Each takes its time.
type counter struct {
	*atomic.Int64

	latency time.Duration
}

func (c counter) Claim() error      { time.Sleep(c.latency); c.Add(1); return nil }
func (c counter) BeforeBody() error { return nil }
func (c counter) Accepted(string)   { c.Add(-1) }
func (c counter) Withdrawn()        { c.Add(-1) }
func (c counter) Unknown()          { c.Add(-1) }

func TestLimiter_pauseBeyondTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := &fakeService{answers: []answer{limited("10"), limited("3600"), accepted}}
		c := newFakeClient(t, f)
		var all sync.WaitGroup
		call := func(name string, limit, want time.Duration, is error) {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				_, err := c.CreateJob(ctx, "p", NewJob{Prompt: name}, new(recorder))
				if !errors.Is(err, is) || is != nil && !errors.Is(err, ErrNotSent) {
					t.Errorf("%s: %v, want %v", name, err, is)
				}
				if at := time.Since(start); at != want {
					t.Errorf("%s ended at %v, want %v", name, at, want)
				}
			})
			synctest.Wait()
		}
		call("patient", 2*time.Hour, 3610*time.Second, nil)
		call("shorter than the first pause", 5*time.Second, 0, ErrPauseTooLong)
		time.Sleep(11 * time.Second) // not while the first pause ends: two calls would be sent at once
		call("shorter than the second", time.Minute, 11*time.Second, ErrPauseTooLong)
		call("longer", 3*time.Hour, 3610*time.Second, nil)
		all.Wait()
		if len(f.posts) != 4 {
			t.Errorf("%d POSTs, want two answered 429 and two accepted", len(f.posts))
		}
	})
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
					if _, err := c.CreateJob(ctx, "p", NewJob{Prompt: "x"}, new(recorder)); err != nil && !errors.Is(err, context.Canceled) {
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
