// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wording

import (
	"errors"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/escape"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
)

// What a plan says of a job in the state.
const (
	PromptStartsJob Text = "New prompt starts a new agent job\n" +
		"Job {job} {closed}, so apply sends the new prompt to another job, which does not see the earlier prompts. " +
		"Without create_before_destroy, the old job leaves the state even if the prompt is then refused or not sent.\n\n" +
		"Write a prompt that is complete without the earlier ones."
	ActiveReplaced Text = activeLeaves +
		"Apply removes job {job} (status {status}) from the state and sends nothing to it. " +
		"The service cannot cancel a job, so it keeps running and may still open a pull request."
	GivenUpLate Text = "Agent job not replaced\n" +
		"The last request of job {job} is given up, but this run has not read the job: -refresh=false is set, or the plan was made " +
		"before. Apply neither replaces the job nor sends anything because of that.\n\nPlan and apply again, without -refresh=false."
	FailedUnnoticed Text = "Agent job failed\n" +
		"Job {job} failed, and no run waited for it. Apply sends nothing because of that.\n\n" +
		"Set on_failure in the wait block: \"warn\" ends this warning, \"retry\" starts another job, and with \"error\" each " +
		"apply fails until there is another one."
	ArchivedUnnoticed Text = "Agent job archived\n" +
		"Job {job} was archived before any run saw it complete, so it counts as failed. Check it in the service's dashboard: its work may " +
		"be unfinished. No run waited for it. Apply sends nothing because of that.\n\n" +
		"Set on_failure in the wait block: \"warn\" ends this warning, and with \"error\" each apply fails until there is another job."
	Unconfirmed Text = "Message to agent job unconfirmed\n" +
		"An earlier apply sent the prompt to job {job} and received no response. It is not sent again automatically.\n\n" + decideMessage

	failedEarlier Text = "Agent job failed\n" +
		"Job {job} failed. This plan has no new prompt for it, so apply sends nothing and fails.\n\n" + keepFailed + "{another}"
	archivedEarlier Text = "Agent job archived\n" +
		"Job {job} was archived before any run saw it complete, so it counts as failed. Check it in the service's dashboard: its work may " +
		"be unfinished. This plan has no new prompt for it, so apply sends nothing and fails.\n\n" + keepFailed + "{another}"

	activeLeaves Text = "Active agent job leaves the state\n"
)

// FailedEarlier describes a job that counts as failed and stays in the state, so that the apply fails. request is
// the job's last one.
func FailedEarlier(job Job, request string) Diagnostic {
	if job.Status == string(agentapi.StatusArchived) {
		return archivedEarlier.about(job, nil, request)
	}
	return failedEarlier.about(job, nil, request)
}

// What the record of a name says that stops a request. {effect} is what that does to a plan or an apply.
const (
	runningJob Text = "Name has a running agent job\n" +
		"The name {name} has job {recorded} in project {project}, which is still running and was sent another prompt at {at}. While it runs, " +
		"no other job starts under the name with the same triggers. {effect}\n\n" +
		"Once the job has finished, apply again, which starts another one with the new prompt. To start that now, change triggers. " +
		"To keep the running job instead, restore its prompt and apply, which adopts it."
	otherJob Text = "Name has another agent job\n" +
		"In the journal, the name {name} has job {recorded} in project {project}; in the state, it has job {id}. The state may be an older " +
		"one, or a run that replaced the job may have been killed. {effect}\n\n" +
		"To keep job {recorded}, run these commands and apply, which sends nothing:\n" +
		"  terraform state rm ADDRESS  # or tofu\n" +
		"  terraform import ADDRESS {project}/{recorded}  # or tofu\n\n" +
		"To keep job {id}, apply with {forget}"
	earlierCreate Text = "Outcome of agent job create unknown\n" +
		"An earlier run sent a prompt under the name {name} to project {project} at {at}, and no response shows whether a job was started. " +
		"{effect}\n\n" + decideCreate + sendAgain
	unreadableJob Text = "Agent job of an earlier run not readable\n" +
		"The name {name} has job {recorded} in project {project}, which an earlier run sent a prompt at {at}. That job cannot be read now. " +
		"{effect}\n\n{cause}\n\nApply again once the job can be read."
	otherRun Text = "Outcome of another run's request unknown\n" +
		"Another run sends a prompt under the name {name} in project {project}, and has not recorded the outcome. Apply waits for it."
)

// Foreseen says in a plan why the record of a name stops an apply. If it does not, isNeeded is false.
func Foreseen(outcome send.Outcome, r send.Request) (text Diagnostic, isNeeded bool) {
	if !outcome.Result.Stops() {
		return text, false
	}
	return stopped(outcome, r, "Apply sends nothing and fails."), true
}

func stopped(outcome send.Outcome, r send.Request, effect string) Diagnostic {
	text := otherRun
	switch result := outcome.Result; {
	case result == send.Running:
		text = runningJob
	case result == send.OtherJob && !outcome.Record.IsUnknownCreate():
		text = otherJob
	case result == send.OtherJob, result == send.EarlierUnknown:
		text = earlierCreate
	case result == send.Unreadable:
		if text = unreadableJob; errors.Is(outcome.Err, agentapi.ErrNotFound) {
			text += " " + ifGone
		}
	}
	return text.ofRequest(r, outcome, "{effect}", effect)
}

const (
	beside Text = "Name gets another agent job\n" +
		"The name {name} has job {recorded} in project {project}, which has {what} and was last sent a prompt at {at}. " +
		"A create of the name starts another job and sends nothing to that one.\n\n" +
		"To keep the earlier job instead, restore its prompt and triggers before you apply, or import it afterwards."
	nameFromOther Text = "Name gets another agent job\n" +
		"In the journal, the name {name} has job {recorded} in project {project}. Apply gives the name to the imported job {id} and sends " +
		"nothing.\n\nTo keep the other job instead, import that one."
)

// BesideAnother says in a plan and in an apply that a create starts a job although its name has one.
func BesideAnother(r send.Request, record *journal.Record) Diagnostic {
	what := "other triggers"
	if record.HasArguments(r.Wanted) {
		what = "another prompt"
	}
	return beside.ofRequest(r, send.Outcome{Record: record}, "{what}", what)
}

// NameFromOther announces that an imported job gets a name that has another one in the journal.
func NameFromOther(job Job, record *journal.Record) Diagnostic {
	return nameFromOther.with("{name}", Quote(record.Name), "{recorded}", escape.Printable(record.JobID),
		"{project}", job.Project, "{id}", job.ID)
}
