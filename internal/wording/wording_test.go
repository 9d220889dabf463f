// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wording

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
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
	request := send.Request{Kind: send.Message, ProjectID: "proj_1", JobID: "job_1"}
	closed := request
	closed.Closed = true
	const newJob = "the next apply starts a new job"
	for _, test := range []struct {
		status   int
		request  send.Request
		has, not string
	}{
		{409, closed, "The job has finished, so", "-replace"}, {409, closed, newJob, "another prompt"},
		{422, closed, "has refused another prompt, too, so", "-replace"}, {422, closed, newJob, "shorten"},
		{422, request, "change or shorten it and apply: that sends it to this job", newJob}, {422, request, "Unchanged, it is sent again", newJob},
		{409, request, "The next apply sends the prompt again.", newJob},
	} {
		refusal := send.Outcome{Result: send.NoEffect, Err: &agentapi.Error{Op: agentapi.OpMessage, Class: agentapi.ErrRefused, StatusCode: test.status}}
		if got := NotAccepted(refusal, test.request, ApplyAgain).Detail; !strings.Contains(got, test.has) || strings.Contains(got, test.not) {
			t.Errorf("%d: %q is missing, or %q is not, in: %s", test.status, test.has, test.not, got)
		}
	}
	for want, failures := range map[string][]agentapi.Error{
		"Once that is fixed, apply again to send the prompt.": {
			{Class: agentapi.ErrRefused, StatusCode: 401}, {Class: agentapi.ErrRefused, StatusCode: 402},
			{Class: agentapi.ErrRefused, StatusCode: 302}, {Class: agentapi.ErrRefused, StatusCode: 400, Err: agentapi.ErrWebPage},
		},
		"Apply again to send the prompt.": {
			{Class: agentapi.ErrNotSent, Err: io.EOF}, {Class: agentapi.ErrNotSent, StatusCode: 429, Err: context.Canceled},
		},
		"To start a new job with this prompt instead, apply with -replace=ADDRESS, or change triggers.": {
			{Op: agentapi.OpMessage, Class: agentapi.ErrRefused, StatusCode: 404}, {Op: agentapi.OpMessage, Class: agentapi.ErrRefused, StatusCode: 409},
			{Op: agentapi.OpMessage, Class: agentapi.ErrRefused, StatusCode: 400},
		},
	} {
		for _, failure := range failures {
			outcome := send.Outcome{Result: send.NoEffect, Err: &failure}
			if got := NotAccepted(outcome, request, ApplyAgain).Detail; !strings.HasSuffix(got, "\n"+want) {
				t.Errorf("%+v: %s", failure, got)
			}
		}
	}
}

// A text claims only what holds on every path that leads to it, and what it advises works there.
func TestTexts_claimNoMoreThanIsKnown(t *testing.T) {
	t.Parallel()
	job := Job{ID: "job_1", Project: "proj_1", Status: "archived"}
	entry := func(status store.Status, jobID, name string) *journal.Earlier {
		return &journal.Earlier{Entry: store.Entry{Status: status, Project: "proj_1", JobID: jobID, JobName: name}, Where: "entry"}
	}
	taken := send.Outcome{Result: send.TakenOver, Job: &agentapi.Job{ID: "job_1"}, Earlier: entry(store.Accepted, "job_1", "")}
	other := send.Outcome{Result: send.OtherPrompt, Earlier: entry(store.Accepted, "job_1", "docs")}
	announce := func(kind send.Kind, e *journal.Earlier) Diagnostic {
		return Announcement(kind, "proj_1", "", []*journal.Earlier{e})
	}
	namesake := func(e *journal.Earlier) Diagnostic { return Namesakes("proj_1", []*journal.Earlier{e}) }
	for name, test := range map[string]struct {
		text     Diagnostic
		has, not string
	}{
		"a job that a copy or a test has":           {TakenOver(taken, send.Request{}), "belongs to another state", "No action"},
		"the same, planned":                         {announce(send.Create, entry(store.Accepted, "job_1", "")), "belongs to another state", ""},
		"a message that is to be repeated":          {TakenOver(taken, send.Request{Kind: send.Message}), "To send it again, change the prompt", "No action"},
		"a message that may have had no effect":     {announce(send.Message, entry(store.Pending, "", "")), "sends the prompt only if that request had no effect", "sends nothing"},
		"an archived job may be unfinished":         {Archived.Of(job, nil), "its work may be unfinished", "No action"},
		"the state may not be stored":               {JournalNotWritten(io.EOF, job), "If this state cannot be stored", "No action"},
		"a prompt with a time":                      {NotAccepted(other, send.Request{}, ApplyAgain), "had a time in it, import the job", ""},
		"triggers with a time":                      {namesake(entry(store.Accepted, "job_1", "docs")), "If you cannot, import it: terraform (or tofu) import ADDRESS proj_1/job_1", ""},
		"a namesake that is not taken over":         {namesake(entry(store.Unknown, "", "docs")), "restore the triggers and plan", "takes it over"},
		"a replacement may take another job over":   {NewJob.Of(job, nil), "the prompt goes to another job", "starts a new job"},
		"a replacement of an active job, too":       {ActiveReplaced.Of(job, nil), "sends nothing to it", "starts a new job"},
		"an ignored prompt may have changed":        {FailedEarlier.Of(job, nil), "no new prompt", "unchanged"},
		"an imported job may accept no messages":    {PromptRecorded.Of(job, nil), "a new prompt", "are sent"},
		"a message to a job that a resource has":    {Diagnostic{Detail: NotInState}, "stores no job", "does not contain"},
		"a job that has finished since it was read": {ActiveRemoved.Of(job, nil), "may still be running", "keeps running"},
		"a job that has finished before the error":  {PanickedAfterStart(job, ""), "if the job has not finished", ""},
		"a failed job whose prompt is then changed": {Diagnostic{Detail: TaintedFailed}, "starts a new job", "same prompt"},
	} {
		if !strings.Contains(test.text.Detail, test.has) || test.not != "" && strings.Contains(test.text.Detail, test.not) {
			t.Errorf("%s: %q is missing, or %q is not, in: %s", name, test.has, test.not, test.text.Detail)
		}
	}
}

