// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What was not sent is sent again for a minute (C01). A call can be cancelled until there is a connection, even when the
// dial hangs. From then on its response is awaited (X01), for the request timeout and no longer. An error does not
// blame an earlier 429 for a response that was lost, but says that what was not sent later was refused before.
func TestCreateJob(t *testing.T) {
	t.Parallel()
	all := func(answers ...answer) []answer { return answers }
	cause := errors.New("cause")
	lost, slow, refused := accepted.after(time.Hour), accepted.after(4*time.Second), answer{}
	hanging, tooLate := accepted, accepted
	hanging.dial = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	tooLate.dial = func(ctx context.Context) error { <-ctx.Done(); return nil }
	slowDial := refused
	slowDial.dial = func(context.Context) error { return &net.OpError{Op: "dial", Err: context.DeadlineExceeded} }
	stray := refused
	stray.dial = func(context.Context) error { return ErrProxyRefused }
	notSent, unknown := ErrNotSent, ErrUnknownOutcome
	const now = -1
	for name, tc := range map[string]struct {
		answers       []answer
		cancel, grace int   // seconds; 0: none
		limit         int   // seconds, of the call's context; 0: none
		class, is     error // nil: accepted
		status        int
		lo, hi        float64 // seconds that it takes; hi 0: lo
		dials, most   int     // most 0: dials
		posts         int
	}{
		"refused":              {answers: all(refused), class: notSent, is: errConnRefused, lo: 50, hi: 60, dials: 8, most: 60},
		"dial timeout":         {answers: all(slowDial), class: notSent, lo: 50, hi: 60, dials: 8, most: 60},
		"twice, around a 429":  {answers: all(refused, limited("120"), refused, accepted), lo: 120, hi: 122, dials: 4, posts: 2},
		"refused, stray proxy": {answers: all(refused, refused, stray, accepted), lo: 0, hi: 10, dials: 4, posts: 1},
		"refused, cancelled":   {answers: all(refused), cancel: 5, class: notSent, is: errConnRefused, lo: 5, dials: 2, most: 60},
		"hanging dial":         {answers: all(hanging, accepted), lo: 60, hi: 61, dials: 2, posts: 1},
		"a 429, then lost":     {answers: all(limited("1"), lost), class: unknown, lo: 61, dials: 2, posts: 2},
		"a 429, then not sent": {answers: all(limited("1"), refused), class: notSent, status: 429, lo: 51, hi: 61, dials: 9, most: 61, posts: 1},

		"C09 a long pause": {answers: all(limited("3600")), limit: 60, class: notSent, is: ErrPauseTooLong, status: 429, dials: 1, posts: 1},

		"before the call": {answers: all(accepted), cancel: now, class: notSent, is: cause},
		"while dialling":  {answers: all(hanging), cancel: 1, class: notSent, is: cause, lo: 1, dials: 1},
		"as it connects":  {answers: all(tooLate), cancel: 1, class: notSent, is: cause, lo: 1, dials: 1},
		"X03 in a pause":  {answers: all(limited("3600")), cancel: 60, class: notSent, is: cause, status: 429, lo: 60, dials: 1, posts: 1},
		"in flight":       {answers: all(slow), cancel: 1, lo: 4, dials: 1, posts: 1},
		"in flight, lost": {answers: all(lost), cancel: 1, class: unknown, is: errTimeout, lo: 60, dials: 1, posts: 1},
		// A deadline of the call ends no grace.
		"grace":           {answers: all(slow), cancel: 1, grace: 5, limit: 10, lo: 4, dials: 1, posts: 1},
		"grace, too late": {answers: all(lost), cancel: 1, grace: 5, limit: 10, class: unknown, is: errStopped, lo: 6, dials: 1, posts: 1},
		"grace, timeout":  {answers: all(lost), cancel: 20, grace: 5, limit: 10, class: unknown, is: errStopped, lo: 25, dials: 1, posts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if tc.cancel == now {
					cancel(cause)
				} else if tc.cancel > 0 {
					time.AfterFunc(time.Duration(tc.cancel)*time.Second, func() { cancel(cause) })
				}
				if tc.grace > 0 {
					ctx = WithGrace(ctx, time.Duration(tc.grace)*time.Second)
				}
				if tc.limit > 0 {
					var end context.CancelFunc
					ctx, end = context.WithTimeout(ctx, time.Duration(tc.limit)*time.Second)
					defer end()
				}
				f := &fakeService{answers: tc.answers}
				start := time.Now()
				job, err := newFakeClient(t, f).CreateJob(ctx, "p", PostBody{Prompt: "x"}, new(recorder))
				took := time.Since(start).Seconds()
				wantClass(t, job, err, tc.class, tc.status, tc.is)
				if took < tc.lo || took > max(tc.lo, tc.hi) {
					t.Errorf("after %vs, want %vs to %vs", took, tc.lo, max(tc.lo, tc.hi))
				}
				if errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v passes for the end of the call's context", err)
				}
				if f.dials < tc.dials || f.dials > max(tc.dials, tc.most) || len(f.posts) != tc.posts {
					t.Errorf("%d dials and %d POSTs, want %d and %d", f.dials, len(f.posts), tc.dials, tc.posts)
				}
			})
		})
	}
}

