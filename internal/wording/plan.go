// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wording

import (
	"fmt"
	"strings"

	"github.com/agentjobs/terraform-provider-agent/internal/escape"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
)

// What a plan announces about a job in the state.
const (
	NewJob Text = "New prompt starts a new agent job\n" +
		"Job {job} {closed}, so apply replaces it: the prompt goes to another job, which does not see the earlier prompts. " +
		"Write a prompt that is complete without them. " +
		"Without create_before_destroy, the old job leaves the state even if the prompt is then refused or not sent."
	ActiveReplaced Text = "Active agent job will be replaced\n" +
		"Apply removes job {job} (status {status}) from the state and sends nothing to it. " +
		"The service cannot cancel a job, so it keeps running and may still open a pull request."
	PromptNotKnown Text = "Prompt not known yet\n" +
		"If the prompt is new, apply sends it to job {job} as a follow-up message. Otherwise it sends nothing."
	PromptNotKnownClosed Text = "Prompt not known yet\n" +
		"Job {job} {closed}. If the prompt is new, apply sends nothing, and fails unless the journal shows that it was sent to this job. " +
		"To start a new job with it, plan with -replace=ADDRESS."
	PromptStored Text = "Prompt stored without sending it\n" +
		"Job {job} was imported, so the state does not show its last prompt. " +
		"Apply stores this one (a write-only prompt as a hash) and sends nothing. A later change counts as a new prompt."
	PromptRestored Text = "Prompt stored without sending it\n" +
		"Job {job} refused a message after it had finished, and the prompt is again the one before that. " +
		"Apply sends nothing. From then on the refusal no longer counts."
	FollowUp Text = "Follow-up message to agent job\n" +
		"Apply sends the new prompt to job {job} as a follow-up message. " +
		"To start a new job instead, plan with -replace=ADDRESS, or change triggers."
	Unfinished Text = "Unfinished agent job\n" +
		"Apply waits until job {job} (status {status}) finishes and sends nothing. " +
		"To skip waiting, set enabled = false in the wait block."
	FailedEarlier Text = "Agent job failed\n" +
		"Job {job} failed earlier. This plan has no new prompt for it, so apply sends nothing. " +
		"To start a new job, change the prompt or plan with -replace=ADDRESS."
	Unconfirmed Text = "Message to agent job unconfirmed\n" +
		"An earlier apply sent the prompt to job {job} and received no response. It is not sent again automatically.\n\n" +
		decideMessage
)

// RetriesFailed announces a new job in place of a failed one.
const RetriesFailed Text = "Failed agent job will be replaced\n" +
	"Job {job} failed, and on_failure is \"retry\": apply starts a new job with the prompt."

const (
	summaryEarlierUnknown = "Outcome of an earlier request unknown"
	summaryCreateUnknown  = "Outcome of agent job create unknown"
	summaryAlreadySent    = "Message of an earlier run counts as sent"
	summaryWillAdopt      = "Agent job of an earlier run will be adopted"
	summaryOtherJob       = "Agent job of another run not in the state"
	summaryOtherPrompt    = "Name has an agent job with another prompt"
	summaryNameOtherJob   = "Name has another agent job"
	summaryElsewhere      = "Name has a record in another journal"
)

// Announcement describes in a plan what its apply will do because of the record of a name.
func Announcement(verdict journal.Verdict, r send.Request, record *journal.Record) Diagnostic {
	name, at := Quote(r.Name), sentAt(record)
	job := Job{ID: escape.Printable(record.Job), Project: r.Project}
	switch verdict {
	case journal.AlreadySent:
		return diagnostic(summaryAlreadySent,
			fmt.Sprintf("An earlier run sent this prompt to job %s at %s, but the state does not show it. Apply sends nothing. "+
				"To send the prompt again, change it (any visible change will do).", job, at))
	case journal.Adopt:
		if r.IsPromptUnknown {
			return diagnostic(summaryWillAdopt,
				fmt.Sprintf("The name %s has job %s, which was last sent a prompt at %s. The new prompt is not known yet. "+
					"If it is the same, apply adopts the job without sending anything. Otherwise apply fails and sends nothing.", name, job, at),
				ofAnotherState)
		}
		return diagnostic(summaryWillAdopt,
			fmt.Sprintf("The name %s has job %s, which was last sent this prompt at %s. "+
				"Apply adopts the job without sending anything.", name, job, at),
			ofAnotherState+" To start another job, change triggers.", unlessFailed(r))
	case journal.OtherPrompt:
		return diagnostic(summaryOtherPrompt,
			fmt.Sprintf("An earlier run started job %s under the name %s at %s, with another prompt, and the state does not show it. "+
				"Apply sends nothing and fails until you decide.", job, name, at), otherPromptWays(r, record))
	case journal.OtherJob:
		return diagnostic(summaryNameOtherJob, hasOtherJob(r, record)+" Apply sends nothing and fails until you decide.", otherJobWays(r, record))
	case journal.UnknownMessage:
		return diagnostic(summaryEarlierUnknown, fmt.Sprintf("An earlier run sent this prompt to job %s at %s, and received no response. "+
			"It counts as sent, so apply sends nothing.", job, at))
	case journal.UnknownCreate:
		return diagnostic(summaryCreateUnknown,
			fmt.Sprintf("An earlier run sent a prompt under the name %s at %s, and no response shows whether a job was started. "+
				"Apply sends nothing and fails until you decide.", name, at), waysOut(r.Project, record))
	case journal.Send, journal.Wait, journal.Twin:
	}
	return diagnostic(summaryEarlierUnknown,
		fmt.Sprintf("Another run sends a prompt under the name %s in project %s, and has not recorded the outcome. Apply sends nothing before "+
			"that outcome is known.", name, r.Project))
}

