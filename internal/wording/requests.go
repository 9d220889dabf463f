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
			escape.Printable(r.PlannedJob), r.Project, Quote(r.Name)), "Plan again.")
	case send.JournalUnusable:
		return diagnostic(summary,
			fmt.Sprintf("The prompt was not sent to %s. Another run may have sent it, which only the journal can show.", target),
			cause(outcome.Err), "Apply again: that adopts what an earlier run has started, or else sends the prompt.")
	}
	failure := new(agentapi.Error)
	errors.As(outcome.Err, &failure)
	what, next := "The prompt was not sent to", "Apply again to send the prompt."
	if isAction(r) {
		next = "Run the action again to send the prompt."
	}
	switch {
	case failure.StatusCode == http.StatusTooManyRequests: // also one before the last attempt
		what = "The service's rate limit refused the prompt for"
	case !errors.Is(failure, agentapi.ErrRefused):
	case create || isAction(r) || agentapi.MustFix(failure):
		what, next = "The service refused the prompt for", "Once that is fixed, "+strings.ToLower(next[:1])+next[1:]
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
		return "The job has finished, so the provider sends it no more messages: the next apply starts a new job with the prompt, " +
			"which does not see the earlier prompts. To keep this job instead, restore the earlier prompt and apply, " +
			"or add the prompt to ignore_changes."
	case reason == agentapi.ReasonRequest:
		return "Shorten the prompt and apply: that sends it to this job. Unchanged, it is sent again, too.\n" + replace
	}
	return "The next apply sends the prompt again.\n" + replace
}

// target names where a prompt goes.
func target(r send.Request) string {
	if r.Kind() == send.Message {
		return "job " + Job{ID: r.Job, Project: r.Project}.String()
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
		then, next := "The new prompt is in the state, so no apply sends it again. "+
			"If the job had finished before, and the next plan shows that it is active, the message arrived.", decideMessage
		if isAction(r) {
			then, next = "Running the action again sends it again.", "First look for the message in the service's dashboard."
		}
		return diagnostic("Outcome of message to agent job unknown", sent+", and nothing shows whether it arrived. "+then, why,
			strings.NewReplacer("{project}", r.Project, "{id}", r.Job).Replace(next))
	}
	then, next := "Each apply fails, without sending it again, until you decide.", waysOut(r.Project, outcome.Record)
	switch {
	case isAction(r):
		then, next = "Running the action again sends it again.", "First look for the job in the service's dashboard."
	case isForgotten(outcome.Record):
		then = "The next apply sends it again."
	}
	return diagnostic(summaryUnknownCreate, sent+", and no response shows whether a job was started. "+then, why, next)
}

// decideMessage says what to do about a message whose outcome is unknown.
const decideMessage = "Check the job in the service's dashboard. If the message is not there, " +
	"change the prompt (any visible change will do) and apply: that sends it.\n" +
	"If it is there, a new prompt ends the warning in each plan, and so do these commands and an apply, which send nothing:\n" +
	"  terraform (or tofu) state rm ADDRESS\n  terraform (or tofu) import ADDRESS {project}/{id}"

// removeFirst is said of an import: it fails while the state has the resource, which can be
// tainted, or have the job that the create was to replace.
const removeFirst = "If the state has the resource, first run: terraform (or tofu) state rm ADDRESS\n"

// isForgotten reports whether no later run knows a record: there is no journal.
func isForgotten(record *journal.Record) bool {
	return record == nil || record.Last == nil || record.Last.ID == ""
}

// waysOut says what to do about a create with an unknown outcome.
func waysOut(projectID string, record *journal.Record) string {
	imports := fmt.Sprintf("Look for the job in the service's dashboard. If it is there, import it and apply, which sends nothing: "+
		"terraform (or tofu) import ADDRESS %s/JOB_ID\n"+removeFirst, projectID)
	if isForgotten(record) {
		return imports + "Otherwise apply again."
	}
	return imports + "If it is not there, give the request up: " + giveUp(record) + ". The next apply then sends the prompt again."
}

// giveUp names the ways to give up the last request of a name.
func giveUp(record *journal.Record) string { return giveUpRequest(record.Last.ID) }

func giveUpRequest(id string) string {
	id = escape.Printable(id)
	// No punctuation may follow the id, because a person would copy it, too.
	return fmt.Sprintf("set AGENT_JOURNAL_FORGET=%s or journal { forget = [%q] } in the provider block", id, id)
}

// unreadable describes a job that the record of a name has, and that cannot be read.
func unreadable(outcome send.Outcome, r send.Request, effect string) Diagnostic {
	next := "Apply again once the service responds."
	if errors.Is(outcome.Err, agentapi.ErrNotFound) {
		next += " " + Next{Request: outcome.Record.Last.ID, IsTainted: r.Kind() == send.Create}.ifGone()
	}
	return diagnostic("Agent job of an earlier run not readable",
		fmt.Sprintf("The name %s has job %s in project %s, which an earlier run sent a prompt at %s. The job cannot be read now. %s",
			Quote(r.Name), escape.Printable(outcome.Record.Job), r.Project, sentAt(outcome.Record), effect),
		cause(outcome.Err), next)
}

// BeyondLimit describes a request beyond a limit. It claims nothing about the whole run: an apply
// plans each resource again while it sends others, and another alias counts separately.
func BeyondLimit(err error, r send.Request) Diagnostic {
	e := new(send.LimitError)
	errors.As(err, &e)
	summary, request, check := "Too many new agent jobs", "job", "for_each and count, and whether the state should already contain the jobs"
	if e.Kind == send.Message {
		summary, request = "Too many messages to agent jobs", "message"
		check = "what changes the prompts, for example a new version of a module"
	}
	destroy, unsure := "", ""
	if e.Planning && !e.IsSure {
		unsure = "The plan does not know yet how much apply sends. Apply stops at the limit."
	}
	if e.Planning {
		destroy = "If this is a destroy, add -refresh=false. Without it, Terraform plans the configuration before it plans the destroy."
	}
	return diagnostic(summary,
		fmt.Sprintf("%s: the prompt for %s was not sent, because it would be %s %d of this run. Sent until then with this "+
			"provider configuration, including requests that failed: %d new jobs and %d messages.",
			e.Setting, target(r), request, e.Max+1, e.Sent[send.Create], e.Sent[send.Message]),
		unsure,
		"If this number is intended, raise the limit, or apply in parts with -target: each run counts from zero. Otherwise check "+check+".",
		destroy)
}

// Adopted describes a create whose name has the job of the same request.
func Adopted(outcome send.Outcome, r send.Request) Diagnostic {
	return diagnostic("Agent job adopted", fmt.Sprintf(
		"The name %s has job %s in project %s, which was last sent this prompt at %s. The resource adopts that job, and nothing was sent.",
		Quote(r.Name), outcome.Job.ID, r.Project, sentAt(outcome.Record)),
		"To start another job, change triggers. If no state was lost, no run was killed, and this apply does not replace or move the resource, "+
			"check whether another state, for example a copy, has the job.")
}

// AlreadySent describes a message that an earlier run had sent.
func AlreadySent(outcome send.Outcome, r send.Request) Diagnostic {
	return diagnostic(summaryAlreadySent, fmt.Sprintf(
		"An earlier run sent the new prompt to %s at %s, which accepted it, but the state did not show that. It was not sent again.",
		target(r), sentAt(outcome.Record)), "To send it again, change the prompt (any visible change will do) and apply.")
}
