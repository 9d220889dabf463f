// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
)

// A hint names the likeliest cause, and no other first.
func TestHint(t *testing.T) {
	t.Parallel()
	const connection = "Check base_url, the network between"
	for name, tc := range map[string]struct {
		failure agentapi.Error
		want    string // a part that no other hint has; empty: no hint
	}{
		"no connection":      {agentapi.Error{Class: agentapi.ErrNotSent, Err: errors.New("no such host")}, connection},
		"interrupted":        {agentapi.Error{Class: agentapi.ErrNotSent, Err: context.Canceled}, ""},
		"timeouts":           {agentapi.Error{Class: agentapi.ErrNotSent, Err: context.DeadlineExceeded}, ""},
		"timeouts of a read": {agentapi.Error{Class: agentapi.ErrUnavailable, Err: context.DeadlineExceeded}, connection},
		"answer lost":        {agentapi.Error{Class: agentapi.ErrUnknownOutcome, Err: io.EOF}, ""},
		"401":                {agentapi.Error{StatusCode: 401}, "the key may be unknown"},
		"402":                {agentapi.Error{StatusCode: 402, Detail: "Buy more"}, "Check credits"},
		"403":                {agentapi.Error{StatusCode: 403}, "the key may lack the required scope"},
		"413":                {agentapi.Error{StatusCode: 413}, "Shorten the prompt."},
		"302":                {agentapi.Error{StatusCode: 302}, "Redirects are not followed"},
		"404 for a create":   {agentapi.Error{Op: agentapi.OpCreate, StatusCode: 404}, "Check base_url, project_id and the key."},
		"404 for a message":  {agentapi.Error{Op: agentapi.OpMessage, StatusCode: 404}, "still keeps the job"},
		"410 for a read":     {agentapi.Error{Op: agentapi.OpGet, StatusCode: 410}, "still keeps the job"},
		"410 for a message":  {agentapi.Error{Op: agentapi.OpMessage, StatusCode: 410}, ""},
		"404, base_url with /v2": {
			agentapi.Error{Op: agentapi.OpCreate, StatusCode: 404, Endpoint: "POST https://api.example.com/v2/v2/agent/proj_1/job"},
			"Remove /v2 from base_url",
		},
		"pause too long":    {agentapi.Error{Op: agentapi.OpCreate, StatusCode: 429, Err: agentapi.ErrPauseTooLong}, "raise timeouts"},
		"the same, refresh": {agentapi.Error{Op: agentapi.OpGet, Class: agentapi.ErrUnavailable, StatusCode: 429}, "Try again later."},
		"web page with 200": {agentapi.Error{StatusCode: 200, Err: agentapi.ErrWebPage}, "Something other than the agent service responded"},
		"handshake":         {agentapi.Error{Class: agentapi.ErrNotSent, Err: agentapi.ErrHandshake}, "must offer TLS 1.2"},
		"proxy":             {agentapi.Error{Class: agentapi.ErrRefused, Err: agentapi.ErrProxyRefused}, "Check HTTPS_PROXY"},
		"web page with 503": {agentapi.Error{Class: agentapi.ErrUnavailable, StatusCode: 503, Err: agentapi.ErrWebPage}, ""},
	} {
		if got := hint(&tc.failure); !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
			t.Errorf("%s: hint %q, want %q", name, got, tc.want)
		}
	}
}

// What to do after a refusal depends on whether a new job can help.
func TestRefusalTellsWhatHelps(t *testing.T) {
	t.Parallel()
	const (
		again    = "To send the prompt, apply again."
		fixed    = "Once that is fixed, apply again."
		triggers = "To start a new job with this prompt instead, change triggers."
		closed   = "or add the prompt to ignore_changes."
	)
	request := send.Request{Wanted: journal.Wanted{Project: "proj_1", Name: "docs", JobID: "job_1"}}
	for name, row := range map[string]struct {
		failure  agentapi.Error
		isClosed bool
		want     string
	}{
		"its job has finished": {agentapi.Error{Class: agentapi.ErrRefused, StatusCode: 409}, true, closed},
		"its job is active":    {agentapi.Error{Class: agentapi.ErrRefused, StatusCode: 409}, false, triggers},
		"400":                  {agentapi.Error{Class: agentapi.ErrRefused, StatusCode: 400}, false, triggers},
		"404":                  {agentapi.Error{Class: agentapi.ErrRefused, StatusCode: 404}, false, triggers},
		"401":                  {agentapi.Error{Class: agentapi.ErrRefused, StatusCode: 401}, false, fixed},
		"402":                  {agentapi.Error{Class: agentapi.ErrRefused, StatusCode: 402}, false, fixed},
		"302":                  {agentapi.Error{Class: agentapi.ErrRefused, StatusCode: 302}, false, fixed},
		"a web page":           {agentapi.Error{Class: agentapi.ErrRefused, StatusCode: 400, Err: agentapi.ErrWebPage}, false, fixed},
		"not sent":             {agentapi.Error{Class: agentapi.ErrNotSent, Err: io.EOF}, false, again},
		"429, interrupted":     {agentapi.Error{Class: agentapi.ErrNotSent, StatusCode: 429, Err: context.Canceled}, false, again},
	} {
		row.failure.Op = agentapi.OpMessage
		outcome := send.Outcome{Result: send.NoEffect, Err: &row.failure, BecameClosed: row.isClosed}
		if got := NotAccepted(outcome, request).Detail; !strings.HasSuffix(got, row.want) {
			t.Errorf("%s: %q is missing in: %s", name, row.want, got)
		}
	}
}

