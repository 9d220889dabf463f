// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"errors"
	"fmt"
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
			synctest.Wait() // so that the order of the calls is known
		}
		call("p", "0") // answered 429 at second 1, and so held until second 61
		time.Sleep(10 * time.Second)
		for i := 1; i <= 9; i++ {
			call("p", fmt.Sprint(i))
		}
		time.Sleep(45 * time.Second) // the service would accept again
		call("other", "other")
		all.Wait()

		// One probe, then four at once, in the order of the calls.
		got := map[time.Duration][]string{}
		for _, p := range f.posts {
			at := p.at.Sub(start)
			got[at] = append(got[at], p.body[11:len(p.body)-2])
			slices.Sort(got[at]) // those of one moment are in no order
		}
		want := map[time.Duration][]string{
			0:                {"0"},
			55 * time.Second: {"other"}, // another project is not held
			61 * time.Second: {"0"},
			62 * time.Second: {"1", "2", "3", "4"},
			63 * time.Second: {"5", "6", "7", "8"},
			64 * time.Second: {"9"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("POSTs (-want +got):\n%s", diff)
		}
	})
}

func TestLimiter_failedProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{latency: time.Second, answers: []answer{limited("10"), {status: 500}, accepted}}
		c := newFakeClient(t, f)
		failures := make(chan error, 6)
		for range cap(failures) {
			go func() {
				_, err := c.CreateJob(t.Context(), "p", "x", nil)
				failures <- err
			}()
			time.Sleep(2 * time.Second)
		}
		unknown := 0
		for range cap(failures) {
			if err := <-failures; errors.Is(err, ErrUnknownOutcome) {
				unknown++
			} else if err != nil {
				t.Error(err)
			}
		}
		if unknown != 1 || len(f.posts) != 7 {
			t.Errorf("%d unknown outcomes and %d POSTs, want 1 and 7", unknown, len(f.posts))
		}
		if f.posts[2].at.Equal(f.posts[3].at) {
			t.Error("after a probe that failed two calls went at once")
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
		call("queued, shorter than the second", time.Minute, 10*time.Second, ErrPauseTooLong)
		call("queued, longer", 3*time.Hour, 3610*time.Second, nil)
		time.Sleep(time.Minute)
		call("later, shorter", time.Minute, time.Minute, ErrPauseTooLong)
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
