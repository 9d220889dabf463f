// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/escape"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// cause tells in a sentence or two why a call failed, and what can be done about it.
func cause(err error) string {
	return wording.Paragraphs(wording.Sentence(errors.New(reason(err))), hint(err))
}

// reason words the failure of a call.
func reason(err error) string {
	var failure *agentapi.Error
	if !errors.As(err, &failure) {
		return plainReason(err)
	}
	var parts []string
	if answer := failure.Answer(); answer != "" {
		parts = append(parts, answer)
	}
	if failure.Err != nil {
		parts = append(parts, plainReason(failure.Err))
	}
	switch {
	case failure.Detail == "":
	case errors.Is(failure, agentapi.ErrRedirected):
		parts = append(parts, `it points to "`+failure.Detail+`"`)
	default:
		parts = append(parts, `it says "`+failure.Detail+`"`)
	}
	text := strings.Join(parts, ", ")
	if failure.Request != "" {
		text += " (" + failure.Request + ")" // most often it shows at a glance what is wrong with base_url or the project
	}
	return text
}

// plainReason words an error that is no failed call.
func plainReason(err error) string {
	_, isJournalError := errors.AsType[*journal.Error](err)
	switch {
	case isJournalError: // it has time limits of its own
	case errors.Is(err, context.Canceled):
		return "the run was interrupted"
	case errors.Is(err, context.DeadlineExceeded):
		return "the time that timeouts allows is over"
	}
	return escape.Printable(err.Error())
}

// hint says what to look at, by the type of the failure.
func hint(err error) string {
	var failure *agentapi.Error
	errors.As(err, &failure)
	_, isJournalError := errors.AsType[*journal.Error](err)
	switch {
	case isJournalError:
		return "Check journal.url, or AGENT_JOURNAL_URL when that is not set, and the credentials of this run."
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, agentapi.ErrUnavailable):
		return ""
	case errors.Is(err, agentapi.ErrProxy):
		return "Check HTTPS_PROXY and NO_PROXY in the environment of this run, and whether the proxy may and can reach base_url."
	case errors.Is(err, agentapi.ErrCertificate):
		return certificateHint(err)
	case errors.Is(err, agentapi.ErrNoTLS):
		return "Check base_url: it starts with https://, and what answers at its host and port is something else."
	case errors.Is(err, agentapi.ErrWebPage) && failure.StatusCode < http.StatusInternalServerError:
		return "Something other than the agent service answered: check base_url, and whether a proxy or a login page is in between."
	case errors.Is(err, agentapi.ErrForbidden):
		return "Check admin_key, or AGENT_ADMIN_KEY when that is not set: the key may lack the scope that is needed, or not be allowed from this address."
	case errors.Is(err, agentapi.ErrUnauthorized):
		return "Check admin_key, or AGENT_ADMIN_KEY when that is not set: the key may be unknown to this service, or expired."
	case errors.Is(err, agentapi.ErrRedirected):
		return "Redirects are not followed, so that the key goes only where you said. Check base_url, and whether a proxy or a login page is in between."
	case errors.Is(err, agentapi.ErrNotFound) && failure.Op == agentapi.OpCreate:
		return "Check base_url, project_id and the key: a service answers 404 for each of them."
	case errors.Is(err, agentapi.ErrNotFound):
		return "Check base_url, project_id and the key: a service answers 404 for each of them, and for a job that it no longer keeps."
	case errors.Is(err, agentapi.ErrPauseTooLong):
		return "The service limits how many requests it takes in a time. Apply again later, or raise timeouts so that the run can wait for its turn."
	case (errors.Is(err, agentapi.ErrNotSent) || errors.Is(err, agentapi.ErrUnavailable)) && failure.StatusCode == 0 && failure.Err != nil:
		return "Check base_url and the network between this machine and the service, HTTPS_PROXY and NO_PROXY too."
	}
	return ""
}

