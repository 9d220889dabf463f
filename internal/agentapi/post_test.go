// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"errors"
	"net"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func accept(int, *http.Request) (int, http.Header, string) { return 201, nil, record }

var errRefusedConnection error = &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}

// TestNotSentIsTriedForAMinute is row C01 to its end.
func TestNotSentIsTriedForAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{dial: func(context.Context, int) error { return errRefusedConnection }, answer: accept}
		c := newFakeClient(t, f)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		_, err := c.CreateJob(ctx, "p", "x")
		if !errors.Is(err, ErrNotSent) || !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%v, want ErrNotSent", err)
		}
		if lasted := time.Since(start); lasted > retryLimit || lasted < retryLimit-retryCap {
			t.Errorf("tried for %v, want about %v", lasted, retryLimit)
		}
		if f.posts != 0 || f.dials < 8 || f.dials > 60 {
			t.Errorf("%d POSTs and %d dials, want none and 8 to 60", f.posts, f.dials)
		}
	})
}

func TestNotSentEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{dial: func(context.Context, int) error { return errRefusedConnection }, answer: accept}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		_, err := newFakeClient(t, f).CreateJob(ctx, "p", "x")
		if !errors.Is(err, ErrNotSent) || !errors.Is(err, syscall.ECONNREFUSED) || time.Since(start) != 5*time.Second {
			t.Errorf("%v after %v, want the refused connection after 5s", err, time.Since(start))
		}
		if f.posts != 0 {
			t.Errorf("%d POSTs, want none", f.posts)
		}
	})
}

func TestServiceComesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := &fake{answer: accept, dial: func(context.Context, int) error {
			if time.Since(start) < 40*time.Second {
				return &net.DNSError{Err: "no such host", Name: "service.invalid"}
			}
			return nil
		}}
		job, err := newFakeClient(t, f).CreateJob(t.Context(), "p", "x")
		if err != nil || job.ID != "job_1" || f.posts != 1 {
			t.Errorf("%v, %v and %d POSTs, want the job and 1", job, err, f.posts)
		}
	})
}

func TestCancelledBeforeThePOST(t *testing.T) {
	t.Parallel()
	f := &fake{answer: accept}
	cause := errors.New("cause")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, err := newFakeClient(t, f).CreateJob(ctx, "p", "x")
	if !errors.Is(err, ErrNotSent) || !errors.Is(err, cause) || f.dials != 0 {
		t.Errorf("%v and %d dials, want ErrNotSent and none", err, f.dials)
	}
}

func TestCancelledInAPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(int, *http.Request) (int, http.Header, string) {
			return 429, headers("Retry-After", "3600"), ""
		}}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		start := time.Now()
		_, err := newFakeClient(t, f).CreateJob(ctx, "p", "x")
		if !errors.Is(err, ErrNotSent) || !errors.Is(err, context.Canceled) || time.Since(start) != time.Minute {
			t.Errorf("%v after %v, want ErrNotSent after 1m", err, time.Since(start))
		}
		if f.posts != 1 {
			t.Errorf("%d POSTs, want 1", f.posts)
		}
	})
}

// TestCancelledWhileDialling: as long as there is no connection a call can be
// given up, even when the dial hangs.
func TestCancelledWhileDialling(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: accept, dial: func(ctx context.Context, _ int) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		_, err := newFakeClient(t, f).CreateJob(ctx, "p", "x")
		if !errors.Is(err, ErrNotSent) || !errors.Is(err, context.Canceled) || time.Since(start) != time.Second {
			t.Errorf("%v after %v, want ErrNotSent after 1s", err, time.Since(start))
		}
		if f.posts != 0 {
			t.Errorf("%d POSTs, want none", f.posts)
		}
	})
}

// TestConnectionComesTooLate: a connection that comes in the moment of the
// cancellation carries nothing.
func TestConnectionComesTooLate(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	f := &fake{answer: accept, dial: func(ctx context.Context, _ int) error {
		cancel()
		<-ctx.Done()
		return nil
	}}
	_, err := newFakeClient(t, f).CreateJob(ctx, "p", "x")
	if !errors.Is(err, ErrNotSent) || !errors.Is(err, context.Canceled) || f.posts != 0 {
		t.Errorf("%v and %d POSTs, want ErrNotSent and none", err, f.posts)
	}
}

// TestHangingDialEndsWithTheRequestTimeout: it counts as not sent, and is tried again.
func TestHangingDialEndsWithTheRequestTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: accept, dial: func(ctx context.Context, n int) error {
			if n > 1 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}}
		job, err := newFakeClient(t, f).CreateJob(t.Context(), "p", "x")
		if err != nil || job.ID != "job_1" || f.posts != 1 || f.dials != 2 {
			t.Errorf("%v, %v, %d POSTs, %d dials, want the job by the second dial", job, err, f.posts, f.dials)
		}
	})
}

// TestAnswerIsAwaitedAfterACancel: X01, a POST under way outlives its context,
// for the request timeout and no longer.
func TestAnswerIsAwaitedAfterACancel(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		latency, wait time.Duration
		is            error
	}{
		"answered":   {4 * time.Second, 4 * time.Second, nil},
		"unanswered": {time.Hour, time.Minute, ErrUnknownOutcome},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fake{answer: accept, latency: tc.latency}
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				start := time.Now()
				job, err := newFakeClient(t, f).CreateJob(ctx, "p", "x")
				if !errors.Is(err, tc.is) || (job != nil) != (tc.is == nil) || time.Since(start) != tc.wait {
					t.Errorf("%v, %v after %v, want %v after %v", job, err, time.Since(start), tc.is, tc.wait)
				}
				if f.posts != 1 {
					t.Errorf("%d POSTs, want 1", f.posts)
				}
			})
		})
	}
}

// TestAnswerIsAwaitedOverTCP is the same with a real connection, and leaves no goroutine.
func TestAnswerIsAwaitedOverTCP(t *testing.T) { // not parallel: it counts goroutines
	before := goleak.IgnoreCurrent()
	ctx, cancel := context.WithCancel(t.Context())
	t.Run("call", func(t *testing.T) {
		s := startService(t, nil, func(conn net.Conn, _ *http.Request, _ int) {
			cancel()
			time.Sleep(100 * time.Millisecond) // long enough for a cancelled request to be gone
			write(conn, 201, record)
		})
		job, err := newClient(t, s.url).CreateJob(ctx, "p", "x")
		if err != nil || job.ID != "job_1" || ctx.Err() == nil {
			t.Errorf("%v, %v, want the job although the context has ended (%v)", job, err, ctx.Err())
		}
		s.wantPosts(t, 1)
	})
	goleak.VerifyNone(t, before)
}
