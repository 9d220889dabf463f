// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wording

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/escape"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
)

// isAction reports whether an action sends the request. Such a request has no name, and so no
// record: running the action again sends it again.
func isAction(r send.Request) bool { return r.Name == "" }

const summaryNotAccepted = "Message to agent job not accepted"

// MessageToClosedJob describes a message that was not sent, because its job is closed. The plan did
// not replace the job, because another run might have sent the message.
const MessageToClosedJob Text = summaryNotAccepted + "\n" +
	"Job {job} {closed}. No other run has sent it the prompt, and this one did not send it either.\n\n" +
	"Plan and apply again: that starts a new job with the prompt."

// PromptNotPassed is for an action whose prompts are both null.
const PromptNotPassed Text = Text(InvalidPrompt) + "\n" +
	"Terraform passed neither prompt nor prompt_wo to the action, so nothing was sent to project {project}. " +
	"The value is null, or prompt_wo is ephemeral: apply -invoke passes no ephemeral value.\n\n" +
	"Give prompt_wo a value that is not ephemeral, or trigger the action by a resource."

// NotAccepted describes a request that the service has not accepted, as far as this run knows.
func NotAccepted(outcome send.Outcome, r send.Request) Diagnostic {
	summary, effect := "Agent job not created", "no job was started"
	target, create := target(r), r.Kind() == send.Create
	if !create {
		summary, effect = summaryNotAccepted, "the job is unchanged"
	}
	switch outcome.Result {
	case send.BeyondLimit:
		return BeyondLimit(outcome.Err, r)
	case send.Unknown, send.EarlierUnknown:
		return unknownOutcome(outcome, r)
	case send.Running, send.OtherJob, send.Unreadable:
		return stopped(outcome, r, false)
	case send.NotAdopted:
		return diagnostic("Agent job not created", fmt.Sprintf(
			"The plan was to adopt job %s in project %s, which is no longer the job of the name %s. Nothing was sent.",
			escape.Printable(r.PlannedJob), r.Project, Quote(r.Name)), "Plan and apply again.")
	case send.JournalUnusable:
		return diagnostic(summary,
			fmt.Sprintf("The prompt was not sent to %s. Another run may have sent it, which only the journal can show.", target),
			cause(outcome.Err), "Apply again, which sends the prompt unless another run has sent it.")
	}
	failure := new(agentapi.Error)
	errors.As(outcome.Err, &failure)
	again := "apply again."
	if isAction(r) {
		again = "run the action again."
	}
	what, next := "The prompt was not sent to", "To send the prompt, "+again
	switch {
	case failure.StatusCode == http.StatusTooManyRequests: // also one before the last attempt
		what = "The service's rate limit refused the prompt for"
	case !errors.Is(failure, agentapi.ErrRefused):
	case create || isAction(r) || agentapi.MustFix(failure):
		what, next = "The service refused the prompt for", "Once that is fixed, "+again
	default:
		what = "The service refused the prompt for"
		next = afterRefusal(agentapi.ReasonOf(failure), outcome.BecameClosed)
	}
	return diagnostic(summary, fmt.Sprintf("%s %s, so %s.", what, target, effect), cause(outcome.Err), next)
}

// afterRefusal says what to do about a message that was refused for a reason. isClosed: with this
// refusal, the job counts as closed.
func afterRefusal(reason agentapi.Reason, isClosed bool) string {
	const replace = "To start a new job with this prompt instead, change triggers."
	switch {
	case isClosed:
		return "The job has finished, so the provider sends it no more messages. The next apply starts a new job with the prompt, " +
			"which does not see the earlier prompts. To keep this job instead, restore the earlier prompt and apply, " +
			"or add the prompt to ignore_changes."
	case reason == agentapi.ReasonRequest:
		return "Shorten the prompt and apply. Unchanged, it is sent again, too. " + replace
	}
	return "The next apply sends the prompt again. " + replace
}

// target names where a prompt goes.
func target(r send.Request) string {
	if r.Kind() == send.Message {
		return "job " + Job{ID: r.JobID, Project: r.Project}.String()
	}
	return "project " + r.Project
}

// unknownOutcome describes a request that was sent, and no response shows its outcome.
func unknownOutcome(outcome send.Outcome, r send.Request) Diagnostic {
	sent := "The prompt was sent to " + target(r)
	why := cause(outcome.Err)
	if outcome.Result == send.EarlierUnknown && r.Kind() == send.Create {
		return stopped(outcome, r, false)
	}
	if outcome.Result == send.EarlierUnknown {
		sent = fmt.Sprintf("An earlier run sent this prompt to %s at %s", target(r), sentAt(outcome.Record))
	}
	if r.Kind() == send.Message {
		then, next := "The new prompt is in the state, so no apply sends it again.", decideMessage
		if isAction(r) {
			then, next = "Running the action again sends it again.", "First look for the message in the service's dashboard."
		}
		return diagnostic("Outcome of message to agent job unknown", sent+", and nothing shows whether it arrived. "+then, why,
			of(r.Project, r.JobID, next))
	}
	then, next := "Each apply fails, without sending it again, until you decide.", waysOut(r, outcome.Record)
	switch {
	case isAction(r):
		then, next = "Running the action again sends it again.", "First look for the job in the service's dashboard."
	case isForgotten(outcome.Record):
		then = "The next apply sends it again."
	}
	return diagnostic(summaryUnknownCreate, sent+", and no response shows whether a job was started. "+then, why, next)
}