// recorder writes down its calls.
type recorder struct {
	refuses    error
	latency    time.Duration // of a claim
	beforeBody time.Duration // how long the first BeforeBody takes

	mu    sync.Mutex
	calls []string
}

func (r *recorder) note(call string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
}

func (r *recorder) Claim() error {
	r.note("claim")
	time.Sleep(r.latency)
	return r.refuses
}
func (r *recorder) BeforeBody() error {
	r.note("body")
	time.Sleep(r.beforeBody)
	r.beforeBody = 0
	return nil
}
func (r *recorder) Accepted(id string) { r.note("accepted " + id) }
func (r *recorder) Withdrawn()         { r.note("withdrawn") }
func (r *recorder) Unknown()           { r.note("unknown") }

type panicking struct{ *recorder }

func (panicking) BeforeBody() error { panic("a bug") }

// What cannot be claimed sends no byte, not even its head.
func TestCreateJob_unclaimed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		c := newClient(t, "http://service.invalid", func(config *Config) {
			config.Dial = func(context.Context, string, string) (net.Conn, error) { return client, nil }
		})
		go func() {
			if got, _ := io.ReadAll(server); len(got) > 0 {
				t.Errorf("the service received %s", got)
			}
		}()
		_, _ = c.CreateJob(t.Context(), "p", PostBody{Prompt: "x"}, &recorder{refuses: errors.New("not now")})
		synctest.Wait()
	})
}

// What has ended as not sent is not sent later, by a goroutine of net/http that has not read the body yet.
func TestDelivery_ended(t *testing.T) {
	t.Parallel()
	r, got := new(recorder), new(response)
	d := &delivery{call: apiCall{recorder: r}, unread: 1}
	d.end(got)
	if n, err := (postBody{strings.NewReader("x"), d}).Read(make([]byte, 1)); n > 0 || err == nil || len(r.calls) > 0 || got.isBegun {
		t.Errorf("%d bytes and %v after the end; %q", n, err, r.calls)
	}
}

