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
		"302":                {agentapi.Error{StatusCode: 302}, "Redirects are not followed"},
		"404 for a create":   {agentapi.Error{Op: agentapi.OpCreate, StatusCode: 404}, "each of them can cause this response."},
		"404 for a message":  {agentapi.Error{Op: agentapi.OpMessage, StatusCode: 404}, "and so can a job that the service no longer keeps"},
		"410 for a read":     {agentapi.Error{Op: agentapi.OpGet, StatusCode: 410}, "and so can a job that the service no longer keeps"},
		"410 for a message":  {agentapi.Error{Op: agentapi.OpMessage, StatusCode: 410}, ""},
		"404, base_url with /v2": {
			agentapi.Error{Op: agentapi.OpCreate, StatusCode: 404, Request: "POST https://api.example.com/v2/v2/agent/proj_1/job"},
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
	request := send.Request{Wanted: journal.Wanted{Project: "proj_1", Name: "docs", JobID: "job_1"}}
	const newJob = "The next apply starts a new job"
	for _, test := range []struct {
		status   int
		isClosed bool
		has, not string
	}{
		{409, true, newJob, "-replace"}, {422, true, newJob, "shorten"},
		{413, false, "Shorten the prompt", newJob}, {422, false, "The next apply sends the prompt again.", newJob},
	} {
		refusal := send.Outcome{Result: send.NoEffect, Err: &agentapi.Error{Op: agentapi.OpMessage, Class: agentapi.ErrRefused, StatusCode: test.status}}
		refusal.BecameClosed = test.isClosed
		if got := NotAccepted(refusal, request).Detail; !strings.Contains(got, test.has) || strings.Contains(got, test.not) {
			t.Errorf("%d: %q is missing, or %q is not, in: %s", test.status, test.has, test.not, got)
		}
	}
	for want, failures := range map[string][]agentapi.Error{
		"Once that is fixed, apply again.": {
			{Class: agentapi.ErrRefused, StatusCode: 401}, {Class: agentapi.ErrRefused, StatusCode: 402},
			{Class: agentapi.ErrRefused, StatusCode: 302}, {Class: agentapi.ErrRefused, StatusCode: 400, Err: agentapi.ErrWebPage},
		},
		"To send the prompt, apply again.": {
			{Class: agentapi.ErrNotSent, Err: io.EOF}, {Class: agentapi.ErrNotSent, StatusCode: 429, Err: context.Canceled},
		},
		"To start a new job with this prompt instead, change triggers.": {
			{Op: agentapi.OpMessage, Class: agentapi.ErrRefused, StatusCode: 404}, {Op: agentapi.OpMessage, Class: agentapi.ErrRefused, StatusCode: 409},
			{Op: agentapi.OpMessage, Class: agentapi.ErrRefused, StatusCode: 400},
		},
	} {
		for _, failure := range failures {
			outcome := send.Outcome{Result: send.NoEffect, Err: &failure}
			if got := NotAccepted(outcome, request).Detail; !strings.HasSuffix(got, want) {
				t.Errorf("%+v: %s", failure, got)
			}
		}
	}
}

