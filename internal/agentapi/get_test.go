// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// outcome is one scripted answer to a GET.
type outcome struct {
	status int // 0: the connection fails
	header http.Header
	body   string
}

func scripted(outcomes []outcome) *fake {
	f := new(fake)
	f.dial = func(_ context.Context, n int) error {
		if outcomes[min(n, len(outcomes))-1].status == 0 {
			return errRefusedConnection
		}
		return nil
	}
	f.answer = func(int, *http.Request) (int, http.Header, string) {
		o := outcomes[min(f.dials, len(outcomes))-1]
		return o.status, o.header, o.body
	}
	return f
}

var whole = outcome{status: 200, body: record}

// What may pass is tried again, with jittered pauses, or after the one that was asked for.
func TestGetJob_triesAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault  outcome
		lo, hi time.Duration
	}{
		"connection":       {outcome{}, time.Millisecond, 3500 * time.Millisecond},
		"503":              {outcome{status: 503}, time.Millisecond, 3500 * time.Millisecond},
		"429":              {outcome{status: 429}, 6500 * time.Millisecond, 13 * time.Second},
		"503, asks for it": {outcome{503, headers("Retry-After", "30"), ""}, 90 * time.Second, 90 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			took := map[time.Duration]bool{}
			for range 5 {
				synctest.Test(t, func(t *testing.T) {
					f := scripted([]outcome{tc.fault, tc.fault, tc.fault, whole})
					start := time.Now()
					job, err := newFakeClient(t, f).GetJob(t.Context(), "p", "job_1")
					if since := time.Since(start); err != nil || job.ID != "job_1" || f.dials != 4 || since < tc.lo || since > tc.hi {
						t.Errorf("%v, %v after %d requests in %v, want the job after 4", job, err, f.dials, since)
					}
					took[time.Since(start)] = true
				})
			}
			if len(took) < 2 && tc.lo < tc.hi {
				t.Errorf("five calls each took %v: no jitter", took)
			}
		})
	}
}

// What cannot pass ends a call with one request, and PollJob leaves the rest to its caller.
func TestGet_oneRequest(t *testing.T) {
	t.Parallel()
	refused := outcome{404, headers("Retry-After", "7"), "{}"}
	for name, tc := range map[string]struct {
		fault outcome
		call  func(*Client, context.Context, string, string) (*Job, error)
		is    error
		after time.Duration
	}{
		"GetJob, final":        {refused, (*Client).GetJob, ErrNotFound, 7 * time.Second},
		"PollJob, final":       {refused, (*Client).PollJob, ErrNotFound, 7 * time.Second},
		"PollJob, connection":  {outcome{}, (*Client).PollJob, ErrUnavailable, 0},
		"PollJob, 503":         {outcome{503, headers("Retry-After", "7"), ""}, (*Client).PollJob, ErrUnavailable, 7 * time.Second},
		"PollJob, no response": {outcome{200, headers("Retry-After", "7"), ""}, (*Client).PollJob, ErrUnavailable, 0},
	} {
		f := scripted([]outcome{tc.fault})
		_, err := tc.call(newFakeClient(t, f), t.Context(), "p", "job_1")
		failure, _ := errors.AsType[*Error](err)
		if failure == nil || !errors.Is(err, tc.is) || failure.RetryAfter != tc.after || f.dials != 1 {
			t.Errorf("%s: %+v after %d requests, want %v after 1", name, failure, f.dials, tc.is)
		}
	}
}

func TestGet_endsWithItsContext(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer outcome
		call   func(*Client, context.Context, string, string) (*Job, error)
		ends   time.Duration
		is     error
	}{
		"troubles":           {outcome{status: 500, body: `{"error":"why"}`}, (*Client).GetJob, time.Minute, ErrUnavailable},
		"no connection":      {outcome{}, (*Client).GetJob, time.Minute, errRefusedConnection},
		"pause, too long":    {outcome{429, headers("Retry-After", "3600"), ""}, (*Client).GetJob, 0, ErrPauseTooLong},
		"503, asks too much": {outcome{503, headers("Retry-After", "3600"), ""}, (*Client).GetJob, time.Minute, ErrUnavailable},
		"poll, too long":     {outcome{429, headers("Retry-After", "61"), ""}, (*Client).PollJob, 0, ErrPauseTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				start := time.Now()
				_, err := tc.call(newFakeClient(t, scripted([]outcome{tc.answer})), ctx, "p", "job_1")
				if !errors.Is(err, ErrUnavailable) || !errors.Is(err, tc.is) || time.Since(start) != tc.ends {
					t.Errorf("%v after %v, want %v after %v", err, time.Since(start), tc.is, tc.ends)
				}
			})
		})
	}
}

// A GET, unlike a POST, is cancelled in flight.
func TestGet_cancelledInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := scripted([]outcome{whole})
		f.latency = time.Hour
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		_, err := newFakeClient(t, f).GetJob(ctx, "p", "job_1")
		if !errors.Is(err, context.Canceled) || time.Since(start) != time.Second {
			t.Errorf("%v after %v, want the cancellation after 1s", err, time.Since(start))
		}
	})
}