// foreign is what others may write to the journal, or to a bucket.
const foreign = "\x1b[2J\u009b31m\u202eb"

// recordOf is the record of a name with a job; empty if it has none.
func recordOf(job string) *journal.Record {
	sent := time.Date(2026, 11, 23, 0, 24, 16, 0, time.UTC)
	return &journal.Record{
		Project: "proj_1" + foreign, Name: "docs" + foreign, JobID: job,
		Last: &journal.Entry{ID: "abcdefghijklmnop" + foreign, SentAt: sent},
	}
}

// What stops a create is said by its plan and by its apply, with the effect of each. Whatever the result, a text says all that it is given,
// nothing is left of how it is made, and whoever writes to the journal does not control the terminal. Texts of the service:
// TestNewError_detail.
func TestTexts(t *testing.T) {
	t.Parallel()
	isOdd := func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }
	braces := regexp.MustCompile(`\{\w+\}|%!|<nil>|""|0001-`)
	check := func(what string, d Diagnostic, want string) {
		t.Helper()
		if d.Summary == "" || strings.ContainsFunc(d.Detail, isOdd) || braces.MatchString(d.Detail) || !strings.Contains(d.Detail, want) {
			t.Errorf("%s: %q is missing, or something is left, in: %s: %s", what, want, d.Summary, d.Detail)
		}
	}
	record := recordOf("job_2" + foreign)
	job := Job{ID: "job_1", Project: "proj_1", Status: "active"}
	create := send.Request{Wanted: journal.Wanted{Project: "proj_1", Name: "docs" + foreign, Arguments: "2"}, PlannedJob: "job_1"}
	message := create
	message.JobID = "job_1"
	for kind, request := range map[string]send.Request{"create": create, "message": message} {
		ofAction := request
		ofAction.Name = ""
		for result := send.Accepted; result <= send.Waiting; result++ {
			what := fmt.Sprint("a ", kind, ", result ", result)
			out := send.Outcome{Result: result, Record: record, Err: io.EOF, Job: &agentapi.Job{ID: "job_2"}}
			text, isNeeded := Foreseen(out, request)
			if isNeeded != result.Stops() {
				t.Errorf("a plan of %s says %q", what, text)
			}
			if isNeeded && result != send.Waiting {
				check("a plan of "+what, text, "Apply sends nothing and fails.")
				check(what, NotAccepted(out, request), "ent")
			}
			if result == send.NoEffect || result == send.Unknown {
				check(what, NotAccepted(out, request), "sent to")
				check(what+", of an action", NotAccepted(out, ofAction), "the action again")
			}
		}
	}
	record.Last.Arguments = journal.Hash("2")
	check("another prompt", BesideAnother(create, record), "has another prompt and was")
	check("other triggers", BesideAnother(send.Request{Wanted: journal.Wanted{Project: "proj_1", Name: "docs"}}, record), "has other triggers and was")
	check("an import", NameFromOther(job, record), "job_2")
	check("an adoption", Adopted(send.Outcome{Job: &agentapi.Job{ID: "job_2"}, Record: record}, create), "job_2")
	check("a query", Diagnostic{"A job", ListedName(record)}, "job_2")
	check("unknown creates", ListedUnknown([]*journal.Record{record}), "abcdefghijklmnop")
	check("an unusable journal", JournalUnusable(errors.New(foreign)), "no prompt is sent")
	for _, request := range []string{"", record.Last.ID} {
		for _, status := range []string{"failed", "archived"} {
			job.Status = status
			check("a failed job", FailedEarlier(job, request), "apply sends nothing and fails")
			check("a job that fails", Failed(job, Next{Request: request, IsTainted: true}.AfterFailure()), "fails again")
		}
		check("a job that a refresh does not find", NotFound(job, io.EOF, request), "start another job")
		check("a timeout", StillRunning(&wait.Error{Err: io.EOF}, job, Next{Request: request}.AfterTimeout()), "change triggers")
		check("a job that a wait does not find", LostInWait(job, io.EOF, wait.Created, Next{Request: request}), "had accepted the prompt")
	}
}