// certificateHint tells apart whose mistake a certificate is.
func certificateHint(err error) string {
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return "Check the clock of this machine. If it is right, the service needs a new certificate."
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "Check base_url: the certificate is for another host name."
	}
	return "Check base_url. If the service, or a proxy that reads the traffic, has a certificate from a private authority, give that authority's certificate as ca_certificates_pem."
}

// createFailure words the failure of a create: whether a job may exist comes first.
func createFailure(err error, projectID string) string {
	switch {
	case errors.Is(err, agentapi.ErrUnknownOutcome):
		return wording.Paragraphs(
			fmt.Sprintf("The request was sent to project %s, but no answer tells its outcome: a job may have been started. It will not be sent again by itself.", projectID),
			cause(err),
			fmt.Sprintf("Look for the job at the service before you apply again, because applying again sends the prompt again. "+
				"If the job is there, bring it in with: terraform (or tofu) import ADDRESS %s/JOB_ID", projectID))
	case errors.Is(err, agentapi.ErrNotSent):
		return wording.Paragraphs(fmt.Sprintf("Nothing was sent to project %s, so no job was started.", projectID), cause(err), "Applying again starts the job.")
	default:
		return wording.Paragraphs("The service refused the request, so no job was started.", cause(err))
	}
}

// notTakenOver words that the journal could not tell whether an earlier run has
// sent a request, so that it was not sent.
func notTakenOver(err error, to string) string {
	return wording.Paragraphs(fmt.Sprintf("Nothing was sent to %s now. An earlier run may have sent this prompt, and only the journal can tell.", to), cause(err),
		"Apply again: that takes over what an earlier run has sent, or else sends the prompt.")
}

// unknownCreate words a create of an earlier run whose outcome nobody knows.
func unknownCreate(projectID string, sent time.Time) (summary, detail string) {
	return "Outcome of an earlier create unknown", wording.Paragraphs(
		fmt.Sprintf("An earlier run sent this request to project %s at %s and did not record the outcome. A job may have been started. "+
			"Nothing was sent now. This is reported once.", projectID, sent.UTC().Format(time.RFC3339)),
		fmt.Sprintf("Look for the job in the service's dashboard. If it is there, import it with: terraform (or tofu) import ADDRESS %s/JOB_ID. "+
			"Otherwise apply again: that sends the prompt.", projectID))
}

// messageFailure words the failure of a follow-up message that had no effect.
func messageFailure(err error, jobID string) string {
	if failure, ok := errors.AsType[*agentapi.Error](err); ok && failure.Op == agentapi.OpGet {
		return wording.Paragraphs(
			fmt.Sprintf("An earlier run sent the new prompt to job %s, which accepted it, and the job cannot be looked up now. Nothing was sent now; the state is as before.", jobID),
			cause(err), "Apply again once the service responds.")
	}
	if _, ok := errors.AsType[takeOverError](err); ok {
		return notTakenOver(err, "job "+jobID)
	}
	if errors.Is(err, errTakenOverByThisRun) {
		return wording.Paragraphs(
			fmt.Sprintf("Nothing was sent to job %s. This run took the job over from an earlier one, and a test must not send prompts to such a job.", jobID),
			"To let tests start jobs instead, set journal = { enabled = false } in their provider block. Outside of tests, a later run sends the message.")
	}
	if errors.Is(err, agentapi.ErrNotSent) {
		return wording.Paragraphs(fmt.Sprintf("Nothing was sent to job %s; the job and the state are as before.", jobID), cause(err), "Applying again sends the message.")
	}
	next := "To give the prompt to a new job instead, apply with -replace=ADDRESS, or change triggers."
	if errors.Is(err, agentapi.ErrUnauthorized) || errors.Is(err, agentapi.ErrWebPage) || errors.Is(err, agentapi.ErrRedirected) {
		next = "Applying again sends the message." // a new job would be refused too
	}
	return wording.Paragraphs(fmt.Sprintf("The service refused the message to job %s; the job and the state are as before.", jobID), cause(err), next)
}