// What stops a create is said by its plan and by its apply, with the effect of each. Beside which job another one starts is said with what
// differs.
func TestForeseen(t *testing.T) {
	t.Parallel()
	request := send.Request{Wanted: journal.Wanted{Project: "proj_1", Name: "docs", Arguments: "2"}}
	record := &journal.Record{Project: "proj_1", Name: "docs", JobID: "job_2", Last: &journal.Request{ID: "abcdefghijklmnop", Arguments: journal.Hash("2")}}
	others, unknown := *record, *record
	others.Last, unknown.JobID, unknown.Last = new(journal.Request), "", &journal.Request{ID: record.Last.ID, Unknown: true}
	for _, row := range []struct {
		outcome     send.Outcome
		plan, apply string // parts of the detail; apply empty: it says nothing
	}{
		{send.Outcome{Result: send.Running, Record: record}, "Apply sends nothing and fails as long as it runs.", "the same triggers. Nothing was sent."},
		{send.Outcome{Result: send.Unreadable, Record: record, Err: io.EOF}, "Apply sends nothing and fails as long as that lasts.", "read now. Nothing was sent."},
		{send.Outcome{Result: send.EarlierUnknown, Record: &unknown}, "Apply sends nothing and fails until you decide.", "was started. Nothing was sent."},
		{send.Outcome{Result: send.Waiting, Record: record}, "Apply waits for it.", ""},
	} {
		if got, isNeeded := Foreseen(row.outcome, request); !isNeeded || !strings.Contains(got.Detail, row.plan) {
			t.Errorf("%q is missing in a plan: %s", row.plan, got.Detail)
		}
		if row.apply == "" {
			continue
		}
		if got := NotAccepted(row.outcome, request); !strings.Contains(got.Detail, row.apply) || strings.Contains(got.Detail, "Apply sends nothing") {
			t.Errorf("%q is missing in an apply: %s", row.apply, got.Detail)
		}
	}
	for record, want := range map[*journal.Record]string{record: "has another prompt and was", &others: "has other triggers and was"} {
		if got := BesideAnother(request, record); !strings.Contains(got.Detail, want) {
			t.Errorf("%q is missing in: %s", want, got.Detail)
		}
	}
	for _, result := range []send.Result{send.Accepted, send.Adopted, send.AlreadySent, send.Closed} {
		if got, isNeeded := Foreseen(send.Outcome{Result: result, Record: record}, request); isNeeded {
			t.Errorf("%d: %s", result, got.Detail)
		}
	}
}

// foreign is what others may write to the journal, or to a bucket.
const foreign = "\x1b[2J\u009b31m\u202eb"

const requestID = "abcdefghijklmnop" + foreign

// recordOf is the record of a name with a job; empty if it has none.
func recordOf(job string) *journal.Record {
	sent := time.Date(2026, 11, 23, 0, 24, 16, 0, time.UTC)
	return &journal.Record{
		Project: "proj_1" + foreign, Name: "docs" + foreign, JobID: job,
		Last: &journal.Request{ID: requestID, SentAt: sent},
	}
}

// Whoever writes to the journal or to a bucket does not control the terminal. Texts of the service: TestNewError_detail. What else each
// text must say, the fake CLI asks of each one that a test causes.
func TestTexts_foreign(t *testing.T) {
	t.Parallel()
	record, claimed := recordOf("job_2"+foreign), recordOf("")
	claimed.Claim = claimed.Last
	wanted := journal.Wanted{Project: "proj_1", Name: record.Name}
	texts := []Diagnostic{
		BesideAnother(send.Request{Wanted: wanted}, record),
		NameFromOther(Job{ID: "job_1", Project: "proj_1", Status: "active"}, record),
		DuplicateName(record.Name, "proj_1", "job_1", "job_2"),
		Adopted(send.Outcome{Job: &agentapi.Job{ID: "job_2"}, Record: record}, send.Request{Wanted: wanted}),
		{"A job", ListedName(record)}, ListedPending([]*journal.Record{claimed}), ListedUnknown([]*journal.Record{record}),
		JournalUnusable(errors.New(foreign)), FailedEarlier(Job{ID: "job_1", Project: "proj_1"}, requestID),
	}
	for _, job := range []string{"", "job_1"} { // a create, and a message
		wanted.JobID = job
		request := send.Request{Wanted: wanted, PlannedJob: "job_1"}
		for result := send.NoEffect; result <= send.Waiting; result++ {
			out := send.Outcome{Result: result, Record: record, Err: &send.LimitError{}}
			if result == send.OtherJob && job == "" {
				continue
			}
			foreseen, _ := Foreseen(out, request)
			if texts = append(texts, foreseen); result <= send.Closed {
				texts = append(texts, NotAccepted(out, request))
			}
		}
	}
	for _, d := range texts {
		if text := d.Summary + ": " + d.Detail; strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Errorf("not escaped: %q", text)
		}
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
		expired + "\n\nIts last status was \"canceled\\u000a\", which this version of the provider does not know, so it counts as still running. " +
			"Check the job in the service's dashboard: if it has finished, waiting again does not help.": {Err: timeout, LastStatus: "canceled\n"},
		expired + "\n\nThe last poll failed: the service responded with 503 Service Unavailable.": {Err: timeout, LastFault: busy},
		"The service responded with 400 Bad Request.":                                             {Err: refused, LastFault: refused},
		`The service responded with 400 Bad Request, error message "no", to every read for 1m1s.`: {Err: expiredKey, LastFault: expiredKey},
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
