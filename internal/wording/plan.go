// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wording

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentjobs/terraform-provider-agent/internal/escape"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
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
	PromptRecorded Text = "Prompt recorded without sending it\n" +
		"Job {job} was imported, so the state does not show its last prompt. " +
		"Apply records this one (a write-only prompt as a hash) and sends nothing. A later change counts as a new prompt."
	PromptRestored Text = "Prompt recorded without sending it\n" +
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

// Announcement describes in a plan what its apply will do because of an earlier run.
// Of several equal requests, the plan does not know which one it will find. prompt is the hash of
// the planned prompt of a create with a name; empty while that is unknown.
func Announcement(kind send.Kind, projectID, prompt string, found []*journal.Earlier) Diagnostic {
	const sendInstead = "To send the prompt instead, change triggers, or set journal { enabled = false } in the provider block. " +
		"If this plan uses -target, plan without it first."
	const summary = "Outcome of an earlier request unknown"
	first := found[0]
	sent := fmt.Sprintf("in project %s at %s", projectID, timestamp(first.SentAt))
	jobs := jobsOf(found)
	switch {
	case kind == send.Message && len(jobs) > 0:
		return diagnostic("Message of an earlier run will be taken over",
			fmt.Sprintf("An earlier run sent this prompt to job %s %s, but the state does not show it. Apply sends nothing. "+
				"To send the prompt again, change it (any visible change will do).", jobs[0], sent))
	case len(jobs) > 0 && first.JobName != "" && prompt == "":
		return diagnostic(summaryWillTakeOver,
			fmt.Sprintf("An earlier run started job %s %s %s, but the state does not show it. The new prompt is not known yet. "+
				"If it is the same, apply takes the job over without sending anything. Otherwise apply fails and sends nothing.",
				jobs[0], recognized(first), sent), ofAnotherState+" "+sendInstead)
	case len(jobs) > 0 && first.Prompt != prompt:
		return diagnostic(summaryOtherPrompt,
			fmt.Sprintf("An earlier run started job %s %s %s, with another prompt, and the state does not show it. "+
				"Apply sends nothing and fails until you decide.", jobs[0], recognized(first), sent),
			otherPromptWays(first))
	case len(jobs) > 0:
		others := ""
		if len(jobs) > 1 {
			others = " Equal resources take over: " + strings.Join(jobs[1:], ", ") + "."
		}
		return diagnostic(summaryWillTakeOver,
			fmt.Sprintf("An earlier run started job %s with this prompt %s, but the state does not show it. "+
				"Apply takes the job over without sending anything.%s "+
				"If another resource has the job by then, apply starts a new one.", jobs[0], sent, others), ofAnotherState+" "+sendInstead)
	case kind == send.Message:
		return diagnostic(summary, fmt.Sprintf("An earlier run sent this prompt %s and did not record the outcome. "+
			"Apply waits for it if it can still arrive, and sends the prompt only if that request had no effect. "+
			"Without an outcome, the prompt counts as sent.", sent))
	case first.Status == store.Pending:
		return diagnostic(summary, fmt.Sprintf("An earlier run sent %s %s and did not record the outcome. "+
			"Apply waits for it, and sends the prompt only if that request had no effect.", sentPrompt(first, prompt), sent), sendInstead)
	}
	return diagnostic(summary,
		fmt.Sprintf("An earlier run sent %s %s, and its outcome is unknown: a job may have been started. "+
			"Apply sends nothing and fails until you decide.", sentPrompt(first, prompt), sent),
		waysOut(projectID, found...)) // all are unknown: accepted and pending ones come first
}

const (
	summaryWillTakeOver = "Agent job of an earlier run will be taken over"
	summaryOtherJob     = "Agent job of another run not in the state"
	summaryOtherPrompt  = "Agent job of an earlier run has another prompt"
)

// recognized says what an entry of a create has in common with a planned one.
func recognized(e *journal.Earlier) string {
	if e.JobName == "" {
		return "with this prompt"
	}
	return "under the name " + Quote(e.JobName)
}

// sentPrompt names the prompt of an earlier create beside a planned one, whose hash is prompt; empty while that is unknown.
func sentPrompt(e *journal.Earlier, prompt string) string {
	if e.JobName == "" || e.Prompt == prompt {
		return "this prompt"
	}
	return "a prompt under the name " + Quote(e.JobName) + ", which may differ from this one,"
}

// otherPromptWays says what to do about a job that has another prompt than the planned one.
func otherPromptWays(e *journal.Earlier) string {
	return fmt.Sprintf("To keep the job, restore its prompt and apply: that takes it over, and a later change is a new prompt for it. "+
		"If its prompt cannot be restored, for example because it had a time in it, import the job, which records the new prompt without "+
		"sending it: terraform (or tofu) import ADDRESS %s/%s\n%s\n"+
		"To start a new job instead, give up the journal's entry: %s.",
		escape.Printable(e.Project), escape.Printable(e.JobID), removeFirst, giveUp(e))
}

// Namesakes describes creates of earlier runs that a new job with a name will not take over.
func Namesakes(projectID string, found []*journal.Earlier) Diagnostic {
	started, then, id := "may have started a job, with unknown outcome,", "plan: that says how to decide about it", "JOB_ID"
	if jobs := jobsOf(found); len(jobs) > 0 {
		started, then, id = "started job "+strings.Join(jobs, " and "), "apply: that takes it over", jobs[0]
	}
	differs, restore := recognized(found[0])+" and with other triggers", "restore the triggers"
	if found[0].JobName == "" {
		differs, restore = "with this prompt and without a name", "remove the name"
	}
	return diagnostic(summaryOtherJob,
		fmt.Sprintf("An earlier run %s %s in project %s at %s, and no state is known to have it. Apply starts a new job beside it.",
			started, differs, projectID, timestamp(found[0].SentAt)),
		"To keep the earlier job instead, "+restore+" and "+then+". If you cannot, import it: terraform (or tofu) import ADDRESS "+
			projectID+"/"+id+"\n"+removeFirst+"\nTo ignore it, "+giveUp(found...)+".")
}

// jobsOf names the jobs of requests, each once.
func jobsOf(found []*journal.Earlier) (jobs []string) {
	for _, earlier := range found {
		if name := escape.Printable(earlier.JobID); name != "" && !slices.Contains(jobs, name) { // whoever can write to the journal chose it
			jobs = append(jobs, name)
		}
	}
	return jobs
}

// OtherJob announces that other runs have sent the planned prompt, and no state is known to show it.
func OtherJob(job Job, found []*journal.Earlier) Diagnostic {
	started := "may have started a job, with unknown outcome,"
	next := "Do not apply with -replace=ADDRESS: that would remove job " + job.ID + " from the state, and then fail."
	if jobs := jobsOf(found); len(jobs) > 0 {
		started = "started job " + strings.Join(jobs, " and ")
		next = "To take the other one over, apply with -replace=ADDRESS."
	}
	return diagnostic(summaryOtherJob,
		fmt.Sprintf("Another run %s %s in project %s at %s, and no state is known to have it. "+
			"That run may have been killed while it replaced job %s, or an equal resource that this plan has not read yet has the job.",
			started, recognized(found[0]), job.Project, timestamp(found[0].SentAt), job.ID),
		"Apply sends nothing because of it and keeps job "+job.ID+". "+next+" To ignore it, "+giveUp(found...)+".")
}
