// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/escape"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// cause explains why a call failed and how to fix it.
func cause(err error) string {
	return wording.Paragraphs(wording.Sentence(errors.New(reason(err))), hint(err))
}

// reason describes the failure of a call.
func reason(err error) string {
	var failure *agentapi.Error
	if !errors.As(err, &failure) {
		return plainReason(err)
	}
	var parts []string
	if response := failure.Response(); response != "" {
		parts = append(parts, response)
	}
	if failure.Err != nil {
		parts = append(parts, plainReason(failure.Err))
	}
	switch {
	case failure.Detail == "":
	case errors.Is(failure, agentapi.ErrRedirected):
		parts = append(parts, `redirecting to "`+failure.Detail+`"`)
	default:
		parts = append(parts, `error message "`+failure.Detail+`"`)
	}
	text := strings.Join(parts, ", ")
	if failure.Request != "" {
		text += " (" + failure.Request + ")" // it often shows what is wrong with base_url or the project
	}
	return text
}

// plainReason describes an error that is not a failed call.
func plainReason(err error) string {
	_, isJournalError := errors.AsType[*journal.Error](err)
	timeout, expired := errors.AsType[*timeoutError](err)
	switch {
	case isJournalError: // it has its own time limits
	case errors.Is(err, context.Canceled):
		return "the run was interrupted"
	case expired:
		return timeout.Error()
	}
	return escape.Printable(err.Error())
}

// hint says what to check, by the type of the failure.
func hint(err error) string {
	failure := new(agentapi.Error)
	errors.As(err, &failure)
	_, isJournalError := errors.AsType[*journal.Error](err)
	switch {
	case isJournalError:
		return "Check journal.url, or AGENT_JOURNAL_URL if that is not set, and the credentials of this run."
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, agentapi.ErrUnavailable):
		return ""
	case errors.Is(err, agentapi.ErrCertificate):
		return "Check base_url and the clock of this machine. If the service, or a proxy that inspects the traffic, " +
			"has a certificate from a private CA, set ca_certificates_pem to that CA's certificate."
	case errors.Is(err, agentapi.ErrWebPage) && failure.StatusCode < http.StatusInternalServerError:
		return "Something other than the agent service responded. Check base_url, and whether a proxy or a login page is in between."
	case errors.Is(err, agentapi.ErrForbidden):
		return "Check admin_key, or AGENT_ADMIN_KEY if that is not set: the key may lack the required scope, " +
			"or may not be allowed from this address."
	case errors.Is(err, agentapi.ErrKeyRejected):
		return "Check admin_key, or AGENT_ADMIN_KEY if that is not set: the key may be unknown to this service, or expired."
	case errors.Is(err, agentapi.ErrPaymentRequired):
		return "Check credits and plan in the service's dashboard."
	case errors.Is(err, agentapi.ErrRedirected):
		return "Redirects are not followed, because the key is sent to base_url only. " +
			"Check base_url, and whether a proxy or a login page is in between."
	case errors.Is(err, agentapi.ErrNotFound) && strings.Contains(failure.Request, "/v2/v2/agent/"):
		return "Remove /v2 from base_url: the provider adds it."
	case errors.Is(err, agentapi.ErrNotFound) && failure.Op == agentapi.OpCreate:
		return "Check base_url, project_id and the key: each of them can cause a 404."
	case errors.Is(err, agentapi.ErrNotFound):
		return "Check base_url, project_id and the key: each of them can cause a 404, and so can a job that the service no longer keeps."
	case errors.Is(err, agentapi.ErrPauseTooLong):
		return "To let a run wait that long, raise timeouts."
	case (errors.Is(err, agentapi.ErrNotSent) || errors.Is(err, agentapi.ErrUnavailable)) && failure.StatusCode == 0 && failure.Err != nil:
		return "Check base_url, the network between this machine and the service, HTTPS_PROXY and NO_PROXY."
	}
	return ""
}

// missingJobHint says what to do about a job that the service does not know.
const missingJobHint = "If the job no longer exists, apply with -replace=ADDRESS to start a new one, or remove it from the state: " +
	"terraform (or tofu) state rm ADDRESS"

// unfinishedWait describes a wait that stopped before its job finished; next says what follows.
func unfinishedWait(err error, job *jobModel, next string) (summary, detail string) {
	stopped := new(wait.Error)
	errors.As(err, &stopped) // a wait returns no other
	lastStatus := ""
	if stopped.LastStatus != "" && stopped.LastStatus != agentapi.StatusActive {
		lastStatus = fmt.Sprintf("Its last status was %s.", wording.Quote(string(stopped.LastStatus)))
	}
	lastFault := ""
	if stopped.LastFault != nil && !errors.Is(err, stopped.LastFault) {
		lastFault = "The last poll failed: " + reason(stopped.LastFault) + "."
	}
	return "Agent job still running", wording.Paragraphs(
		fmt.Sprintf("This run stopped waiting for job %s. The job itself keeps running.", job.name()),
		cause(err), lastStatus, lastFault,
		next)
}

// mayHaveSent is what to check after an internal error that may follow a POST.
const mayHaveSent = "The prompt may have been sent: check the project's jobs in the service's dashboard before you apply again."

// internalError describes a bug of the provider, and where it is.
func internalError(what, where string) (summary, detail string) {
	return "Internal error in the agent provider", wording.Paragraphs(what, where,
		"Please report this at https://github.com/agentjobs/terraform-provider-agent/issues, without keys and prompts.")
}

// jobNotFound describes a job that the service does not know; effect says what that means, and whether it was sent anything.
func jobNotFound(err error, job *jobModel, effect, next string) (summary, detail string) {
	return "Agent job not found", wording.Paragraphs(
		fmt.Sprintf("The service does not know job %s. %s", job.name(), effect), cause(err), next)
}

// noLink is said of a null link: a job without a pull request may have committed directly.
const noLink = "The service shows no pull request."

// failedJob describes a job that failed.
func failedJob(job *jobModel, next string) (summary, detail string) {
	link := noLink
	if !job.PRLink.IsNull() {
		link = "Its pull request: " + job.PRLink.ValueString()
	}
	return "Agent job failed", wording.Paragraphs(
		fmt.Sprintf("Job %s accepted its prompt and then failed: the service hit an error that it could not recover from.", job.name()),
		link, next)
}
