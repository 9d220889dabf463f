// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What was not sent is sent again for a minute, or until its context ends.
func TestCreateJob_notSent(t *testing.T) {
	t.Parallel()
	for limit, want := range map[time.Duration]time.Duration{5 * time.Second: 5 * time.Second, time.Hour: retryLimit} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeService{answers: []answer{{}}}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			start := time.Now()
			_, err := newFakeClient(t, f).CreateJob(ctx, "p", "x", nil)
			lasted := time.Since(start)
			if !errors.Is(err, ErrNotSent) || !errors.Is(err, errConnRefused) || lasted > want || lasted < want-retryCap {
				t.Errorf("%v after %v, want the refused connection after %v", err, lasted, want)
			}
			if len(f.posts) != 0 || limit > want && (f.dials < 8 || f.dials > 60) {
				t.Errorf("%d POSTs and %d dials, want none and 8 to 60", len(f.posts), f.dials)
			}
		})
	}
}

// A call can be cancelled until there is a connection, even when the dial hangs.
// From then on its response is awaited (X01), for the request timeout and no longer.
func TestCreateJob_cancelled(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	tooLate := func(ctx context.Context) error { <-ctx.Done(); return nil }
	accepting := []answer{accepted}
	for name, tc := range map[string]struct {
		cancel       time.Duration
		grace        time.Duration // 0: none
		service      *fakeService
		is           error
		took         time.Duration
		dials, posts int
	}{
		"before the call":                    {0, 0, &fakeService{answers: accepting}, ErrNotSent, 0, 0, 0},
		"while dialling":                     {time.Second, 0, &fakeService{answers: accepting, dial: hang}, ErrNotSent, time.Second, 1, 0},
		"as the connection comes":            {time.Second, 0, &fakeService{answers: accepting, dial: tooLate}, ErrNotSent, time.Second, 1, 0},
		"in a pause":                         {time.Minute, 0, &fakeService{answers: []answer{limited("3600")}}, ErrNotSent, time.Minute, 1, 1},
		"in flight, answered":                {time.Second, 0, &fakeService{answers: accepting, latency: 4 * time.Second}, nil, 4 * time.Second, 1, 1},
		"in flight, without response":        {time.Second, 0, &fakeService{answers: accepting, latency: time.Hour}, ErrUnknownOutcome, time.Minute, 1, 1},
		"in flight, response in time":        {time.Second, 5 * time.Second, &fakeService{answers: accepting, latency: 4 * time.Second}, nil, 4 * time.Second, 1, 1},
		"in flight, response too late":       {time.Second, 5 * time.Second, &fakeService{answers: accepting, latency: time.Hour}, errStopped, 6 * time.Second, 1, 1},
		"in flight, timeout, then cancelled": {20 * time.Second, 5 * time.Second, &fakeService{answers: accepting, latency: time.Hour}, errStopped, 25 * time.Second, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cause := errors.New("cause")
				ctx, cancel := context.WithCancelCause(t.Context())
				if time.AfterFunc(tc.cancel, func() { cancel(cause) }); tc.cancel == 0 {
					cancel(cause)
				}
				called := ctx
				if tc.grace > 0 { // a deadline of the call ends no grace
					var end context.CancelFunc
					called, end = context.WithTimeout(WithGrace(ctx, tc.grace), 10*time.Second)
					defer end()
				}
				start := time.Now()
				job, err := newFakeClient(t, tc.service).CreateJob(called, "p", "x", nil)
				if !errors.Is(err, tc.is) || (job != nil) != (tc.is == nil) || errors.Is(err, cause) != errors.Is(tc.is, ErrNotSent) || time.Since(start) != tc.took {
					t.Errorf("%v, %v after %v, want %v after %v", job, err, time.Since(start), tc.is, tc.took)
				}
				if tc.service.dials != tc.dials || len(tc.service.posts) != tc.posts {
					t.Errorf("%d dials and %d POSTs, want %d and %d", tc.service.dials, len(tc.service.posts), tc.dials, tc.posts)
				}
			})
		})
	}
}

