// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wording

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
)

// A hint names the likeliest cause, and no other first.
func TestHint(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		failure agentapi.Error
		want    string
	}{
		"no connection": {agentapi.Error{Class: agentapi.ErrNotSent, Err: errors.New("no such host")},
			"Check base_url, the network between this machine and the service, HTTPS_PROXY and NO_PROXY."},
		"interrupted": {agentapi.Error{Class: agentapi.ErrNotSent, Err: context.Canceled}, ""},
		"timeouts":    {agentapi.Error{Class: agentapi.ErrNotSent, Err: context.DeadlineExceeded}, ""},
		"timeouts of a read": {agentapi.Error{Class: agentapi.ErrUnavailable, Err: context.DeadlineExceeded},
			"Check base_url, the network between this machine and the service, HTTPS_PROXY and NO_PROXY."},
		"answer lost": {agentapi.Error{Class: agentapi.ErrUnknownOutcome, Err: io.EOF}, ""},
		"401": {agentapi.Error{Class: agentapi.ErrRefused, StatusCode: 401},
			"Check admin_key, or AGENT_ADMIN_KEY if that is not set: the key may be unknown to this service, or expired."},
		"403": {agentapi.Error{Class: agentapi.ErrRefused, StatusCode: 403},
			"Check admin_key, or AGENT_ADMIN_KEY if that is not set: the key may lack the required scope, or may not be allowed from this address."},
		"402": {agentapi.Error{Class: agentapi.ErrRefused, StatusCode: 402, Detail: "Buy more"},
			"Check credits and plan in the service's dashboard."},
		"302": {agentapi.Error{Class: agentapi.ErrRefused, StatusCode: 302},
			"Redirects are not followed, because the key is sent to base_url only. Check base_url, and whether a proxy or a login page is in between."},
		"404 for a create": {agentapi.Error{Op: agentapi.OpCreate, Class: agentapi.ErrRefused, StatusCode: 404},
			"Check base_url, project_id and the key: each of them can cause a 404."},
		"404, base_url with /v2": {agentapi.Error{Op: agentapi.OpCreate, Class: agentapi.ErrRefused, StatusCode: 404, Request: "POST https://api.example.com/v2/v2/agent/proj_1/job"},
			"Remove /v2 from base_url: the provider adds it."},
		"pause too long": {agentapi.Error{Op: agentapi.OpCreate, Class: agentapi.ErrRefused, StatusCode: 429, Err: agentapi.ErrPauseTooLong},
			"To let a run wait that long, raise timeouts."},
		"404 for a message": {agentapi.Error{Op: agentapi.OpMessage, Class: agentapi.ErrRefused, StatusCode: 404},
			"Check base_url, project_id and the key: each of them can cause a 404, and so can a job that the service no longer keeps."},
		"web page with 200": {agentapi.Error{Class: agentapi.ErrUnknownOutcome, StatusCode: 200, Err: agentapi.ErrWebPage},
			"Something other than the agent service responded. Check base_url, and whether a proxy or a login page is in between."},
		"web page with 503": {agentapi.Error{Class: agentapi.ErrUnavailable, StatusCode: 503, Err: agentapi.ErrWebPage}, ""},
	} {
		if got := hint(&tc.failure); got != tc.want {
			t.Errorf("%s: hint %q, want %q", name, got, tc.want)
		}
	}
}

