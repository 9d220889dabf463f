// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wording

import (
	"fmt"

	"github.com/agentjobs/terraform-provider-agent/internal/escape"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
)

// What a plan says of a job in the state.
const (
	NewJob Text = "New prompt starts a new agent job\n" +
		"Job {job} {closed}, so apply replaces it: a new prompt goes to another job, which does not see the earlier prompts. " +
		"Write a prompt that is complete without them. " +
		"Without create_before_destroy, the old job leaves the state even if the prompt is then refused or not sent."
	ActiveReplaced Text = "Active agent job will be replaced\n" +
		"Apply removes job {job} (status {status}) from the state and sends nothing to it. " +
		"The service cannot cancel a job, so it keeps running and may still open a pull request."
	PromptNotKnownClosed Text = "Prompt not known yet\n" +
		"Job {job} {closed}. If the prompt is new, apply sends nothing, and fails unless the journal shows that it was sent to this job. " +
		"To start a new job with it, change triggers."
	FailedUnnoticed Text = "Agent job failed\n" +
		"Job {job} failed, and no run waited for it. Apply sends nothing because of that.\n\n" +
		"Set on_failure in the wait block: with \"error\" each apply fails until there is another job, \"retry\" starts one, and \"warn\" ends " +
		"this warning."
	ArchivedUnnoticed Text = "Agent job archived\n" +
		"Job {job} " + archivedUnseen + " No run waited for it. Apply sends nothing because of that.\n\n" +
		"Set on_failure in the wait block: with \"error\" each apply fails until there is another job, and \"warn\" ends this warning."
	Unconfirmed Text = "Message to agent job unconfirmed\n" +
		"An earlier apply sent the prompt to job {job} and received no response. It is not sent again automatically.\n\n" +
		decideMessage
)

// FailedEarlier describes a job that counts as failed and stays in the state, so that the apply fails. request is
// the job's last one.
func FailedEarlier(job Job, request string) Diagnostic {
	summary, what := failed(job, "failed.")
	return diagnostic(summary,
		fmt.Sprintf("Job %s %s This plan has no new prompt for it, so apply sends nothing and fails.", job, what),
		Next{Request: request}.another(instead)+keepFailed)
}

const (
	summaryUnknownCreate = "Outcome of agent job create unknown"
	summaryAlreadySent   = "Message of an earlier run counts as sent"
	summaryOtherPrompt   = "Name has an agent job with another prompt"
	summaryNameOtherJob  = "Name has another agent job"
)

// WillStop says in a plan why the record of a name will stop its apply.
func WillStop(verdict journal.Verdict, r send.Request, record *journal.Record) Diagnostic {
	effect := "Apply sends nothing and fails until you decide."
	if verdict == journal.OtherPrompt {
		effect = send.OtherPromptText
	}
	return stopped(verdict, r, record, effect)
}

// stopped describes what the record of a name says that stops a request, with the effect on the
// run.
func stopped(verdict journal.Verdict, r send.Request, record *journal.Record, effect string) Diagnostic {
	name, at, job := Quote(r.Name), sentAt(record), Job{ID: escape.Printable(record.Job), Project: r.Project}
	remove := ""
	if verdict == journal.OtherJob && record.IsUnknownCreate() {
		verdict, remove = journal.UnknownCreate, fmt.Sprintf(
			"The state has job %s. For the other one, first run: terraform (or tofu) state rm ADDRESS", r.Job)
	}
	switch verdict {
	case journal.OtherPrompt:
		return diagnostic(summaryOtherPrompt,
			fmt.Sprintf("The name %s has job %s, which was last sent another prompt, at %s. %s", name, job, at, effect),
			fmt.Sprintf("If only the address of the resource has changed, add a moved block. If another resource leaves the name, apply again.\n"+
				"To keep the job, restore its prompt and apply: that adopts it, and a later change is a new prompt for it. "+
				"If its prompt cannot be restored, for example because it had a time in it, import the job, which stores the new prompt without "+
				"sending it: terraform (or tofu) import ADDRESS %s/%s\n"+removeFirst+
				"To start a new job instead, give the earlier one up: %s.", r.Project, job.ID, giveUp(record)))
	case journal.OtherJob:
		return diagnostic(summaryNameOtherJob,
			fmt.Sprintf("In the journal, the name %s has job %s, and not job %s. The state may be an older one, or a run that replaced the job may "+
				"have been killed. %s", name, job, r.Job, effect),
			fmt.Sprintf("To go on with job %s, run these commands and apply, which sends nothing:\n"+
				"  terraform (or tofu) state rm ADDRESS\n  terraform (or tofu) import ADDRESS %s/%s\n"+
				"To keep job %s, give the other one up: %s.", job.ID, r.Project, job.ID, r.Job, giveUp(record)))
	case journal.UnknownCreate:
		return diagnostic(summaryUnknownCreate,
			fmt.Sprintf("An earlier run sent a prompt under the name %s to project %s at %s, and no response shows whether a job was started. %s",
				name, r.Project, at, effect), remove, waysOut(r.Project, record))
	case journal.Send, journal.Wait, journal.Adopt, journal.AlreadySent, journal.UnknownMessage:
	}
	return diagnostic("Outcome of another run's request unknown", fmt.Sprintf(
		"Another run sends a prompt under the name %s in project %s, and has not recorded the outcome. Apply waits for it.", name, r.Project))
}

// BesideAnother says in a plan that a create starts a job although its name has one.
func BesideAnother(r send.Request, record *journal.Record) Diagnostic {
	return diagnostic("Name has an agent job with other arguments",
		fmt.Sprintf("The name %s has job %s in project %s, which was started with other triggers or arguments and last sent a prompt at %s. "+
			"Apply starts another job, and sends nothing to that one.", Quote(r.Name), escape.Printable(record.Job), r.Project, sentAt(record)),
		"To keep the earlier job instead, restore its arguments and apply: that adopts it.")
}

// NameFromOther announces that an imported job gets a name that has another one in the journal.
func NameFromOther(job Job, record *journal.Record) Diagnostic {
	return diagnostic(summaryNameOtherJob,
		fmt.Sprintf("In the journal, the name %s has job %s in project %s, and the resource has imported job %s. Apply gives the name to the "+
			"imported job and sends nothing to the other one.", Quote(record.Name), escape.Printable(record.Job), job.Project, job),
		"If you want the other job, import that one.")
}
