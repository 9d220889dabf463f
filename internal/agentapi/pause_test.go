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

func TestFirst429StopsTheProject(t *testing.T) {
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
		if f.maxBusy != gateWidth {
			t.Errorf("%d POSTs at once, want %d", f.maxBusy, gateWidth)
		}
	})
}

func TestFailedProbeIsFollowedByAnother(t *testing.T) {
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

func TestPauseBeyondTheDeadlineFailsAtOnce(t *testing.T) {
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

// TestOwn429BeyondTheDeadline: the call that meets the limit ends at once too.
func TestOwn429BeyondTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(int, *http.Request) (int, http.Header, string) {
			return 429, headers("Retry-After", "3600"), ""
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour-time.Second)
		defer cancel()
		start := time.Now()
		_, err := newFakeClient(t, f).SendMessage(ctx, "p", "job_1", "x")
		if !errors.Is(err, ErrPauseTooLong) || !errors.Is(err, ErrNotSent) || time.Since(start) != 0 || f.posts != 1 {
			t.Errorf("%v after %v and %d POSTs, want ErrPauseTooLong at once after 1", err, time.Since(start), f.posts)
		}
	})
}

// TestPauseGrows: without a Retry-After that helps, the pauses grow threefold.
func TestPauseGrows(t *testing.T) {
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
					skip++ // now, as told; from then on it has lied
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

// TestRetryAfterIsKept is row C09: how long a call waits for each form.
func TestRetryAfterIsKept(t *testing.T) {
	t.Parallel()
	synctestNow := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // where a fake clock starts
	at := func(d time.Duration) string { return synctestNow.Add(d).Format(http.TimeFormat) }
	for name, tc := range map[string]struct {
		header http.Header
		lo, hi time.Duration
	}{
		"none":               {headers(), postPause / 2, postPause},
		"seconds":            {headers("Retry-After", "90"), 90 * time.Second, 90 * time.Second},
		"date":               {headers("Retry-After", at(90*time.Second)), 90 * time.Second, 90 * time.Second},
		"date, clock ahead":  {headers("Retry-After", at(3690*time.Second), "Date", at(time.Hour)), 90 * time.Second, 90 * time.Second},
		"date, clock behind": {headers("Retry-After", at(-3510*time.Second), "Date", at(-time.Hour)), 90 * time.Second, 90 * time.Second},
		"past":               {headers("Retry-After", at(-time.Hour)), 0, 0},
		"negative":           {headers("Retry-After", "-90"), postPause / 2, postPause},
		"garbage":            {headers("Retry-After", "when ready"), postPause / 2, postPause},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fake{answer: func(n int, _ *http.Request) (int, http.Header, string) {
					if n == 1 {
						return 429, tc.header, ""
					}
					return 201, nil, record
				}}
				start := time.Now()
				_, err := newFakeClient(t, f).CreateJob(t.Context(), "p", "x")
				if took := time.Since(start); err != nil || took < tc.lo || took > tc.hi || f.posts != 2 {
					t.Errorf("%v after %v and %d POSTs, want the job after %v to %v and 2", err, took, f.posts, tc.lo, tc.hi)
				}
			})
		})
	}
}