// unlessFailed says what on_failure = "retry" makes of an adoption.
func unlessFailed(r send.Request) string {
	if r.RetryFailed {
		return "If the job has failed, apply starts another one."
	}
	return ""
}

// StillFailed announces that an apply does not pay for a failed job again.
func StillFailed(r send.Request, record *journal.Record) Diagnostic {
	same := ", and the request is still the same"
	if r.IsPromptUnknown {
		same = ". If the prompt, which is not known yet, is another one, apply starts a new job. Otherwise nothing has changed"
	}
	return diagnostic("Agent job has failed",
		fmt.Sprintf("The job of the name %s, %s in project %s, failed%s. Apply keeps the job, although "+
			"Terraform plans to replace it, and fails again without sending anything.",
			Quote(r.Name), escape.Printable(record.Job), r.Project, same),
		startAnother)
}

// startAnother says how to start another job in place of a failed one.
const startAnother = "To start another job, change the prompt or triggers, for example triggers = { attempt = 2 }, or set " +
	"on_failure = \"retry\" in the wait block. -replace cannot be told from this, so it does not start one."

// otherPromptWays says what to do about a job that has another prompt than the wanted one.
func otherPromptWays(r send.Request, record *journal.Record) string {
	return fmt.Sprintf("To keep the job, restore its prompt and apply: that adopts it, and a later change is a new prompt for it. "+
		"If its prompt cannot be restored, for example because it had a time in it, import the job, which stores the new prompt without "+
		"sending it: terraform (or tofu) import ADDRESS %s/%s\n"+
		"To start a new job instead, give the earlier one up: %s.", r.Project, escape.Printable(record.Job), giveUp(record))
}

// hasOtherJob says which job has a name.
func hasOtherJob(r send.Request, record *journal.Record) string {
	return fmt.Sprintf("In the journal, the name %s has job %s in project %s, and not job %s. The state may be an older one, a run that "+
		"replaced the job may have been killed, or two names were exchanged.", Quote(r.Name), escape.Printable(record.Job), r.Project, r.Job)
}

func otherJobWays(r send.Request, record *journal.Record) string {
	return fmt.Sprintf("If another resource leaves this name in the same apply, apply again.\n"+
		"To go on with job %s, first run: terraform (or tofu) state rm ADDRESS. Then apply, which adopts it.\n"+
		"To keep job %s, give the other one up: %s.", escape.Printable(record.Job), r.Job, giveUp(record))
}

// Stray describes the job of a name that gets a new one, and that no state is known to have.
func Stray(r send.Request, record *journal.Record) Diagnostic {
	return diagnostic(summaryOtherJob,
		fmt.Sprintf("An earlier run started job %s under the name %s at %s, with other triggers or arguments, and no state is known "+
			"to have it. Apply starts a new job.", escape.Printable(record.Job), Quote(r.Name), sentAt(record)),
		"To keep the earlier job instead, restore its arguments and apply: that adopts it.")
}

// AdoptedByAnother describes a job that was adopted since the state was written.
const AdoptedByAnother Text = "Agent job was adopted by another run\n" +
	"Job {job} is in this state, and since the state was written, another run has adopted it for a resource of this name. " +
	"If two resources have the name, or this state was copied, both now have the job, and each sends its prompts to it. " +
	"If that run's state was lost, all is well.\n\nThe next apply ends this warning."

// Renamed describes a job that another name has, and that was started by the same request.
func Renamed(r send.Request, record *journal.Record) Diagnostic {
	job := "job " + escape.Printable(record.Job)
	if record.IsUnknownCreate() {
		job = "perhaps a job, with an unknown outcome,"
	}
	return diagnostic("Equal agent job under another name",
		fmt.Sprintf("An earlier run started %s at %s with this prompt under the name %s. Under the name %s, apply starts a new job.",
			job, sentAt(record), Quote(record.Name), Quote(r.Name)),
		"If another resource has that name, all is well. "+
			"If the name, or the key that it is made of, was changed after a broken run, set the earlier name and apply: that adopts the job, "+
			"and then the name can change. To ignore the job, "+giveUp(record)+".")
}

