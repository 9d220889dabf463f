// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"errors"
	"fmt"
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

// TestGetJobTriesAgain: what may pass is tried again, with jittered pauses.
func TestGetJobTriesAgain(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]outcome{
		"connection":    {},
		"500":           {status: 500},
		"502 HTML":      {502, headers("Content-Type", "text/html"), "<html>"},
		"503":           {status: 503, body: `{"error":"busy"}`},
		"504":           {status: 504},
		"408":           {status: 408},
		"425":           {status: 425},
		"429":           {status: 429},
		"truncated":     {status: 200, body: record[:10]},
		"empty":         {status: 200},
		"204":           {status: 204},
		"no id":         {status: 200, body: `{"status":"active"}`},
		"trailing data": {status: 200, body: record + "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			took := map[time.Duration]bool{}
			for range 5 {
				synctest.Test(t, func(t *testing.T) {
					f := scripted([]outcome{fault, fault, fault, whole})
					start := time.Now()
					job, err := newFakeClient(t, f).GetJob(t.Context(), "p", "job_1")
					if err != nil || job.ID != "job_1" || f.dials != 4 || f.posts != 0 {
						t.Errorf("%v, %v after %d requests, want the job after 4", job, err, f.dials)
					}
					if since := time.Since(start); since > 14*time.Second {
						t.Errorf("it took %v", since)
					}
					took[time.Since(start)] = true
				})
			}
			if len(took) < 2 {
				t.Errorf("five calls each took %v: no jitter", took)
			}
		})
	}
}

func TestGetJobKeepsARetryAfterOf503(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := scripted([]outcome{{status: 503, header: headers("Retry-After", "30")}, whole})
		start := time.Now()
		if _, err := newFakeClient(t, f).GetJob(t.Context(), "p", "job_1"); err != nil || time.Since(start) != 30*time.Second {
			t.Errorf("%v after %v, want the job after 30s", err, time.Since(start))
		}
	})
}

// TestGetFinals: what cannot pass ends the call with one request.
func TestGetFinals(t *testing.T) {
	t.Parallel()
	html := headers("Content-Type", "text/html; charset=utf-8")
	for name, tc := range map[string]struct {
		answer   outcome
		is, isNo error
	}{
		"400":            {outcome{status: 400, body: `{"error":"no"}`}, ErrRefused, ErrNotFound},
		"401":            {outcome{status: 401, body: `{"error":"no"}`}, ErrUnauthorized, ErrNotFound},
		"403":            {outcome{status: 403}, ErrUnauthorized, ErrNotFound},
		"404 JSON":       {outcome{status: 404, body: `{"error":"no such job"}`}, ErrNotFound, ErrWebPage},
		"404 nothing":    {outcome{status: 404}, ErrNotFound, ErrWebPage},
		"404 text":       {outcome{status: 404, body: "not found"}, ErrNotFound, ErrWebPage},
		"404 HTML":       {outcome{404, html, "<html>not found"}, ErrWebPage, ErrNotFound},
		"404 unlabelled": {outcome{status: 404, body: "\n<!DOCTYPE html>"}, ErrWebPage, ErrNotFound},
		"404 type alone": {outcome{404, headers("Content-Type", "application/xhtml+xml"), ""}, ErrWebPage, ErrNotFound},
		"410":            {outcome{status: 410}, ErrRefused, ErrNotFound},
		"302":            {outcome{302, headers("Location", "https://x.invalid"), ""}, ErrRedirected, ErrNotFound},
		"302 HTML":       {outcome{302, html, "<a>Found</a>"}, ErrRedirected, ErrWebPage},
		"200 HTML":       {outcome{200, html, "<html>sign in"}, ErrWebPage, ErrUnavailable},
		"wrong id":       {outcome{status: 200, body: `{"id":"job_2","status":"completed"}`}, ErrWrongJob, ErrUnavailable},
		"id, other case": {outcome{status: 200, body: `{"id":"JOB_1","status":"completed"}`}, ErrWrongJob, ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := scripted([]outcome{tc.answer})
				c := newFakeClient(t, f)
				for name, get := range map[string]func(context.Context, string, string) (*Job, error){"GetJob": c.GetJob, "PollJob": c.PollJob} {
					f.dials = 0
					job, err := get(t.Context(), "p", "job_1")
					var failure *Error
					if job != nil || !errors.As(err, &failure) || !errors.Is(err, tc.is) || errors.Is(err, tc.isNo) {
						t.Fatalf("%s: %v, %v, want %v and not %v", name, job, err, tc.is, tc.isNo)
					}
					if failure.Op != OpGet || failure.JobID != "job_1" || failure.ProjectID != "p" || failure.StatusCode != tc.answer.status {
						t.Errorf("%s: %+v", name, *failure)
					}
					if f.dials != 1 {
						t.Errorf("%s: %d requests, want 1", name, f.dials)
					}
				}
			})
		})
	}
}

func TestGetJobEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer outcome
		ends   time.Duration
		is     error
	}{
		"troubles":           {outcome{status: 500, body: `{"error":"why"}`}, time.Minute, ErrUnavailable},
		"no connection":      {outcome{}, time.Minute, errRefusedConnection},
		"pause, too long":    {outcome{429, headers("Retry-After", "3600"), ""}, 0, ErrPauseTooLong},
		"503, asks too much": {outcome{503, headers("Retry-After", "3600"), ""}, time.Minute, ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				start := time.Now()
				_, err := newFakeClient(t, scripted([]outcome{tc.answer})).GetJob(ctx, "p", "job_1")
				if !errors.Is(err, ErrUnavailable) || !errors.Is(err, tc.is) || time.Since(start) != tc.ends {
					t.Errorf("%v after %v, want %v after %v", err, time.Since(start), tc.is, tc.ends)
				}
			})
		})
	}
}

func TestGetIsCancelledOnItsWay(t *testing.T) {
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

// TestPollJobLeavesTroublesToItsCaller: one request, except after a 429.
func TestPollJobLeavesTroublesToItsCaller(t *testing.T) {
	t.Parallel()
	for _, status := range []int{0, 200, 408, 500, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			f := scripted([]outcome{{status: status, header: headers("Retry-After", "7")}})
			_, err := newFakeClient(t, f).PollJob(t.Context(), "p", "job_1")
			var failure *Error
			if !errors.As(err, &failure) || !errors.Is(err, ErrUnavailable) || f.dials != 1 {
				t.Fatalf("%v after %d requests, want ErrUnavailable after 1", err, f.dials)
			}
			if want := map[bool]time.Duration{true: 7 * time.Second}[status >= 400]; failure.RetryAfter != want {
				t.Errorf("RetryAfter %v, want %v", failure.RetryAfter, want)
			}
		})
	}
}
