// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Neither the rush before a 429 nor the one after its pause is wider than the slots, and
// what waits for a slot when the pause begins waits for its end.
func TestLimiter_first429(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		refused := slices.Repeat([]answer{limited("60")}, maxConcurrent)
		f := &fakeService{latency: time.Second, answers: append(refused, accepted)}
		c := newFakeClient(t, f)
		var all sync.WaitGroup
		call := func(project string) {
			all.Go(func() {
				if _, err := c.CreateJob(t.Context(), project, "x", nil); err != nil {
					t.Errorf("%s: %v", project, err)
				}
			})
		}
		for range 2*maxConcurrent + 2 {
			call("p") // the first are answered 429 at second 1, and so all are held until second 61
		}
		time.Sleep(55 * time.Second)
		call("other")
		all.Wait()

		got := map[time.Duration]int{}
		for _, at := range f.posts {
			got[at.Sub(start)]++
		}
		want := map[time.Duration]int{
			0:                maxConcurrent,
			55 * time.Second: 1, // another project is not held
			61 * time.Second: maxConcurrent,
			62 * time.Second: maxConcurrent,
			63 * time.Second: 2,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("POSTs (-want +got):\n%s", diff)
		}
	})
}

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
				_, err := c.CreateJob(ctx, "p", name, nil)
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

// Without a Retry-After that helps, the pauses grow threefold.
func TestLimiter_growingPause(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"", "0"} {
		t.Run("Retry-After "+value, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fakeService{answers: []answer{limited(value)}}
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(48*time.Hour, cancel)
				_, err := newFakeClient(t, f).CreateJob(ctx, "p", "x", nil)
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				pauses := []int{10, 30, 90, 270, 810, 2430, 7290, 7290, 7290, 7290}
				skip := 1
				if value == "0" {
					skip++ // at once, as requested; from then on it is not believed
				}
				if len(f.posts) < len(pauses)+skip {
					t.Fatalf("%d POSTs in two days, want at least %d", len(f.posts), len(pauses)+skip)
				}
				for i, seconds := range pauses {
					pause := time.Duration(seconds) * time.Second
					if got := f.posts[i+skip].Sub(f.posts[i+skip-1]); got < pause/2 || got > pause {
						t.Errorf("pause %d is %v, want %v to %v", i, got, pause/2, pause)
					}
				}
			})
		})
	}
}

// The next pause starts near the length of the one that was enough.
func TestLimiter_nextPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{answers: []answer{limited(""), limited(""), limited(""), accepted, limited(""), accepted}}
		c := newFakeClient(t, f)
		for range 2 {
			if _, err := c.CreateJob(t.Context(), "p", "x", nil); err != nil {
				t.Fatal(err)
			}
		}
		const longest = 90 * time.Second
		for _, i := range []int{3, 5} {
			if pause := f.posts[i].Sub(f.posts[i-1]); pause < longest/2 || pause > longest {
				t.Errorf("the pause before POST %d is %v, want %v to %v", i, pause, longest/2, longest)
			}
		}
	})
}

// Many 429s of one moment begin one pause, the longest of those that they name.
func TestLimiter_late429s(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sent := time.Now()
		time.Sleep(time.Second)
		named, unnamed := newLimiter(getPause, 1), newLimiter(getPause, 1)
		for _, seconds := range []time.Duration{60, 90, 30} {
			named.limited(sent, seconds*time.Second, true)
			unnamed.limited(sent, 0, false)
		}
		if named.pause() != 90*time.Second || unnamed.pause() > getPause || unnamed.failures != 1 {
			t.Errorf("the pauses are %v and %v, want 1m30s and up to %v", named.pause(), unnamed.pause(), getPause)
		}
	})
}

// Calls that panic free their turns: else they would stall a project for good. Red
// without: the deferred release.
func TestLimiter_panic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newFakeClient(t, &fakeService{answers: []answer{accepted}}, func(config *Config) {
			config.Log = func(context.Context, map[string]any) { panic("a bug") }
		})
		for range maxRecorded {
			func() {
				defer func() { _ = recover() }()
				_, err := c.CreateJob(t.Context(), "p", "x", nil)
				t.Errorf("no panic: %v", err)
			}()
		}
		c.config.Log = nil
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := c.CreateJob(ctx, "p", "x", nil); err != nil {
			t.Error(err)
		}
	})
}
