// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wording

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/escape"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
)

// isAction reports whether an action sends the request. Such a request has no name, and so no
// record: running the action again sends it again.
func isAction(r send.Request) bool { return r.Name == "" }

// target names where a prompt goes.
func target(r send.Request) string {
	if r.Kind() == send.Message {
		return "job " + Job{ID: r.Recipient, Project: r.Project}.String()
	}
	return "project " + r.Project
}

// ofRequest returns the diagnostic about what became of a request, with the values of the record of its name.
func (t Text) ofRequest(r send.Request, outcome send.Outcome, more ...string) Diagnostic {
	values := append(more, "{target}", target(r), "{name}", Quote(r.Name), "{project}", r.Project, "{id}", r.Recipient,
		"{planned}", escape.Printable(r.PlannedJob), "{cause}", cause(outcome.Err))
	if record := outcome.Record; record != nil {
		values = append(values, "{recorded}", escape.Printable(record.JobID), "{at}", sentAt(record))
		if record.Last != nil {
			values = append(values, "{forget}", giveUp(record.Last.ID), "{another}", startAnother(record.Last.ID))
		}
	}
	return t.with(values...)
}

// giveUp is how to give up a request, in lines to copy.
func giveUp(id string) string {
	id = escape.Printable(id)
	return fmt.Sprintf("one of these settings, in the environment or in the provider block:\n"+
		"  AGENT_JOURNAL_FORGET=%s\n  journal { forget = [%q] }", id, id)
}

// startAnother says how to start another job although nothing else changes. request is the one to give
// up; it is empty if no journal shows one.
func startAnother(request string) string {
	if request != "" {
		return "To start one without a change, apply with " + giveUp(request)
	}
	return "No journal shows its request, so an apply of a tainted resource with create_before_destroy starts a new job, too. " +
		"To start one without a change, run these commands:\n" +
		"  terraform untaint ADDRESS  # or tofu; only if the resource is tainted\n" +
		"  terraform apply -replace=ADDRESS  # or tofu"
}

const (
	notCreated  Text = "Agent job not created\n"
	notAccepted Text = "Message to agent job not accepted\n"
	// PromptNotPassed is for an action whose prompts are both null.
	PromptNotPassed Text = Text(InvalidPrompt) + "\n" +
		"Terraform passed neither prompt nor prompt_wo to the action, so nothing was sent to project {project}. " +
		"The value is null, or prompt_wo is ephemeral: apply -invoke passes no ephemeral value.\n\n" +
		"Give prompt_wo a value that is not ephemeral, or trigger the action by a resource."
)

// Why a request was not accepted, which follows notCreated or notAccepted, and what to do then. {again}
// is "apply", or "run the action".
const (
	notAdopted = "The plan was to adopt job {planned} in project {project}, which is no longer the job of the name {name}. " +
		"Nothing was sent.\n\nPlan and apply again."
	notSentBefore = "The plan was that another run had sent the prompt to {target}, or might have, and the job accepts no messages " +
		"any more. No record shows that another run has sent it, and this one did not send it either.\n\n" +
		"Plan and apply again: that starts a new job with the prompt."
	withoutJournal = "The prompt was not sent to {target}. Another run may have sent it, which only the journal can show.\n\n{cause}\n\n" +
		"Apply again, which sends the prompt unless another run has sent it."
	notSent = "The prompt was not sent to {target}, so {effect}.\n\n{cause}\n\nTo send the prompt, {again} again."

	refused         = "The service refused the prompt for {target}, so {effect}.\n\n{cause}\n\n"
	rateLimited     = "To send the prompt, {again} again."
	mustFix         = "Once that is fixed, {again} again."
	refusedByJob    = "The next apply sends the prompt again. To start a new job with this prompt instead, change triggers."
	refusedByClosed = "The job has finished, so the provider sends it no more messages. The next apply starts a new job with the prompt, " +
		"which does not see the earlier prompts. To keep this job instead, restore the earlier prompt and apply, " +
		"or add the prompt to ignore_changes."
)

// NotAccepted describes a request that the service has not accepted, as far as this run knows.
func NotAccepted(outcome send.Outcome, r send.Request) Diagnostic {
	isMessage := r.Kind() == send.Message
	switch result := outcome.Result; {
	case result == send.BeyondLimit:
		return BeyondLimit(outcome.Err, r)
	case result == send.Unknown, result == send.EarlierUnknown && isMessage:
		return unknown(outcome, r)
	case result.Stops():
		return stopped(outcome, r, "Nothing was sent.")
	}
	text, effect, again := notCreated, "no job was started", "apply"
	if isMessage {
		text, effect = notAccepted, "the job is unchanged"
	}
	if isAction(r) {
		again = "run the action"
	}
	return (text + whyNot(outcome, r)).ofRequest(r, outcome, "{effect}", effect, "{again}", again)
}

