// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
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

// A cause says what happened, and then what to check: the likeliest thing, and no other first.
func TestCause(t *testing.T) {
	t.Parallel()
	type call = agentapi.Error
	const ofOthers = "über\r\x1b[2J."
	const connection = "Check base_url, the network between"
	notSent, unavailable, create, message, get := agentapi.ErrNotSent, agentapi.ErrUnavailable, agentapi.OpCreate, agentapi.OpMessage, agentapi.OpGet
	for name, tc := range map[string]struct {
		err  error
		says string // the sentence; empty: any
		hint string // a part that no other hint has; empty: none
	}{
		"no connection":      {&call{Class: notSent, Err: errors.New("no such host"), Lasted: 57 * time.Second}, "No such host, tried for 57s.", connection},
		"interrupted":        {&call{Class: notSent, Err: context.Canceled}, "The run was interrupted.", ""},
		"timeouts":           {&call{Class: notSent, Err: &TimeoutError{"timeouts.create", time.Hour}}, "The configured timeouts.create (1h0m0s) expired.", ""},
		"timeouts of a read": {&call{Class: unavailable, Err: context.DeadlineExceeded}, "", connection},
		"a response lost":    {&call{Class: agentapi.ErrUnknownOutcome, Err: io.ErrUnexpectedEOF}, "Unexpected EOF.", ""},
		"500":                {&call{StatusCode: 500, Err: io.EOF}, "The service responded with 500 Internal Server Error, EOF.", ""},
		"409":                {&call{StatusCode: 409, Detail: "closed"}, `The service responded with 409 Conflict, error message "closed".`, ""},
		"401":                {&call{StatusCode: 401}, "", "the key may be unknown"},
		"402":                {&call{StatusCode: 402, Detail: "Buy more"}, "", "Check credits"},
		"403":                {&call{StatusCode: 403}, "", "the key may lack the required scope"},
		"413":                {&call{StatusCode: 413}, "", "Shorten the prompt."},
		"302":                {&call{StatusCode: 302, Detail: "/login"}, `The service responded with 302 Found, redirecting to "/login".`, "Redirects are not followed"},
		"404 for a create":   {&call{Op: create, StatusCode: 404}, "", "Check base_url, project_id and the key."},
		"404 for a message":  {&call{Op: message, StatusCode: 404}, "", "still keeps the job"},
		"410 for a read":     {&call{Op: get, StatusCode: 410}, "", "still keeps the job"},
		"410 for a message":  {&call{Op: message, StatusCode: 410}, "", ""},
		"base_url with /v2":  {&call{Op: create, StatusCode: 404, Endpoint: "POST https://x.invalid/v2/v2/agent/p/job"}, "", "Remove /v2 from base_url"},
		"pause too long":     {&call{Op: create, StatusCode: 429, Err: agentapi.ErrPauseTooLong}, "", "raise timeouts"},
		"the same, refresh":  {&call{Op: get, Class: unavailable, StatusCode: 429}, "", "Try again later."},
		"web page with 200":  {&call{StatusCode: 200, Err: agentapi.ErrWebPage}, "", "Something other than the agent service responded"},
		"web page with 503":  {&call{Class: unavailable, StatusCode: 503, Err: agentapi.ErrWebPage}, "", ""},
		"handshake":          {&call{Class: notSent, Err: agentapi.ErrHandshake}, "", "must offer TLS 1.2"},
		"proxy":              {&call{Class: agentapi.ErrRefused, Err: agentapi.ErrProxyRefused}, "", "Check HTTPS_PROXY"},
		"a wait":             {&wait.Error{JobID: "job_1", LastStatus: "a", Err: io.EOF}, `Job job_1: EOF after 0s, last status "a".`, ""},
		"the journal":        {&journal.Error{Op: "listed", Err: context.DeadlineExceeded}, "", "Check that this run can read and write there"},
		"nothing":            {errors.New(""), "", ""},
		"another kind":       {errors.New(ofOthers), `Über\u000d\u001b[2J.`, ""},
	} {
		says, got, _ := strings.Cut(cause(tc.err), "\n\n")
		if tc.says != "" && says != tc.says || !strings.Contains(got, tc.hint) || tc.hint == "" && got != "" {
			t.Errorf("%s: %q and the hint %q, want %q and %q", name, says, got, tc.says, tc.hint)
		}
	}
	if got := Sentence(errors.New("one error\nanother")); got != "One error; another." {
		t.Errorf("two errors: %q", got)
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
	message.Recipient = "job_1"
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
	// What to do after a refusal depends on whether a new job can help.
	refusal := func(class error, status int, isClosed bool) Diagnostic {
		failure := &agentapi.Error{Class: class, StatusCode: status, Err: io.EOF}
		return NotAccepted(send.Outcome{Result: send.NoEffect, Err: failure, BecameClosed: isClosed}, message)
	}
	check("a closed job", refusal(agentapi.ErrRefused, 409, true), "or add the prompt to ignore_changes.")
	check("another prompt may do", refusal(agentapi.ErrRefused, 404, false), "To start a new job with this prompt instead, change triggers.")
	check("a key that is not valid", refusal(agentapi.ErrRefused, 401, false), "Once that is fixed, apply again.")
	check("a rate limit", refusal(agentapi.ErrNotSent, 429, false), "To send the prompt, apply again.")
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
	for start, text := range map[string]Diagnostic{
		"The service refused the prompt": NotAccepted(send.Outcome{Err: failure}, request),
		"Äbäb":                           InvalidID.Because(errors.New(long), "Once that is fixed, apply again."),
	} {
		isWhole := strings.HasPrefix(text.Detail, start) && strings.HasSuffix(text.Detail, "Once that is fixed, apply again.")
		if len(text.Summary)+len(text.Detail) > 4000 || !utf8.ValidString(text.Detail) || !isWhole {
			t.Errorf("%d bytes, from %.80q to %q", len(text.Detail), text.Detail, text.Detail[max(0, len(text.Detail)-80):])
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