// An error does not blame an earlier 429 for a response that was lost, but says that
// what was not sent later was refused before.
func TestCreateJob_afterLimit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		last    answer
		latency time.Duration
		is      error
		status  int
	}{
		"response lost": {accepted, time.Hour, ErrUnknownOutcome, 0},
		"not sent":      {answer{}, 0, ErrNotSent, 429},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeService{answers: []answer{limited("1"), tc.last}}
			f.dial = func(context.Context) error {
				if f.dials == 2 {
					f.latency = tc.latency
				}
				return nil
			}
			_, err := newFakeClient(t, f).CreateJob(t.Context(), "p", "x", nil)
			failure, ok := errors.AsType[*Error](err)
			if !ok || !errors.Is(err, tc.is) || failure.StatusCode != tc.status {
				t.Errorf("%s: %v, want %v with status %d", name, err, tc.is, tc.status)
			}
		})
	}
}

// A dial that hangs for the request timeout counts as not sent, and is tried again.
func TestCreateJob_hangingDial(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{answers: []answer{accepted}}
		f.dial = func(ctx context.Context) error {
			if f.dials == 1 {
				<-ctx.Done()
			}
			return ctx.Err()
		}
		job, err := newFakeClient(t, f).CreateJob(t.Context(), "p", "x", nil)
		if err != nil || job.ID != "job_1" || len(f.posts) != 1 || f.dials != 2 {
			t.Errorf("%v, %v, %d POSTs, %d dials, want the job by the second dial", job, err, len(f.posts), f.dials)
		}
	})
}

// recorder writes down its calls.
type recorder struct {
	refuses error
	calls   []string
}

func (r *recorder) Sending() error {
	r.calls = append(r.calls, "sending")
	return r.refuses
}
func (r *recorder) Accepted(id string) { r.calls = append(r.calls, "answered "+id) }
func (r *recorder) Withdrawn()         { r.calls = append(r.calls, "withdrawn") }
func (r *recorder) Unknown()           { r.calls = append(r.calls, "unknown") }

// What is recorded is recorded before it is logged: a panic of the log loses nothing.
func TestCreateJob_recorder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{answers: []answer{{}, limited("1"), accepted, {status: 500, body: "EOF"}, {status: 400}}}
		r := &recorder{refuses: errors.New("not now")}
		c := newFakeClient(t, f, func(config *Config) {
			config.Log = func(_ context.Context, fields map[string]any) {
				r.calls = append(r.calls, fmt.Sprint("logged ", fields["status"], ", ", fields["error"]))
			}
		})
		for range maxRecorded + 1 { // a turn that was not given back would be missed
			if _, err := c.CreateJob(t.Context(), "p", "x", r); !errors.Is(err, ErrNotSent) || !errors.Is(err, r.refuses) {
				t.Fatalf("%v, want ErrNotSent and the recorder's error", err)
			}
		}
		r.calls, r.refuses = nil, nil
		for _, want := range []error{nil, ErrUnknownOutcome, ErrRefused} {
			if _, err := c.CreateJob(t.Context(), "p", "x", r); !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		}
		want := []string{
			"sending", "withdrawn", "logged 0, no connection to the service: dial: connection refused",
			"sending", "withdrawn", "logged 429, <nil>",
			"sending", "answered job_1", "logged 201, <nil>",
			"sending", "unknown", "logged 500, create job: the service responded with 500 Internal Server Error: EOF",
			"sending", "withdrawn", "logged 400, <nil>",
		}
		if diff := cmp.Diff(want, r.calls); diff != "" || len(f.posts) != 4 {
			t.Errorf("%d POSTs, want 4; calls (-want +got):\n%s", len(f.posts), diff)
		}
	})
}