func whyNot(outcome send.Outcome, r send.Request) Text {
	failure := new(agentapi.Error)
	errors.As(outcome.Err, &failure)
	switch {
	case outcome.Result == send.PlanOutdated && r.Kind() == send.Message:
		return notSentBefore
	case outcome.Result == send.PlanOutdated:
		return notAdopted
	case outcome.Result == send.JournalUnusable:
		return withoutJournal
	case failure.StatusCode == http.StatusTooManyRequests: // also one before the last attempt
		return refused + rateLimited
	case !errors.Is(failure, agentapi.ErrRefused):
		return notSent
	case r.Kind() == send.Create || isAction(r) || failure.MustFix():
		return refused + mustFix
	case outcome.BecameClosed:
		return refused + refusedByClosed
	}
	return refused + refusedByJob
}

// What to do about a create or a message whose outcome is unknown.
const (
	decideCreate = "Look for the job in the service's dashboard. If it is there, import it and apply, which sends nothing:\n" +
		"  terraform state rm ADDRESS  # or tofu; only if the state has it\n" +
		"  terraform import ADDRESS {project}/JOB_ID  # or tofu\n"
	sendAgain     = "If it is not there, send the prompt again: apply with {forget}"
	decideMessage = "Look for the message in the service's dashboard. If it is not there, change the prompt (any visible change will do) " +
		"and apply, which sends it.\nIf it is there, nothing is left to send. To end the warning of each plan, run these commands and apply:\n" +
		"  terraform state rm ADDRESS  # or tofu\n" +
		"  terraform import ADDRESS {project}/{id}  # or tofu"
)

const (
	unknownCreate Text = "Outcome of agent job create unknown\n" +
		"The prompt was sent to {target}, and no response shows whether a job was started. "
	ofRecord  = "Each apply fails, without sending it again, until you decide.\n\n{cause}\n\n" + decideCreate + sendAgain
	forgotten = "The next apply sends it again.\n\n{cause}\n\n" + decideCreate + "If it is not there, apply again."
	ofAction  = "Running the action again sends it again.\n\n{cause}\n\nFirst look for it in the service's dashboard."

	unknownMessage Text = "Outcome of message to agent job unknown\n" +
		"The prompt was sent to {target}, and nothing shows whether it arrived. "
	earlierMessage Text = "Outcome of message to agent job unknown\n" +
		"An earlier run sent this prompt to {target} at {at}, and nothing shows whether it arrived. "
	inState = "The new prompt is in the state, so no apply sends it again.\n\n{cause}\n\n" + decideMessage
)

// unknown describes a request that was sent, and no response shows its outcome.
func unknown(outcome send.Outcome, r send.Request) Diagnostic {
	text := unknownCreate
	switch record := outcome.Record; {
	case outcome.Result == send.EarlierUnknown:
		text = earlierMessage + inState
	case isAction(r) && r.Kind() == send.Message:
		text = unknownMessage + ofAction
	case isAction(r):
		text += ofAction
	case r.Kind() == send.Message:
		text = unknownMessage + inState
	case record == nil || record.Last == nil || record.Last.ID == "": // there is no journal, so no later run knows of it
		text += forgotten
	default:
		text += ofRecord
	}
	return text.ofRequest(r, outcome)
}

// What a limit does to a request. It claims nothing about the whole run: an apply plans each resource
// again while it sends others, and another alias counts separately.
const (
	tooManyJobs     Text = "Too many new agent jobs\n"
	tooManyMessages Text = "Too many messages to agent jobs\n"

	limitReached = "The prompt was not sent to {target}, because in this run this provider configuration has reached {limit}, " +
		"failed requests included.\n\n" + raiseLimit
	limitExceeded = "With the prompt for {target}, apply would send more than {limit} allows. For a destroy, add -refresh=false." +
		"\n\n" + raiseLimit
	limitPerhaps = "With the prompt for {target}, apply may send more than {limit} allows. It stops at the limit.\n\n" + raiseLimit
	raiseLimit   = "If this is intended, raise the limit or apply in parts with -target. Otherwise check for_each, count and the " +
		"prompts, and that the state is the right one."
)

// BeyondLimit describes a request beyond a limit.
func BeyondLimit(err error, r send.Request) Diagnostic {
	e := new(send.LimitError)
	errors.As(err, &e)
	text := tooManyJobs
	if e.Kind == send.Message {
		text = tooManyMessages
	}
	switch {
	case e.Planning && e.IsSure:
		text += limitExceeded
	case e.Planning:
		text += limitPerhaps
	default:
		text += limitReached
	}
	return text.with("{target}", target(r), "{limit}", e.Setting)
}

const (
	adopted Text = "Agent job adopted\n" +
		"The name {name} has job {recorded} in project {project}, which was last sent this prompt at {at}. The resource adopts that job. " +
		"Nothing was sent.\n\nTo start another job, change triggers. If you did not expect this, check whether another state, for example " +
		"a copy, has the job."
	alreadySent Text = "Message of an earlier run counts as sent\n" +
		"An earlier run sent the new prompt to {target} at {at}, and the journal shows that it was accepted. It was not sent again.\n\n" +
		"To send it again, change the prompt (any visible change will do) and apply."
)

// Adopted describes a create whose name has the job of the same request.
func Adopted(outcome send.Outcome, r send.Request) Diagnostic {
	return adopted.ofRequest(r, outcome)
}

// AlreadySent describes a message that an earlier run had sent.
func AlreadySent(outcome send.Outcome, r send.Request) Diagnostic {
	return alreadySent.ofRequest(r, outcome)
}
