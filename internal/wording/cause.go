// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wording

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/escape"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
)

// TimeoutError is the end of a call because of a timeout that the user can set.
type TimeoutError struct {
	Setting string
	Timeout time.Duration
}

// Error names the setting.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("the configured %s (%s) expired", e.Setting, e.Timeout)
}

// Unwrap returns the error of the context.
func (e *TimeoutError) Unwrap() error { return context.DeadlineExceeded }

// cause explains why a call failed and how to fix it. Without an error it is empty.
func cause(err error) string {
	if err == nil {
		return ""
	}
	return join(Sentence(errors.New(reason(err))), hint(err))
}

// reason describes the failure of a call, or another error.
func reason(err error) string {
	failure, isCall := errors.AsType[*agentapi.Error](err)
	_, isJournalError := errors.AsType[*journal.Error](err)
	timeout, expired := errors.AsType[*TimeoutError](err)
	switch {
	case isCall:
		return failedCall(failure)
	case isJournalError: // a deadline in it is the journal's, not that of timeouts
	case errors.Is(err, context.Canceled):
		return "the run was interrupted"
	case expired:
		return timeout.Error()
	}
	return escape.Printable(err.Error())
}

func failedCall(failure *agentapi.Error) string {
	var parts []string
	if response := failure.Response(); response != "" {
		parts = append(parts, response)
	}
	if failure.Err != nil {
		parts = append(parts, reason(failure.Err))
	}
	switch {
	case failure.Detail == "":
	case failure.IsRedirect():
		parts = append(parts, `redirecting to "`+failure.Detail+`"`)
	default:
		parts = append(parts, `error message "`+failure.Detail+`"`)
	}
	if failure.Lasted >= time.Second {
		parts = append(parts, "tried for "+failure.Lasted.Round(time.Second).String())
	}
	text := strings.Join(parts, ", ")
	if failure.Endpoint != "" {
		text += " (" + failure.Endpoint + ")" // it often shows what is wrong with base_url or the project
	}
	return text
}

// hint says what to check, by the type of the failure.
func hint(err error) string {
	failure := new(agentapi.Error)
	errors.As(err, &failure)
	ofJournal, isJournalError := errors.AsType[*journal.Error](err)
	_, isWait := errors.AsType[*wait.Error](err)
	switch {
	case isJournalError:
		return checkJournal(ofJournal)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, agentapi.ErrUnavailable):
		return ""
	case errors.Is(err, agentapi.ErrCertificate):
		return "Check base_url and the clock of this machine. If the service, or a proxy that inspects the traffic, " +
			"has a certificate from a private CA, set ca_certificates_pem to that CA's certificate."
	case errors.Is(err, agentapi.ErrHandshake):
		return "Check base_url. The service, or a proxy that inspects the traffic, must offer TLS 1.2 or later and a valid certificate."
	case errors.Is(err, agentapi.ErrProxyRefused):
		return "The request did not reach the service. Check HTTPS_PROXY, with the user and the password in it, and whether the proxy " +
			"allows connections to the host of base_url. To reach the service without it, add that host to NO_PROXY."
	case errors.Is(err, agentapi.ErrWebPage) && failure.StatusCode < http.StatusInternalServerError:
		return "Something other than the agent service responded. Check base_url, and whether a proxy or a login page is in between."
	case failure.StatusCode == http.StatusForbidden:
		return "Check admin_key, or AGENT_ADMIN_KEY if that is not set: the key may lack the required scope, " +
			"or may not be allowed from this address."
	case failure.IsKeyRejected():
		return "Check admin_key, or AGENT_ADMIN_KEY if that is not set: the key may be unknown to this service, or expired."
	case failure.StatusCode == http.StatusPaymentRequired:
		return "Check credits and plan in the service's dashboard."
	case failure.StatusCode == http.StatusRequestEntityTooLarge:
		return "Shorten the prompt."
	case failure.IsRedirect():
		return "Redirects are not followed, because the key is sent to base_url only. " +
			"Check base_url, and whether a proxy or a login page is in between."
	case errors.Is(err, agentapi.ErrNotFound) && strings.Contains(failure.Endpoint, "/v2/v2/agent/"):
		return "Remove /v2 from base_url: the provider adds it."
	case errors.Is(err, agentapi.ErrNotFound) && failure.Op == agentapi.OpCreate:
		return "Check base_url, project_id and the key."
	case errors.Is(err, agentapi.ErrNotFound):
		return "Check base_url, project_id and the key, and whether the service still keeps the job."
	case failure.Op == agentapi.OpGet && failure.StatusCode == http.StatusTooManyRequests && !isWait:
		return "A single read waits up to ten minutes for the rate limit, which timeouts does not change. Try again later."
	case errors.Is(err, agentapi.ErrPauseTooLong):
		return "To let a run wait that long, raise timeouts."
	case (errors.Is(err, agentapi.ErrNotSent) || errors.Is(err, agentapi.ErrUnavailable)) && failure.StatusCode == 0 && failure.Err != nil:
		return "Check base_url, the network between this machine and the service, HTTPS_PROXY and NO_PROXY."
	}
	return ""
}
