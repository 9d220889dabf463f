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

// Next is what follows a job that failed or has not finished.
type Next struct {
	Request   string // the id of the job's last request, to give it up; empty without a journal
	IsTainted bool   // the create fails, so Terraform taints the resource
	IsKept    bool   // the failed job stays, and no run fails
	IsRetried bool   // the next apply replaces the failed job
}

const (
	// NotInState says where to find the job of an action.
	NotInState = "An action stores no job in the state. To check this one, use the data source agent_job or the service's dashboard. " +
		"Running the action again sends the prompt again."
	// SendAgain says how to repeat an action.
	SendAgain = "To send the prompt again, run the action again."

	// Resumes says what follows Ctrl-C.
	Resumes = "The job is in the state. The next apply resumes waiting without sending anything."

	keepFailed    = "To keep this job, set on_failure = \"warn\" in the wait block. " + replaceFailed
	replaceFailed = "To start another one, change the prompt or triggers. "
	neverFinishes = "If the job never finishes, change triggers to start another one. "
)

// AfterFailure says what follows a failed job. A new prompt starts another one, because a failed job
// accepts no messages; any other job would be sent that prompt.
func (n Next) AfterFailure() string {
	switch {
	case n.IsRetried:
		return "on_failure is \"retry\", so the next apply starts a new job."
	case n.IsKept:
		return "The job stays in the state. " + replaceFailed + startAnother(n.Request)
	case n.IsTainted:
		return "Terraform marks the resource as tainted, so a plan shows a replacement. With the same prompt and triggers, " +
			"the next apply sends nothing and fails again. " + keepFailed + startAnother(n.Request)
	}
	return "Each apply sends nothing and fails until there is another job. " + keepFailed + startAnother(n.Request)
}

// AfterTimeout says what follows a wait that stopped before the job finished.
func (n Next) AfterTimeout() string {
	if n.IsTainted {
		return "Terraform marks the resource as tainted, so a plan shows a replacement. With the same prompt and triggers, " +
			"the next apply keeps the job and resumes waiting without sending anything. " + neverFinishes + startAnother(n.Request)
	}
	return Resumes + " " + neverFinishes + startAnother(n.Request)
}

// StillRunning describes a wait that stopped before its job finished; next says what follows.
func StillRunning(err error, job Job, next string) Diagnostic {
	stopped := new(wait.Error)
	errors.As(err, &stopped) // an error of a wait is always one
	lastStatus, lastFault := "", ""
	if status := stopped.LastStatus; status != "" && status != agentapi.StatusActive {
		lastStatus = "Its last status was " + Quote(string(status)) + "."
		if status.Unfinished() {
			lastStatus += " This version of the provider does not know that status, so it counts as still running. " +
				"Check the job in the service's dashboard: if it has finished, waiting again does not help."
		}
	}
	if stopped.LastFault != nil && !errors.Is(err, stopped.LastFault) {
		lastFault = "The last poll failed: " + reason(stopped.LastFault) + "."
	}
	return diagnostic("Agent job still running",
		fmt.Sprintf("This run stopped waiting for job %s. That does not stop the job.", job),
		cause(err), lastStatus, lastFault, next)
}

const (
	lostInWait Text = notFound + "This run stopped waiting for it. {sent} The state keeps the job as last read.\n\n{cause}\n\n" + ifGone
	// LostInAction describes a job that the service no longer knew while an action waited for it.
	LostInAction = notFound + "The service had accepted the prompt.\n\n{cause}\n\nRunning the action again sends the prompt again."
)

// LostInWait describes a job that the service no longer knew while a resource waited for it.
func LostInWait(job Job, err error, after wait.Event, next Next) Diagnostic {
	sent := map[wait.Event]string{
		wait.Resumed:  "This apply sent nothing to it.",
		wait.Created:  "The service had accepted the prompt.",
		wait.Messaged: "The service had accepted the message, and the new prompt is in the state.",
	}[after]
	return lostInWait.about(job, err, next.Request, "{sent}", sent)
}

const (
	// noLink is said of a null link: a job without a pull request may have committed directly.
	noLink = "The service shows no pull request."

	failedInWait Text = "Agent job failed\n" +
		"Job {job} accepted its prompt and then failed: the service hit an error that it could not recover from.\n\n{link}\n\n"
	archivedInWait Text = "Agent job archived\n" +
		"Job {job} accepted its prompt and was archived before any run saw it complete, so it counts as failed. " +
		"Check it in the service's dashboard: its work may be unfinished.\n\n{link}\n\n"
	// Archived describes a job that a wait found archived, with a link.
	Archived Text = "Agent job archived\n" +
		"Job {job} was archived, and this run has not seen it complete. Check it in the service's dashboard: its work may be unfinished. " +
		"It can no longer be sent messages: a new prompt needs a new job."
)

// Failed describes a job that counts as failed after a wait.
func Failed(job Job, next string) Diagnostic {
	text := failedInWait
	if job.Status == string(agentapi.StatusArchived) {
		text = archivedInWait
	}
	return (text + Text(next)).Of(job, nil)
}

// What an apply reports when every read of a minute showed a final status, which may be the one
// from before the message.
const (
	notSeenActive Text = "Agent job not seen active\n" +
		"Job {job} accepted the message. No read in the minute after that showed it active: either it finished between two reads, " +
		"or the service still shows the status {status} from before the message. "
	NotSeenActive Text = notSeenActive + "Plan to read it again. " +
		"If it is active then, apply resumes waiting without sending anything."
	NotSeenActiveInAction Text = notSeenActive + "Check it in the service's dashboard."
)

// Finished is the last line of an action's progress.
func Finished(job Job, age time.Duration) string {
	link := noLink
	if job.PRLink != "" {
		link = "Pull request: " + job.PRLink
	}
	return fmt.Sprintf("Job %s finished with the status %s (%s elapsed). %s", job.ID, job.Status, age.Round(time.Second), link)
}
