// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/escape"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// notCreated describes a create without an accepted response, beginning with whether a
// job may exist.
func notCreated(outcome send.Outcome, projectID string) (summary, detail string) {
	const summaryFailed = "Failed to create agent job"
	err, orphan := outcome.Err, outcome.Orphan
	switch outcome.Result {
	case send.BeyondLimit:
		return beyondLimit(err)
	case send.EarlierUnknown:
		return "Outcome of an earlier create unknown", wording.Paragraphs(
			fmt.Sprintf("An earlier run sent this request to project %s at %s, and its outcome is unknown: a job may have been started. "+
				"It is not sent again automatically: each apply fails until you decide.", projectID, orphan.SentAt.UTC().Format(time.RFC3339)),
			waysOut(projectID, orphan))
	case send.Unknown:
		return summaryFailed, wording.Paragraphs(
			fmt.Sprintf("The request was sent to project %s, but no response shows its outcome: a job may have been started. "+
				"It is not sent again automatically.", projectID),
			cause(err), waysOut(projectID, orphan))
	case send.Unreadable:
		id := escape.Printable(orphan.JobID)
		return summaryFailed, wording.Paragraphs(
			fmt.Sprintf("An earlier run started job %s in project %s for this prompt, but the job cannot be read now. "+
				"The prompt was not sent again.", id, projectID),
			cause(err), "Apply again once the service responds.",
			ifNotFound(err, "If the job no longer exists, "+giveUp(orphan)+"."))
	case send.JournalUnusable:
		return summaryFailed, notTakenOver(err, "project "+projectID)
	}
	return summaryFailed, wording.Paragraphs(notAccepted(err, "project "+projectID)+", so no job was started.", cause(err),
		applyAgain(err, "start the job"))
}

// notAccepted begins the detail about a request that had no effect. Before an
// attempt that was not sent, the service may have refused one with a 429.
func notAccepted(err error, target string) string {
	failure, known := errors.AsType[*agentapi.Error](err)
	switch {
	case known && failure.StatusCode == http.StatusTooManyRequests:
		return "The service's rate limit refused the request to " + target
	case errors.Is(err, agentapi.ErrNotSent):
		return "The request was not sent to " + target
	}
	return "The service refused the request to " + target
}

// mustFix reports whether a refusal has a reason that applying again does not change.
func mustFix(err error) bool {
	return errors.Is(err, agentapi.ErrKeyRejected) || errors.Is(err, agentapi.ErrPaymentRequired) ||
		errors.Is(err, agentapi.ErrWebPage) || errors.Is(err, agentapi.ErrRedirected)
}

// applyAgain says what applying again does, and what must come first.
func applyAgain(err error, what string) string {
	if mustFix(err) || errors.Is(err, agentapi.ErrNotFound) {
		return "Fix that first. Then apply again to " + what + "."
	}
	return "Apply again to " + what + "."
}

// ifNotFound leaves a text out unless the service does not know the job.
func ifNotFound(err error, text string) string {
	if errors.Is(err, agentapi.ErrNotFound) {
		return text
	}
	return ""
}

// waysOut says what to do about a create whose outcome is unknown.
func waysOut(projectID string, orphan *journal.Orphan) string {
	imports := fmt.Sprintf("Look for the job in the service's dashboard. If it is there, import it: "+
		"terraform (or tofu) import ADDRESS %s/JOB_ID\n", projectID)
	if orphan == nil {
		return imports + "Otherwise apply again, which sends the prompt again."
	}
	return imports + "If the state still has the job that it replaces, first run: terraform (or tofu) state rm ADDRESS\n" +
		"If it is not there, " + giveUp(orphan) + "; the next apply then sends the prompt again."
}

// giveUp names the ways to give up an entry.
func giveUp(orphan *journal.Orphan) string {
	return fmt.Sprintf("delete %s, or set journal { forget = [%s] } in the provider block, or AGENT_JOURNAL_FORGET=%s",
		escape.Printable(orphan.Where), wording.Quote(orphan.ID), orphan.ID)
}

// notTakenOver describes a request that was not sent because the journal could not
// show whether an earlier run had sent it.
func notTakenOver(err error, to string) string {
	return wording.Paragraphs(fmt.Sprintf("The prompt was not sent to %s. An earlier run may have sent it, "+
		"which only the journal can show.", to), cause(err),
		"Apply again: that takes over what an earlier run sent, or else sends the prompt.")
}