// What to do after a refusal depends on whether a new job can help.
func TestRefusalTellsWhatHelps(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		failure agentapi.Error
		want    string
	}{
		{agentapi.Error{Class: agentapi.ErrRefused, StatusCode: 401}, "Once that is fixed, apply again to send the prompt."},
		{agentapi.Error{Class: agentapi.ErrRefused, StatusCode: 402}, "Once that is fixed, apply again to send the prompt."},
		{agentapi.Error{Class: agentapi.ErrRefused, StatusCode: 302}, "Once that is fixed, apply again to send the prompt."},
		{agentapi.Error{Class: agentapi.ErrRefused, StatusCode: 400, Err: agentapi.ErrWebPage}, "Once that is fixed, apply again to send the prompt."},
		{agentapi.Error{Class: agentapi.ErrNotSent, Err: io.EOF}, "Apply again to send the prompt."},
		{agentapi.Error{Class: agentapi.ErrNotSent, StatusCode: 429, Err: context.Canceled}, "Apply again to send the prompt."},
		{agentapi.Error{Class: agentapi.ErrRefused, StatusCode: 409}, "To start a new job with this prompt instead, apply with -replace=ADDRESS, or change triggers."},
	} {
		request := send.Request{Kind: send.Message, ProjectID: "proj_1", JobID: "job_1"}
		if _, got := NotAccepted(send.Outcome{Result: send.NoEffect, Err: &test.failure}, request, ApplyAgain); !strings.HasSuffix(got, "\n\n"+test.want) {
			t.Errorf("%+v: %s", test.failure, got)
		}
	}
}

func TestReason(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"the run was interrupted":                                         &agentapi.Error{Err: context.Canceled},
		"the configured timeouts.create (1h0m0s) expired":                 &agentapi.Error{Err: &TimeoutError{"timeouts.create", time.Hour}},
		`the service responded with 409 Conflict, error message "closed"`: &agentapi.Error{StatusCode: 409, Detail: "closed"},
		`the service responded with 302 Found, redirecting to "/login"`:   &agentapi.Error{StatusCode: 302, Detail: "/login"},
		`the service responded with 500 Internal Server Error, EOF`:       &agentapi.Error{StatusCode: 500, Err: io.EOF},
		`a failure of another kind, escaped: \u001b[2J`:                   errors.New("a failure of another kind, escaped: \x1b[2J"),
		`unexpected EOF`: &wait.Error{JobID: "job_1", Err: &agentapi.Error{Err: io.ErrUnexpectedEOF}},
		"job job_1: " + io.EOF.Error() + ` after 0s, last status "a"`: &wait.Error{JobID: "job_1", LastStatus: "a", Err: io.EOF},
	} {
		if got := reason(err); got != want {
			t.Errorf("reason %q, want %q", got, want)
		}
	}
}

// The text of a wait that stopped early says each thing once.
func TestStillRunning(t *testing.T) {
	t.Parallel()
	const keepsRunning = "This run stopped waiting for job job_1 in project proj_1. The job itself keeps running."
	job := Job{ID: "job_1", Project: "proj_1"}
	const expired = "The configured timeouts.update (1m0s) expired."
	timeout := &TimeoutError{"timeouts.update", time.Minute}
	refused := &agentapi.Error{Op: agentapi.OpGet, Class: agentapi.ErrRefused, StatusCode: 400}
	busy := &agentapi.Error{Op: agentapi.OpGet, Class: agentapi.ErrUnavailable, StatusCode: 503}
	for _, test := range []struct {
		err  wait.Error
		want []string
	}{
		{wait.Error{Err: timeout, LastStatus: agentapi.StatusActive}, []string{expired}},
		{wait.Error{Err: timeout, LastStatus: "a\nb"}, []string{expired, `Its last status was "a\u000ab".`}},
		{
			wait.Error{Err: timeout, LastFault: busy},
			[]string{expired, "The last poll failed: the service responded with 503 Service Unavailable."},
		},
		{wait.Error{Err: refused, LastFault: refused}, []string{"The service responded with 400 Bad Request."}},
	} {
		_, got := StillRunning(&test.err, job, "Then this.")
		if diff := cmp.Diff(Paragraphs(slices.Concat([]string{keepsRunning}, test.want, []string{"Then this."})...), got); diff != "" {
			t.Errorf("detail (-want +got):\n%s", diff)
		}
	}
}

func TestSentence(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                    "",
		"no such job.":        "No such job.",
		"über":                "Über.",
		"one error\nanother":  "One error; another.",
		"one error\r\nb\x00c": `One error\u000d; b\u0000c.`,
	} {
		if got := Sentence(errors.New(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