// The apply that sent a message without a response and later plans name a way out that sends nothing.
func TestUnknownMessageNamesAWayOut(t *testing.T) {
	t.Parallel()
	request := send.Request{Kind: send.Message, ProjectID: "proj_1", JobID: "job_1"}
	applied := NotAccepted(send.Outcome{Result: send.Unknown}, request, ApplyAgain)
	planned := Unconfirmed.Of(Job{ID: "job_1", Project: "proj_1"}, nil)
	for _, text := range []string{applied.Detail, planned.Detail} {
		if !strings.HasSuffix(text, "\n  terraform (or tofu) state rm ADDRESS\n  terraform (or tofu) import ADDRESS proj_1/job_1") {
			t.Error(text)
		}
	}
}

// Whoever writes to the journal or to a bucket does not control the terminal. Texts of the service: TestNewError_detail.
func TestForeignText_isEscaped(t *testing.T) {
	t.Parallel()
	const foreign, shown = "\x1b[2J\u009b31m\u202eb", `\u001b[2J\u009b31m\u202eb`
	entry := &journal.Earlier{Entry: store.Entry{JobID: foreign, Project: foreign}, Where: foreign}
	entries := []*journal.Earlier{entry}
	outcome := send.Outcome{Result: send.Unreadable, Job: new(agentapi.Job), Earlier: entry, Err: &agentapi.Error{StatusCode: 404}}
	message := NotAccepted(outcome, send.Request{Kind: send.Message}, ApplyAgain).Detail
	create := NotAccepted(outcome, send.Request{}, ApplyAgain).Detail
	if !strings.HasSuffix(message, " If the job no longer exists, start a new one with -replace=ADDRESS.") || !strings.Contains(create, "exists, delete ") {
		t.Errorf("an unread job: %s\n%s", message, create)
	}
	for name, text := range map[string]string{
		"a plan":                     Announcement(send.Create, "proj_1", "", entries).Detail,
		"a plan that keeps a job":    OtherJob(Job{}, entries).Detail,
		"a take-over":                TakenOver(outcome, send.Request{}).Detail,
		"a create of an unread job":  create,
		"a message to an unread job": message,
		"a query":                    ListedName(entry),
		"a query of pending entries": ListedPending(entries).Detail,
		"an unusable journal":        JournalUnusable(errors.New(foreign)).Detail,
	} {
		if !strings.Contains(text, shown) || strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// Equal resources are blocked by one entry each, and the plan names them all (G27).
func TestAnnouncement_allUnknown(t *testing.T) {
	t.Parallel()
	unknown := func(id string) *journal.Earlier {
		return &journal.Earlier{Name: store.Name{ID: id}, Entry: store.Entry{Status: store.Unknown}}
	}
	plan := Announcement(send.Create, "proj_1", "", []*journal.Earlier{unknown("one"), unknown("two")})
	if !strings.Contains(plan.Detail, "AGENT_JOURNAL_FORGET=one,two") {
		t.Error(plan.Detail)
	}
}

// An unknown create that only has the name of a planned one had another prompt.
func TestAnnouncement_otherPromptUnknown(t *testing.T) {
	t.Parallel()
	named := []*journal.Earlier{{Entry: store.Entry{Status: store.Unknown, JobName: "docs", Prompt: store.Hash("A")}}}
	for prompt, want := range map[string]string{"A": "sent this prompt", "B": `sent a prompt under the name "docs"`} {
		planned := Announcement(send.Create, "proj_1", store.Hash(prompt), named).Detail
		applied := NotAccepted(send.Outcome{Result: send.EarlierUnknown, Earlier: named[0]}, send.Request{PromptHash: store.Hash(prompt)}, ApplyAgain).Detail
		if !strings.Contains(planned, want) || !strings.Contains(applied, want) {
			t.Errorf("%s: %s\n%s", prompt, planned, applied)
		}
	}
}

func TestReason(t *testing.T) {
	t.Parallel()
	if got := cause(&journal.Error{Op: "listed", Err: context.DeadlineExceeded}); !strings.Contains(got, "\n\nCheck that this run can list") {
		t.Errorf("a journal that does not respond: %s", got)
	}
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
	timeout := &TimeoutError{"timeouts.update", time.Minute}
	const expired = "The configured timeouts.update (1m0s) expired."
	refused := &agentapi.Error{Op: agentapi.OpGet, Class: agentapi.ErrRefused, StatusCode: 400}
	busy := &agentapi.Error{Op: agentapi.OpGet, Class: agentapi.ErrUnavailable, StatusCode: 503}
	expiredKey := &agentapi.Error{Op: agentapi.OpGet, Class: agentapi.ErrRefused, StatusCode: 400, Detail: "no", Lasted: 61 * time.Second}
	for want, err := range map[string]wait.Error{
		expired: {Err: timeout, LastStatus: agentapi.StatusActive},
		expired + "\n\nIts last status was \"a\\u000ab\".":                                        {Err: timeout, LastStatus: "a\nb"},
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
