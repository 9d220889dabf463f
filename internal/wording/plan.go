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
		"Job {job} {closed}, so apply sends the new prompt to another job, which does not see the earlier prompts. " +
		"Without create_before_destroy, the old job leaves the state even if the prompt is then refused or not sent.\n\n" +
		"Write a prompt that is complete without the earlier ones."
	ActiveReplaced Text = summaryActiveLeaves + "\n" +
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
		"Job {job} " + archivedUnseen + " No run waited for it. Apply sends nothing because of that.\n\n" +
		"Set on_failure in the wait block: \"warn\" ends this warning, and with \"error\" each apply fails until there is another job."
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
		keepFailed+Next{Request: request}.replaceFailed())
}

const (
	summaryUnknownCreate = "Outcome of agent job create unknown"
	summaryAlreadySent   = "Message of an earlier run counts as sent"
	summaryRunning       = "Name has a running agent job"
	summaryGetsAnother   = "Name gets another agent job"
	summaryActiveLeaves  = "Active agent job leaves the state"
)

// Foreseen says in a plan why the record of a name stops an apply. If it does not, isNeeded is false.
func Foreseen(outcome send.Outcome, r send.Request) (text Diagnostic, isNeeded bool) {
	if !outcome.Result.Stops() {
		return text, false
	}
	return stopped(outcome, r, true), true
}

// stopped describes what the record of a name says that stops a request, in a plan or in an apply.
func stopped(outcome send.Outcome, r send.Request, isPlanned bool) Diagnostic {
	effect := func(long string) string {
		if isPlanned {
			return "Apply sends nothing and fails " + long + "."
		}
		return "Nothing was sent."
	}
	record, decided := outcome.Record, effect("until you decide")
	name, at, job := Quote(r.Name), sentAt(record), Job{ID: escape.Printable(record.JobID), Project: r.Project}
	switch result := outcome.Result; {
	case result == send.Running:
		return diagnostic(summaryRunning,
			fmt.Sprintf("The name %s has job %s, which is still running and was sent another prompt at %s. While it runs, no other job "+
				"starts under the name with the same triggers. %s", name, job, at, effect("as long as it runs")),
			"Once the job has finished, apply again, which starts another one with the new prompt. To start that now, change triggers. "+
				"To keep the running job instead, restore its prompt and apply, which adopts it.")
	case result == send.OtherJob && !record.IsUnknownCreate():
		return diagnostic("Name has another agent job",
			fmt.Sprintf("In the journal, the name %s has job %s; in the state, it has job %s. The state may be an older one, or a run that "+
				"replaced the job may have been killed. %s", name, job, r.JobID, decided),
			fmt.Sprintf("To keep job %s, run these commands and apply, which sends nothing:", job.ID)+of(r.Project, job.ID, removeLine+importLine),
			fmt.Sprintf("To keep job %s, %s", r.JobID, giveUp(record.Last.ID)))
	case result == send.OtherJob, result == send.EarlierUnknown:
		return diagnostic(summaryUnknownCreate,
			fmt.Sprintf("An earlier run sent a prompt under the name %s to project %s at %s, and no response shows whether a job was started. %s",
				name, r.Project, at, decided), waysOut(r, record))
	case result == send.Unreadable:
		return unreadable(outcome, r, effect("as long as that lasts"))
	}
	return diagnostic("Outcome of another run's request unknown", fmt.Sprintf(
		"Another run sends a prompt under the name %s in project %s, and has not recorded the outcome. Apply waits for it.", name, r.Project))
}

// BesideAnother says in a plan and in an apply that a create starts a job although its name has one.
func BesideAnother(r send.Request, record *journal.Record) Diagnostic {
	differs := "another prompt"
	if !record.HasArguments(r.Wanted) {
		differs = "other triggers"
	}
	return diagnostic(summaryGetsAnother,
		fmt.Sprintf("The name %s has job %s in project %s, which has %s and was last sent a prompt at %s. "+
			"A create of the name starts another job and sends nothing to that one.",
			Quote(r.Name), escape.Printable(record.JobID), r.Project, differs, sentAt(record)),
		"To keep the earlier job instead, restore its prompt and triggers before you apply, or import it afterwards.")
}

// NameFromOther announces that an imported job gets a name that has another one in the journal.
func NameFromOther(job Job, record *journal.Record) Diagnostic {
	return diagnostic(summaryGetsAnother,
		fmt.Sprintf("In the journal, the name %s has job %s in project %s. Apply gives the name to the imported job %s and sends nothing.",
			Quote(record.Name), escape.Printable(record.JobID), job.Project, job.ID),
		"To keep the other job instead, import that one.")
}