// decideMessage says what to do about a message whose outcome is unknown.
const decideMessage = "Look for the message in the service's dashboard. If it is not there, change the prompt (any visible " +
	"change will do) and apply, which sends it.\nIf it is there, nothing is left to send. To end the warning of each plan, run these " +
	"commands and apply:" + removeLine + importLine

const (
	removeLine = "\n  terraform state rm ADDRESS  # or tofu"
	importLine = "\n  terraform import ADDRESS {project}/{id}  # or tofu"
)

// of completes a text about a job.
func of(project, id, text string) string {
	return strings.NewReplacer("{project}", project, "{id}", id).Replace(text)
}

// isForgotten reports whether no later run knows a record: there is no journal.
func isForgotten(record *journal.Record) bool {
	return record == nil || record.Last == nil || record.Last.ID == ""
}

// waysOut says what to do about a create with an unknown outcome.
func waysOut(r send.Request, record *journal.Record) string {
	remove, otherwise := removeLine, "\nIf it is not there, apply again."
	if r.JobID == "" {
		remove += "; only if the state has it"
	}
	if !isForgotten(record) {
		otherwise = "\nIf it is not there, send the prompt again: " + giveUp(record.Last.ID)
	}
	return "Look for the job in the service's dashboard. If it is there, import it and apply, which sends nothing:" +
		remove + of(r.Project, "JOB_ID", importLine) + otherwise
}

// giveUp says how to give up a request, in lines to copy.
func giveUp(id string) string {
	id = escape.Printable(id)
	return fmt.Sprintf("apply with one of these settings, in the environment or in the provider block:\n"+
		"  AGENT_JOURNAL_FORGET=%s\n  journal { forget = [%q] }", id, id)
}

// unreadable describes a job that the record of a name has, and that cannot be read.
func unreadable(outcome send.Outcome, r send.Request, effect string) Diagnostic {
	next := "Apply again once the job can be read."
	if errors.Is(outcome.Err, agentapi.ErrNotFound) {
		next += " " + Next{Request: outcome.Record.Last.ID, IsTainted: r.Kind() == send.Create}.ifGone()
	}
	return diagnostic("Agent job of an earlier run not readable",
		fmt.Sprintf("The name %s has job %s in project %s, which an earlier run sent a prompt at %s. That job cannot be read now. %s",
			Quote(r.Name), escape.Printable(outcome.Record.JobID), r.Project, sentAt(outcome.Record), effect),
		cause(outcome.Err), next)
}

// BeyondLimit describes a request beyond a limit. It claims nothing about the whole run: an apply
// plans each resource again while it sends others, and another alias counts separately.
func BeyondLimit(err error, r send.Request) Diagnostic {
	e := new(send.LimitError)
	errors.As(err, &e)
	summary, requests, check := "Too many new agent jobs", "new jobs", "for_each and count, and that the state is the right one"
	if e.Kind == send.Message {
		summary, requests, check = "Too many messages to agent jobs", "messages", "what changes the prompts, such as a new version of a module"
	}
	what := "The prompt was not sent to " + target(r) + ", because in this run this provider configuration has reached " + e.Setting +
		", failed requests included."
	switch {
	case e.Planning && e.IsSure:
		what = "With the prompt for " + target(r) + ", apply would send more " + requests + " than " + e.Setting + " allows. " +
			"For a destroy, add -refresh=false."
	case e.Planning:
		what = "With the prompt for " + target(r) + ", apply may send more " + requests + " than " + e.Setting + " allows. It stops at the limit."
	}
	return diagnostic(summary, what, "If this is intended, raise the limit or apply in parts with -target. Otherwise check "+check+".")
}

// Adopted describes a create whose name has the job of the same request.
func Adopted(outcome send.Outcome, r send.Request) Diagnostic {
	return diagnostic("Agent job adopted", fmt.Sprintf(
		"The name %s has job %s in project %s, which was last sent this prompt at %s. The resource adopts that job. Nothing was sent.",
		Quote(r.Name), outcome.Job.ID, r.Project, sentAt(outcome.Record)),
		"To start another job, change triggers. If you did not expect this, check whether another state, for example a copy, has the job.")
}

// AlreadySent describes a message that an earlier run had sent.
func AlreadySent(outcome send.Outcome, r send.Request) Diagnostic {
	return diagnostic(summaryAlreadySent, fmt.Sprintf(
		"An earlier run sent the new prompt to %s at %s, and the journal shows that it was accepted. It was not sent again.",
		target(r), sentAt(outcome.Record)), "To send it again, change the prompt (any visible change will do) and apply.")
}
