// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLimiter_first429(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := &fakeService{latency: time.Second}
		f.answer = func() answer {
			if time.Since(start) < 50*time.Second {
				return limited("60")
			}
			return accepted
		}
		c := newFakeClient(t, f)
		var all sync.WaitGroup
		call := func(project, prompt string) {
			all.Go(func() {
				if _, err := c.CreateJob(t.Context(), project, prompt, nil); err != nil {
					t.Errorf("%s: %v", prompt, err)
				}
			})
		}
		call("p", "0") // answered 429 at second 1, and so held until second 61
		time.Sleep(10 * time.Second)
		for i := 1; i <= 9; i++ {
			call("p", fmt.Sprint(i))
		}
		time.Sleep(45 * time.Second) // the service would accept again
		call("other", "other")
		all.Wait()

		got := map[time.Duration]int{}
		for _, p := range f.posts {
			got[p.at.Sub(start)]++
		}
		want := map[time.Duration]int{
			0:                1,
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
	for _, value := range []string{"", "soon", "-1", "0"} {
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
					if got := f.posts[i+skip].at.Sub(f.posts[i+skip-1].at); got < pause/2 || got > pause {
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
			if pause := f.posts[i].at.Sub(f.posts[i-1].at); pause < longest/2 || pause > longest {
				t.Errorf("the pause before POST %d is %v, want %v to %v", i, pause, longest/2, longest)
			}
		}
	})
}

// Many 429s of one moment begin one pause, the longest of those that they name.
func TestLimiter_late429s(t *testing.T) {
	t.Parallel()
	for pause, want := range map[time.Duration]struct{ least, most time.Duration }{
		time.Minute: {time.Minute + 49*time.Millisecond, time.Minute + 49*time.Millisecond},
		0:           {getPause / 2, getPause},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(getPause, math.MaxInt64)
			var sent []time.Time
			for range 50 {
				at, err := l.acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				sent = append(sent, at)
				time.Sleep(time.Millisecond)
			}
			start := time.Now()
			for i, at := range sent {
				time.Sleep(time.Duration(min(i, 1)) * time.Millisecond)
				l.limited(at, pause, pause != 0)
			}
			_, err := l.acquire(t.Context())
			if took := time.Since(start); err != nil || took < want.least || took > want.most || l.failures > 1 {
				t.Errorf("after fifty 429s, %v: the next call went after %v, want %v to %v; %d pauses", err, took, want.least, want.most, l.failures)
			}
		})
	}
}

// panics is a recorder that panics in one of its methods.
type panics string

func (p panics) Sending() error  { p.in("Sending"); return nil }
func (p panics) Accepted(string) { p.in("Accepted") }
func (p panics) Withdrawn()      {}
func (p panics) Unknown()        {}

func (p panics) in(method string) {
	if string(p) == method {
		panic(method)
	}
}

// Calls that panic free their slots: four of them would stall a project for good. Red
// without: the deferred release.
func TestLimiter_panic(t *testing.T) {
	t.Parallel()
	for _, method := range []panics{"Sending", "Accepted"} {
		synctest.Test(t, func(t *testing.T) {
			c := newFakeClient(t, &fakeService{answers: []answer{accepted}})
			for range maxConcurrent {
				func() {
					defer func() { _ = recover() }()
					_, err := c.CreateJob(t.Context(), "p", "x", method)
					t.Errorf("%s does not panic: %v", method, err)
				}()
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := c.CreateJob(ctx, "p", "x", nil); err != nil {
				t.Errorf("after panics in %s: %v", method, err)
			}
		})
	}
}