// No diagnostic floods a terminal, whatever a service, a store or a record sends: its start and its end remain, which say what happened
// and what to do.
func TestDiagnostic_length(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("äb", 1<<18)
	failure := &agentapi.Error{Class: agentapi.ErrRefused, StatusCode: 400, Detail: long}
	request := send.Request{Wanted: journal.Wanted{Project: "proj_1", Name: long}}
	for name, tc := range map[string]struct {
		text       Diagnostic
		start, end string
	}{
		"a refusal":     {NotAccepted(send.Outcome{Err: failure}, request), "The service refused the prompt", "Once that is fixed, apply again."},
		"a read":        {DataReadFailed.Of(Job{ID: "job_1", Project: "proj_1"}, failure), "Job job_1 in project proj_1 could not be read.", "reads it again."},
		"a store":       {JournalUnusable(errors.New(long)), "Äbäb", "a broken run may send the prompts of all jobs of this provider block again."},
		"many requests": {ListedUnknown(slices.Repeat([]*journal.Record{recordOf("")}, 1000)), "Earlier runs sent a prompt", "A plan says what to do about each."},
		"a check":       {InvalidID.Because(errors.New(long), "The prompt was not sent."), "Äbäb", "The prompt was not sent."},
	} {
		length := len(tc.text.Summary) + len(tc.text.Detail)
		if length > 4000 || !utf8.ValidString(tc.text.Detail) || !strings.HasPrefix(tc.text.Detail, tc.start) || !strings.HasSuffix(tc.text.Detail, tc.end) {
			t.Errorf("%s: %d bytes, from %.80q to %q", name, length, tc.text.Detail, tc.text.Detail[max(0, len(tc.text.Detail)-80):])
		}
	}
}

func TestReason(t *testing.T) {
	t.Parallel()
	if got := cause(&journal.Error{Op: "listed", Err: context.DeadlineExceeded}); !strings.Contains(got, "\n\nCheck that this run can read and write there") {
		t.Errorf("a journal that does not respond: %s", got)
	}
	for want, err := range map[string]error{
		"the run was interrupted":                                         &agentapi.Error{Err: context.Canceled},
		"the configured timeouts.create (1h0m0s) expired":                 &agentapi.Error{Err: &TimeoutError{"timeouts.create", time.Hour}},
		`the service responded with 409 Conflict, error message "closed"`: &agentapi.Error{StatusCode: 409, Detail: "closed"},
		`the service responded with 302 Found, redirecting to "/login"`:   &agentapi.Error{StatusCode: 302, Detail: "/login"},
		`the service responded with 500 Internal Server Error, EOF`:       &agentapi.Error{StatusCode: 500, Err: io.EOF},
		`no such host, tried for 57s`:                                     &agentapi.Error{Class: agentapi.ErrNotSent, Err: errors.New("no such host"), Lasted: 57 * time.Second},
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
	timeout := &TimeoutError{"timeouts.update", time.Minute}
	const expired = "The configured timeouts.update (1m0s) expired."
	refused := &agentapi.Error{Op: agentapi.OpGet, Class: agentapi.ErrRefused, StatusCode: 400}
	busy := &agentapi.Error{Op: agentapi.OpGet, Class: agentapi.ErrUnavailable, StatusCode: 503}
	expiredKey := &agentapi.Error{Op: agentapi.OpGet, Class: agentapi.ErrRefused, StatusCode: 400, Detail: "no", Lasted: 61 * time.Second}
	for want, err := range map[string]wait.Error{
		expired: {Err: timeout, LastStatus: agentapi.StatusActive},
		expired + "\n\nIts last status was \"completed\".": {Err: timeout, LastStatus: agentapi.StatusCompleted},
		expired + "\n\nIts last status was \"canceled\\u000a\". This version of the provider does not know that status, so it counts as still running. " +
			"Check the job in the service's dashboard: if it has finished, waiting again does not help.": {Err: timeout, LastStatus: "canceled\n"},
		expired + "\n\nThe last poll failed: the service responded with 503 Service Unavailable.": {Err: timeout, LastFault: busy},
		"The service responded with 400 Bad Request.":                                             {Err: refused, LastFault: refused},
		`The service responded with 400 Bad Request, error message "no", tried for 1m1s.`:         {Err: expiredKey, LastFault: expiredKey},
	} {
		want = "This run stopped waiting for job job_1 in project proj_1. That does not stop the job.\n\n" + want + "\n\nThen this."
		if got := StillRunning(&err, Job{ID: "job_1", Project: "proj_1"}, "Then this.").Detail; got != want {
			t.Errorf("detail %q, want %q", got, want)
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
