// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// The key and the prompt go to base_url alone, and not where a redirect leads. (C10)
// What shows another certificate than the trusted ones gets no byte, and is not tried again. (C02)
//
// Red without: RoundTrip in exchange (an http.Client follows); ErrCertificate in causeOf (sent again until the deadline).
func TestExchange_elsewhere(t *testing.T) {
	t.Parallel()
	s, c := startServer(t, faultserver.Options{TLS: true})
	other, _ := startServer(t, faultserver.Options{})
	redirect := faultserver.Answer(302, "", "Location: "+other.URL+"/v2/agent/p/job")
	s.Script(faultserver.Create, redirect)
	job, err := c.CreateJob(t.Context(), "p", NewJob{Prompt: "x"}, new(recorder))
	wantClass(t, job, err, ErrRefused, 302, nil)
	s.Script(faultserver.Get, redirect)
	if job, err := c.ReadJob(t.Context(), "p", "job_1"); err != nil || job.ID != "job_1" || other.Dials() > 0 {
		t.Errorf("%v, %v, and %d connections to the other server", job, err, other.Dials())
	}
	before := s.Dials()
	job, err = newClient(t, s.URL).CreateJob(t.Context(), "p", NewJob{Prompt: "x"}, new(recorder))
	wantClass(t, job, err, ErrNotSent, 0, ErrCertificate)
	if dials := s.Dials() - before; dials != 1 || s.Count(faultserver.Create) != 1 {
		t.Errorf("%d connections without trust, want 1", dials)
	}
}

// A request that was written and has no whole response is not sent again.
func TestExchange_unanswered(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		play   faultserver.Play
		status int
		took   time.Duration
	}{
		"C03 end of file":    {faultserver.EOF, 0, 0},
		"C03 reset":          {faultserver.Reset, 0, 0},
		"C13 it trickles in": {faultserver.Slow(201, record, 9*time.Second), 201, time.Minute}, // which is the request's timeout
	} {
		synctest.Test(t, func(t *testing.T) {
			s, c := startServer(t, faultserver.Options{InMemory: true})
			s.Script(faultserver.Create, tc.play)
			start := time.Now()
			job, err := c.CreateJob(t.Context(), "p", NewJob{Prompt: "x"}, new(recorder))
			wantClass(t, job, err, ErrUnknownOutcome, tc.status, nil)
			if tc.status == 0 && !strings.Contains(err.Error(), "no usable response") {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(start); took != tc.took || s.Count(faultserver.Create) != 1 {
				t.Errorf("%s: it took %s, want %s; %d POSTs", name, took, tc.took, s.Count(faultserver.Create))
			}
		})
	}
}

// What was not sent is sent again (C01), and the log shows both. Red without: the fields of logExchange, and Printable in it.
func TestLog_fields(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		unreachable := accepted
		unreachable.dial = func(context.Context) error { return errors.New("no\x1b[2J route") }
		var got []map[string]any
		c := newFakeClient(t, &fakeService{answers: []answer{unreachable, accepted}}, func(config *Config) {
			config.Log = func(_ context.Context, fields map[string]any) { got = append(got, fields) }
		})
		job, err := c.CreateJob(t.Context(), "p", NewJob{Prompt: "x"}, new(recorder))
		wantClass(t, job, err, nil, 0, nil)
		line := func(status, bytes int, more, value string) map[string]any {
			return map[string]any{
				"operation": "create job", "method": "POST", "url": "https://service.invalid/v2/agent/p/job", "request_bytes": 14,
				"status": status, "response_bytes": bytes, "duration_ms": int64(0), more: value,
			}
		}
		want := []map[string]any{
			line(0, 0, "error", `create job: no connection to the service: no\u001b[2J route`), line(201, len(record), "job_status", "active"),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
	})
}