// messageNotSent describes a follow-up message that had no effect.
func messageNotSent(outcome send.Outcome, job string) (summary, detail string) {
	const summaryFailed = "Failed to send message to agent job"
	err := outcome.Err
	switch outcome.Result {
	case send.BeyondLimit:
		return beyondLimit(err)
	case send.Unreadable:
		return summaryFailed, wording.Paragraphs(
			fmt.Sprintf("An earlier run sent the new prompt to job %s, which accepted it, but the job cannot be read now. "+
				"It was not sent again; the state is unchanged.", job),
			cause(err), "Apply again once the service responds.",
			ifNotFound(err, "If the job no longer exists, start a new one with -replace=ADDRESS."))
	case send.JournalUnusable:
		return summaryFailed, notTakenOver(err, "job "+job)
	case send.NotOurs:
		return summaryFailed, wording.Paragraphs(
			fmt.Sprintf("The message was not sent to job %s. This run took the job over from an earlier one, "+
				"and a test must not send prompts to such a job.", job),
			"To let tests start their own jobs, set journal { enabled = false } in their provider block. "+
				"Outside of tests, apply again to send the message.")
	}
	next := applyAgain(err, "send the message")
	if errors.Is(err, agentapi.ErrRefused) && !mustFix(err) {
		next = "To start a new job with this prompt instead, apply with -replace=ADDRESS, or change triggers."
	}
	return summaryFailed, wording.Paragraphs(notAccepted(err, "job "+job)+"; the job and the state are unchanged.", cause(err), next)
}

// changeAndApply is how to repeat a message that did not arrive.
const changeAndApply = "Check the job in the service's dashboard. If the message is not there, " +
	"change the prompt (any change will do) and apply: that sends it."

// unconfirmedMessage describes a message whose outcome is unknown.
func unconfirmedMessage(outcome send.Outcome, job string) (summary, detail string) {
	why := "An earlier run sent it and did not record the outcome."
	if outcome.Err != nil {
		why = cause(outcome.Err)
	}
	return "Outcome of message to agent job unknown", wording.Paragraphs(
		fmt.Sprintf("The message was sent to job %s, but neither the response nor the job's status shows whether it arrived. "+
			"The new prompt is in the state, so it is not sent again automatically.", job),
		why, changeAndApply)
}

// notInvoked describes a prompt of an action without an accepted response.
func notInvoked(outcome send.Outcome, r send.Request) (summary, detail string) {
	summary = "Failed to start agent job"
	target, mayHave := "project "+r.ProjectID, "a job may have been started"
	if r.Kind == send.Message {
		summary = "Failed to send message to agent job"
		target, mayHave = fmt.Sprintf("job %s in project %s", r.JobID, r.ProjectID), "it may have arrived"
	}
	switch outcome.Result {
	case send.BeyondLimit:
		return beyondLimit(outcome.Err)
	case send.Unknown:
		return summary, wording.Paragraphs(
			fmt.Sprintf("The prompt was sent to %s, but no response shows its outcome: %s. It is not sent again automatically.",
				target, mayHave), cause(outcome.Err),
			"Check the service's dashboard before you run the action again, which sends the prompt again.")
	}
	return summary, wording.Paragraphs(notAccepted(outcome.Err, target)+", so the prompt had no effect.", cause(outcome.Err),
		"Run the action again to send the prompt.")
}

// beyondLimit describes a request beyond a limit.
func beyondLimit(err error) (summary, detail string) {
	const intended = "If this number is intended, raise the limit, or apply in parts with -target: each run counts from zero. "
	e := new(send.LimitError)
	errors.As(err, &e)
	destroy := ""
	if e.Planning {
		destroy = "If this is a destroy, add -refresh=false. Without it, Terraform plans the configuration before it plans the destroy."
	}
	if e.Kind == send.Create {
		return "Too many new agent jobs", wording.Paragraphs(whatWasSent(e, "job"),
			intended+"Otherwise check for_each and count, and whether the state should already contain the jobs.", destroy)
	}
	return "Too many messages to agent jobs", wording.Paragraphs(whatWasSent(e, "message"),
		intended+"Otherwise check what changes the prompts, for example a new version of a module.", destroy)
}

// whatWasSent claims nothing about the whole run: an apply plans each resource
// again while it sends others, and another alias counts separately.
func whatWasSent(e *send.LimitError, what string) string {
	beyond := fmt.Sprintf("This %s exceeds the limit of one run (%s). Nothing was sent for it", what, e.Setting)
	if e.Sent == [2]int64{} {
		return beyond + ", and nothing before it with this provider configuration."
	}
	return fmt.Sprintf("%s. Counted before it in this run, with this provider configuration and including requests that failed: "+
		"%d new jobs and %d messages.",
		beyond, e.Sent[send.Create], e.Sent[send.Message])
}

// jobTakenOver describes a create that an earlier run had sent.
func jobTakenOver(outcome send.Outcome) (summary, detail string) {
	return "Agent job of an earlier run taken over", fmt.Sprintf(
		"An earlier run started job %s in project %s for this prompt, but the state did not show it. "+
			"This resource takes the job over without sending the prompt again. No action is needed.",
		outcome.Job.ID, outcome.Orphan.Project)
}

// messageTakenOver describes a message that an earlier run had sent.
func messageTakenOver(job string) (summary, detail string) {
	return "Message of an earlier run taken over", fmt.Sprintf(
		"An earlier run sent the new prompt to job %s, which accepted it, but the state did not show that. It was not sent again. "+
			"No action is needed.", job)
}