// RecordElsewhere announces that an apply stops because of what another place has.
func RecordElsewhere(r send.Request, found *journal.Elsewhere) Diagnostic {
	return diagnostic(summaryElsewhere, elsewhere(r, found)+" Apply sends nothing and fails until you decide.", elsewhereWays(r, found))
}

func elsewhere(r send.Request, found *journal.Elsewhere) string {
	if found.Record == nil {
		return fmt.Sprintf("Other runs of this state keep the journal in %s, and this one does not. So it cannot tell whether the name %s "+
			"has a job.", escape.Printable(found.MovedTo), Quote(r.Name))
	}
	what := "a request with an unknown outcome"
	if found.Record.Job != "" {
		what = "job " + escape.Printable(found.Record.Job)
	}
	return fmt.Sprintf("Earlier runs kept the journal of this state elsewhere. There, the name %s has %s, which no state is known to have: "+
		"%s.", Quote(r.Name), what, escape.Printable(found.Record.Where))
}

func elsewhereWays(r send.Request, found *journal.Elsewhere) string {
	if found.Record == nil {
		return fmt.Sprintf("To use that journal, set journal { url = %s } in the provider block, rather than AGENT_JOURNAL_URL. "+
			"To keep the journal beside the state again, delete %s.", Quote(found.MovedTo), escape.Printable(found.Pointer))
	}
	ways := "If the state was moved, apply once with that place as journal.url, or with the backend that it had."
	if found.Record.Job != "" {
		ways = fmt.Sprintf("To keep the job, import it: terraform (or tofu) import ADDRESS %s/%s", r.Project, escape.Printable(found.Record.Job))
	}
	return ways + "\nTo start a new job, give the record up: " + giveUp(found.Record) + "."
}

// NotAdopted announces that a new resource does not get the job whose resource is destroyed, or renamed.
func NotAdopted(r send.Request, job Job) Diagnostic {
	return diagnostic("Agent job will not be adopted",
		fmt.Sprintf("The resource of job %s is destroyed or renamed in this plan, and another resource gets its name %s. That one starts a new "+
			"job, whatever else this plan says of it.", job, Quote(r.Name)),
		"If the resource only has another address, add a moved block: then it keeps the job.")
}

// NameFromOther announces that an imported job gets a name that has another one in the journal.
func NameFromOther(job Job, record *journal.Record) Diagnostic {
	return diagnostic(summaryOtherJob,
		fmt.Sprintf("In the journal, the name %s has job %s in project %s, and the resource has imported job %s. Apply gives the name to the "+
			"imported job and sends nothing to the other one.", Quote(record.Name), escape.Printable(record.Job), job.Project, job),
		"If you want the other job, import that one.")
}

// OtherJob announces that a name has another job in the journal than in the state.
func OtherJob(job Job, record *journal.Record) Diagnostic {
	started, next := "started job "+escape.Printable(record.Job), "To go on with that one, first run: terraform (or tofu) state rm ADDRESS. "+
		"Then apply, which adopts it."
	if record.IsUnknownCreate() {
		started = "may have started a job, with unknown outcome,"
		next = "Look for a second job in the service's dashboard. Do not apply with -replace=ADDRESS before you have decided."
	}
	return diagnostic(summaryOtherJob,
		fmt.Sprintf("Another run %s under the name %s at %s, and the state has job %s. That run may have been killed while it replaced the job, "+
			"or the state is an older one.", started, Quote(record.Name), sentAt(record), job),
		"Unless job "+job.ID+" is replaced, apply keeps it, and sends nothing because of the other one. "+next+
			" To ignore it, give it up: "+giveUp(record)+".")
}

// PreviousJobs names what a name has had before, and no state is known to have.
func PreviousJobs(job Job, record *journal.Record) Diagnostic {
	var text strings.Builder
	for _, p := range record.Previous {
		what := "job " + escape.Printable(p.Job)
		if p.Job == "" {
			what = "a create with an unknown outcome, which you can give up: " + giveUpRequest(p.Request)
		}
		fmt.Fprintf(&text, "\n  %s, sent at %s", what, timestamp(p.SentAt))
	}
	return diagnostic("Earlier agent jobs of a name not in the state",
		fmt.Sprintf("The name %s has job %s. Before that it had the following, and no state is known to have them:%s",
			Quote(record.Name), job, text.String()),
		"Nothing is sent to them. Look for them in the service's dashboard. The next apply ends this warning, unless an outcome is unknown.")
}