// unconfirmedMessage words the outcome of a message that nobody knows.
func unconfirmedMessage(err error, jobID string) (summary, detail string) {
	return "Outcome of message to agent job unknown", wording.Paragraphs(
		fmt.Sprintf("The message was sent to job %s, but no answer tells whether it arrived, and the job does not show it. "+
			"The new prompt is recorded in the state, so that it is not sent a second time by itself.", jobID),
		cause(err),
		"Look at the job at the service. If the message is not there, change the prompt (a word is enough) and apply: that sends it.")
}

// missingJobHint says what can be done about a job that the service forgot.
const missingJobHint = "If the job is truly gone: -replace=ADDRESS starts a new one, and 'terraform (or tofu) state rm ADDRESS' forgets it."

// missingJob words a wait that ended because the service forgot the job. What
// the job was sent before the wait, in this run or an earlier one, depends on after.
func missingJob(err error, job *jobModel, after wait.Event) (summary, detail string) {
	sent := map[wait.Event]string{
		wait.Resumed:  "This apply sent nothing to it.",
		wait.Created:  "The service had accepted the prompt.",
		wait.Messaged: "The service had accepted the message, and the new prompt is in the state.",
	}[after]
	return "Agent job not found", wording.Paragraphs(
		fmt.Sprintf("The service does not know job %s in project %s (any more), so its end cannot be waited for. %s The state keeps the job as it was last seen.",
			job.ID.ValueString(), job.ProjectID.ValueString(), sent),
		cause(err), missingJobHint)
}

// unfinishedWait words a wait that ended before its job; next says what follows.
func unfinishedWait(err error, jobID, next string) (summary, detail string) {
	summary = "Agent job still running"
	stopped := new(wait.Error)
	errors.As(err, &stopped) // a wait returns no other
	var why string
	switch {
	case errors.Is(err, wait.ErrInterrupted):
		why = "The wait was interrupted."
	case errors.Is(err, wait.ErrTimeout):
		why = fmt.Sprintf("It had not ended after %s, which is as long as timeouts allows.", stopped.Waited.Round(time.Second))
	case errors.Is(err, wait.ErrNoStatus):
		why = "The service's answers have no status."
	default:
		why = cause(err)
	}
	lastStatus := ""
	if stopped.LastStatus != "" && stopped.LastStatus != agentapi.StatusActive {
		lastStatus = fmt.Sprintf("It was last seen as %s.", wording.Quote(string(stopped.LastStatus)))
	}
	lastFault := ""
	if stopped.LastFault != nil && !errors.Is(err, stopped.LastFault) {
		lastFault = "The last look at it failed: " + reason(stopped.LastFault) + "."
	}
	return summary, wording.Paragraphs(
		fmt.Sprintf("This run no longer waits for job %s; the job itself goes on at the service.", jobID),
		why, lastStatus, lastFault,
		next)
}

// mayHaveSent is what to check after an internal error that a POST may precede.
const mayHaveSent = "Something may have been sent: look at the jobs of the project at the service before you apply again."

// internalError words a bug of the provider.
func internalError(what string) (summary, detail string) {
	return "Bug in the agent provider", wording.Paragraphs(what,
		"Please report this at https://github.com/agentjobs/terraform-provider-agent/issues, without keys and prompts.")
}

// jobNotFound words that a job to be read does not exist.
func jobNotFound(err error, projectID, jobID string) (summary, detail string) {
	return "Agent job not found", wording.Paragraphs(
		fmt.Sprintf("The service does not know job %s in project %s.", jobID, projectID), cause(err))
}

// failedJob words a job that the service gave up.
func failedJob(m *jobModel, next string) (summary, detail string) {
	link := "It opened no pull request."
	if !m.PRLink.IsNull() {
		link = "Its pull request: " + m.PRLink.ValueString()
	}
	return "Agent job failed", wording.Paragraphs(
		fmt.Sprintf("Job %s in project %s ended as failed: the service met an error that it could not recover from.", m.ID.ValueString(), m.ProjectID.ValueString()),
		link, next)
}