// What is recorded is recorded before it is logged: a panic of the log loses nothing. Calls that fail or panic free
// their turns: else they would stall a project for good. The log has what neither the HTTP status nor the state shows: the
// reason in a response that is no record, and each status of a job (P01). A BeforeBody that takes longer than a request may take
// is not followed by a body, so the request is sent again. Red without: the deferred release.
func TestCreateJob_recorder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{answers: []answer{accepted}}
		r := &recorder{refuses: errors.New("not now")}
		var logged map[string]any
		c := newFakeClient(t, f, func(config *Config) {
			config.Log = func(_ context.Context, fields map[string]any) {
				logged = fields
				r.calls = append(r.calls, fmt.Sprint("logged ", fields["status"], ", ", fields["job_status"], ", ", fields["pause_ms"], ", ", fields["error"]))
			}
		})
		for range maxConcurrent + 1 { // a slot that was not given back would be missed
			if _, err := c.CreateJob(t.Context(), "p", PostBody{Prompt: "x"}, r); !errors.Is(err, ErrNotSent) || !errors.Is(err, r.refuses) {
				t.Fatalf("%v, want ErrNotSent and the recorder's error", err)
			}
			func() {
				defer func() { _ = recover() }()
				_, err := c.CreateJob(t.Context(), "p", PostBody{Prompt: "x"}, (*recorder)(nil))
				t.Errorf("no panic: %v", err)
			}()
		}
		// The second record is written on a goroutine of net/http.
		if _, err := c.CreateJob(t.Context(), "p", PostBody{Prompt: "x"}, panicking{new(recorder)}); !errors.Is(err, ErrNotSent) || !errors.Is(err, errInternal) {
			t.Errorf("%v, want ErrNotSent and errInternal", err)
		}
		if len(f.posts) > 0 {
			t.Errorf("%d POSTs without a record", len(f.posts))
		}
		odd, failed := answer{status: 200, body: `{"id":"job_1","status":"cancelled\u001b"}`}, answer{status: 200, body: `{"error":"out of \u0073ervice"}`}
		f.dials, f.answers = 0, []answer{accepted, {}, limited("1"), accepted, {status: 500, body: "EOF"}, failed, {status: 400}, failed, odd}
		r.calls, r.refuses, r.latency, r.beforeBody = nil, nil, time.Hour, time.Hour // longer than a request may take
		for _, want := range []error{nil, ErrUnknownOutcome, ErrUnknownOutcome, ErrRefused} {
			if _, err := c.CreateJob(t.Context(), "p", PostBody{Prompt: "x"}, r); !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		}
		if _, err := c.PollJob(t.Context(), "p", "job_1"); err != nil {
			t.Error(err)
		}
		whole := map[string]any{ // neither prompt nor key
			"operation": "get job", "method": "GET", "url": "https://service.invalid/v2/agent/p/job/job_1", "request_bytes": 0,
			"status": 200, "response_bytes": len(odd.body), "duration_ms": int64(0), "job_status": `cancelled\u001b`,
		}
		if diff := cmp.Diff(whole, logged); diff != "" {
			t.Errorf("the last line of the log (-want +got):\n%s", diff)
		}
		const reason = "the service responded with 200 OK: the response contains no usable job id" // without what the service says
		want := []string{
			"claim", "body", "withdrawn", "logged 0, <nil>, <nil>, create job: no complete response within the request timeout",
			"logged 0, <nil>, <nil>, create job: no connection to the service: dial: connection refused", // what was not sent needs no record
			"claim", "body", "withdrawn", "logged 429, <nil>, 1000, create job: the service responded with 429 Too Many Requests",
			"claim", "body", "accepted job_1", "logged 201, active, <nil>, <nil>",
			"claim", "body", "unknown", "logged 500, <nil>, <nil>, create job: the service responded with 500 Internal Server Error",
			"claim", "body", "unknown", "logged 200, <nil>, <nil>, create job: " + reason,
			"claim", "body", "withdrawn", "logged 400, <nil>, <nil>, create job: the service responded with 400 Bad Request",
			"logged 200, <nil>, <nil>, get job: " + reason, `logged 200, cancelled\u001b, <nil>, <nil>`,
		}
		if diff := cmp.Diff(want, r.calls); diff != "" || len(f.posts) != 5 {
			t.Errorf("%d POSTs, want 5; calls (-want +got):\n%s", len(f.posts), diff)
		}
	})
}
