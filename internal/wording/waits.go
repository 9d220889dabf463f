// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wording

import (
	"errors"
	"fmt"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
)

// What follows a wait that stopped, or found a failed job.
const (
	// ReplaceFailed is for a failed job that stays in the state.
	ReplaceFailed = "To start a new job, change the prompt or apply with -replace=ADDRESS."
	// RetriedFailed is for a failed job that the next apply replaces.
	RetriedFailed = "on_failure is \"retry\", so the next apply starts a new job."
	// TaintedFailed is for a create that fails because its job did.
	TaintedFailed = "Terraform marks the resource as tainted. The next apply with the same prompt and triggers sends nothing, and fails " +
		"again. " +
		startAnother + " To keep failed jobs instead, set on_failure = \"warn\"."
	// UnrecordedFailed is TaintedFailed without a journal.
	UnrecordedFailed = "Terraform marks the resource as tainted, and there is no journal, so the next apply starts a new job. " +
		"To keep failed jobs instead, set on_failure = \"warn\"."
	NotInState = "An action stores no job in the state. To check this one, use the data source agent_job or the service's dashboard. " +
		"Running the action again sends the prompt again."
	SendAgain = "To send the prompt again, run the action again."
)

// Resumes says what follows a resource's wait that stopped.
func Resumes(after wait.Event) string {
	if after == wait.Messaged {
		return "The service accepted the message, and the new prompt is in the state. The next apply resumes waiting without sending anything."
	}
	return "The job is in the state. The next apply resumes waiting without sending anything."
}

// StillRunning describes a wait that stopped before its job finished; next says what follows.
func StillRunning(err error, job Job, next string) Diagnostic {
	stopped := new(wait.Error)
	errors.As(err, &stopped) // a wait returns no other
	lastStatus := ""
	switch status := stopped.LastStatus; {
	case status == "" || status == agentapi.StatusActive:
	case status.Unfinished():
		lastStatus = fmt.Sprintf("Its last status was %s, which this version of the provider does not know, so it counts as still running. "+
			"Check the job in the service's dashboard: if it has finished, waiting again does not help.", Quote(string(status)))
	default:
		lastStatus = fmt.Sprintf("Its last status was %s.", Quote(string(status)))
	}
	lastFault := ""
	if stopped.LastFault != nil && !errors.Is(err, stopped.LastFault) {
		lastFault = "The last poll failed: " + reason(stopped.LastFault) + "."
	}
	return diagnostic("Agent job still running",
		fmt.Sprintf("This run stopped waiting for job %s. That does not stop the job.", job),
		cause(err), lastStatus, lastFault, next)
}

// LostInWait describes a job that the service no longer knew while a resource waited for it.
func LostInWait(after wait.Event) Text {
	sent := map[wait.Event]Text{
		wait.Resumed:  "This apply sent nothing to it.",
		wait.Created:  "The service had accepted the prompt.",
		wait.Messaged: "The service had accepted the message, and the new prompt is in the state.",
	}[after]
	return notFound + "This run stopped waiting for it. " + sent + " The state keeps the job as last read.\n\n{cause}\n\n" + ifGone
}

// LostInAction is the same for an action.
const LostInAction = notFound + "The service had accepted the prompt.\n\n{cause}\n\nRunning the action again sends the prompt again."

// noLink is said of a null link: a job without a pull request may have committed directly.
const noLink = "The service shows no pull request."

// Failed describes a job that failed during a wait.
func Failed(job Job, next string) Diagnostic {
	return diagnostic("Agent job failed",
		fmt.Sprintf("Job %s accepted its prompt and then failed: the service hit an error that it could not recover from.", job),
		link("Its pull request: ", job), next)
}

// Archived describes a job that a wait found archived.
const Archived Text = "Agent job archived\n" +
	"Job {job} was archived, and this run has not seen it complete. Check it in the service's dashboard: its work may be unfinished. " +
	"It can no longer be sent messages: a new prompt needs a new job."

// What an apply reports when every read of a minute showed a final status, which may be the one from before the message.
const (
	notSeenActive Text = "Agent job not seen active\n" +
		"Job {job} accepted the message. No read in the minute after that showed it active: either it finished between two reads, " +
		"or the service still shows the status {status} from before the message. "
	NotSeenActive Text = notSeenActive + "Plan to read it again. " +
		"If it is active then, apply resumes waiting without sending anything."
	NotSeenActiveInAction Text = notSeenActive + "Check it in the service's dashboard."
)

func link(label string, job Job) string {
	if job.PRLink == "" {
		return noLink
	}
	return label + job.PRLink
}

// Finished is the last line of an action's progress.
func Finished(job Job, age time.Duration) string {
	return fmt.Sprintf("Job %s finished with the status %s (%s elapsed). %s",
		job.ID, job.Status, age.Round(time.Second), link("Pull request: ", job))
}
