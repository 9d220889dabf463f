// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// limitedUntil answers 429 until the end given, and accepts from then on.
func limitedUntil(end time.Time, retryAfter string) func(int, *http.Request) (int, http.Header, string) {
	return func(int, *http.Request) (int, http.Header, string) {
		if time.Now().Before(end) {
			return 429, headers("Retry-After", retryAfter), ""
		}
		return 201, nil, record
	}
}

func TestLimiter_first429(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := &fake{latency: time.Second, answer: limitedUntil(start.Add(50*time.Second), "60")}
		c := newFakeClient(t, f)
		var all sync.WaitGroup
		call := func(ctx context.Context, project, prompt string) {
			all.Go(func() {
				if _, err := c.CreateJob(ctx, project, prompt); err != nil {
					t.Errorf("%s: %v", prompt, err)
				}
			})
			synctest.Wait() // so that the order of the calls is known
		}
		call(t.Context(), "p", "0") // answered 429 at second 1, and so held until second 61
		time.Sleep(10 * time.Second)
		for i := 1; i <= 9; i++ {
			call(t.Context(), "p", fmt.Sprint(i))
		}
		time.Sleep(20 * time.Second)
		if got := f.soFar(); len(got) != 1 {
			t.Errorf("%d POSTs in the pause, want the one that was answered 429", len(got))
		}
		time.Sleep(25 * time.Second) // second 55: the service would accept again
		call(t.Context(), "other", "other")
		if got := f.soFar(); len(got) != 2 || got[1].body != `{"prompt":"other"}` {
			t.Errorf("another project was held: %v", got)
		}
		all.Wait()

		// One probe, then four at once, in the order of the calls.
		type second struct {
			At   time.Duration
			Sent []string
		}
		var got []second
		for _, s := range f.sent {
			at := s.at.Sub(start)
			if len(got) == 0 || got[len(got)-1].At != at {
				got = append(got, second{At: at})
			}
			last := &got[len(got)-1]
			last.Sent = append(last.Sent, s.body[11:len(s.body)-2])
			slices.Sort(last.Sent) // those of one moment are in no order
		}
		want := []second{
			{0, []string{"0"}},
			{55 * time.Second, []string{"other"}},
			{61 * time.Second, []string{"0"}},
			{62 * time.Second, []string{"1", "2", "3", "4"}},
			{63 * time.Second, []string{"5", "6", "7", "8"}},
			{64 * time.Second, []string{"9"}},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("POSTs (-want +got):\n%s", diff)
		}
		if f.maxBusy != maxConcurrent {
			t.Errorf("%d POSTs at once, want %d", f.maxBusy, maxConcurrent)
		}
	})
}

func TestLimiter_failedProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{latency: time.Second, answer: func(n int, _ *http.Request) (int, http.Header, string) {
			switch n {
			case 1:
				return 429, headers("Retry-After", "10"), ""
			case 2:
				return 500, nil, ""
			}
			return 201, nil, record
		}}
		c := newFakeClient(t, f)
		var all sync.WaitGroup
		var mu sync.Mutex
		unknown := 0
		for range 6 {
			all.Go(func() {
				_, err := c.CreateJob(t.Context(), "p", "x")
				mu.Lock()
				defer mu.Unlock()
				if errors.Is(err, ErrUnknownOutcome) {
					unknown++
				} else if err != nil {
					t.Error(err)
				}
			})
			time.Sleep(2 * time.Second)
		}
		all.Wait()
		if unknown != 1 || f.posts != 7 {
			t.Errorf("%d unknown outcomes and %d POSTs, want 1 and 7", unknown, f.posts)
		}
		if f.sent[2].at.Equal(f.sent[3].at) {
			t.Error("after a probe that failed two calls went at once")
		}
	})
}

func TestLimiter_pauseBeyondTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := &fake{answer: func(n int, _ *http.Request) (int, http.Header, string) {
			switch n {
			case 1:
				return 429, headers("Retry-After", "10"), ""
			case 2:
				return 429, headers("Retry-After", "3600"), ""
			}
			return 201, nil, record
		}}
		c := newFakeClient(t, f)
		var all sync.WaitGroup
		call := func(name string, limit, want time.Duration, is error) {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				_, err := c.CreateJob(ctx, "p", name)
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
		if f.posts != 4 {
			t.Errorf("%d POSTs, want two answered 429 and two accepted", f.posts)
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
				f := &fake{answer: func(int, *http.Request) (int, http.Header, string) {
					return 429, headers("Retry-After", value), ""
				}}
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(48*time.Hour, cancel)
				_, err := newFakeClient(t, f).CreateJob(ctx, "p", "x")
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				pauses := []int{10, 30, 90, 270, 810, 2430, 7290, 7290, 7290, 7290}
				skip := 1
				if value == "0" {
					skip++ // at once, as requested; from then on it is not believed
				}
				if len(f.sent) < len(pauses)+skip {
					t.Fatalf("%d POSTs in two days, want at least %d", len(f.sent), len(pauses)+skip)
				}
				for i, seconds := range pauses {
					pause := time.Duration(seconds) * time.Second
					if got := f.sent[i+skip].at.Sub(f.sent[i+skip-1].at); got < pause/2 || got > pause {
						t.Errorf("pause %d is %v, want %v to %v", i, got, pause/2, pause)
					}
				}
			})
		})
	}
}
