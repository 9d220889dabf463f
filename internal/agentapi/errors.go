// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/escape"
)

// Op names a call.
type Op string

// The calls that the service offers.
const (
	OpCreate  Op = "create job"
	OpMessage Op = "send message"
	OpGet     Op = "get job"
)

// The classes of failed calls, for errors.Is: what they mean for the service.
var (
	// ErrNotSent: the service did not receive the last attempt, or not all of it. Any earlier
	// attempt that it received was refused with a 429, which is then the StatusCode.
	ErrNotSent = errors.New("nothing was sent")
	// ErrRefused: the service, or a proxy before it, refused the request, or responded to a
	// GET with something else than the job's record.
	ErrRefused = errors.New("refused")
	// ErrUnknownOutcome: a POST was sent, and no response shows whether it had an effect.
	ErrUnknownOutcome = errors.New("outcome unknown")
	// ErrUnavailable: a GET failed in a way that is usually temporary.
	ErrUnavailable = errors.New("service unavailable")
)

// Causes, for errors.Is.
var (
	// ErrNotFound matches a response 404 that is no web page. For a GET, it has persisted, and 410 means
	// the same; for a message, 410 means that the job exists but is closed.
	ErrNotFound = errors.New("not found")
	// ErrWebPage matches an HTML response: something other than the service responded.
	ErrWebPage = errors.New("the response is a web page, not the service's JSON")
	// ErrPauseTooLong matches a call that the pause for the service's rate limit
	// would delay beyond its deadline.
	ErrPauseTooLong = errors.New("the pause for the service's rate limit exceeds the remaining time")
	// ErrCertificate matches a server certificate that could not be verified.
	ErrCertificate = errors.New("the server's certificate could not be verified")
	// ErrHandshake matches a TLS handshake that failed although the connection did not: they have
	// no version in common, or a certificate cannot be read.
	ErrHandshake = errors.New("no secure connection")
	// ErrProxyRefused matches a proxy's response that it does not connect to the service.
	ErrProxyRefused = errors.New("the proxy refused the connection")
)

// errWrongJob is a record with another id than the requested one.
var errWrongJob = errors.New("the response is the record of another job")

// Error is the failure of one call.
type Error struct {
	Op         Op
	Class      error         // one of the classes
	Endpoint   string        // method and URL; empty if an obstacle on our side stopped it: see wasTried
	StatusCode int           // of the last HTTP response; 0 without one
	Detail     string        // the service's error message: escaped, cut, the key masked
	RetryAfter time.Duration // how long the service asked to wait; 0 when it did not
	Err        error         // cause; may be nil
	Lasted     time.Duration // of a refused GET: how long there was no other response; of others: how long they were tried
}

// Error describes the call, the response and the cause, safe to show.
func (e *Error) Error() string {
	cause := ""
	if e.Err != nil {
		cause = escape.Printable(e.Err.Error())
	}
	parts := []string{string(e.Op), e.Response(), cause, e.Detail}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
}

// Response describes the status of the response; it is empty without one.
func (e *Error) Response() string {
	if e.StatusCode == 0 {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("the service responded with %d %s", e.StatusCode, http.StatusText(e.StatusCode)))
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is matches the class, and ErrNotFound by the status.
func (e *Error) Is(target error) bool {
	if target == ErrNotFound {
		isGone := e.StatusCode == http.StatusGone && e.Op == OpGet
		return (isGone || e.StatusCode == http.StatusNotFound) && e.Class != ErrUnavailable && !errors.Is(e.Err, ErrWebPage)
	}
	return target == e.Class
}

// IsKeyRejected reports a response 401 or 403.
func (e *Error) IsKeyRejected() bool {
	return e.StatusCode == http.StatusUnauthorized || e.StatusCode == http.StatusForbidden
}

// IsRedirect reports a 3xx response. Redirects are never followed: the key is sent only where the
// user configured it.
func (e *Error) IsRedirect() bool { return e.StatusCode/100 == 3 }

// wasTried reports whether nothing on our side stopped the call: its turn came, and its recorder let it pass.
func (e *Error) wasTried() bool { return e.Endpoint != "" }

// MustFix reports whether a refusal has a reason that would refuse another job's request, too.
func (e *Error) MustFix() bool {
	return e.IsKeyRejected() || e.StatusCode == http.StatusPaymentRequired || e.IsRedirect() || errors.Is(e, ErrWebPage)
}

// MayMeanClosed reports whether the refusal of a message may be about its job, or the prompt. Which
// status the service uses for a job that accepts no messages is not known, so it is any but those that
// are about something else.
func MayMeanClosed(err error) bool {
	failure, ok := errors.AsType[*Error](err)
	if !ok || failure.Op != OpMessage || !errors.Is(failure, ErrRefused) || failure.MustFix() {
		return false
	}
	switch failure.StatusCode {
	case http.StatusNotFound, http.StatusProxyAuthRequired, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong,
		http.StatusUnsupportedMediaType, http.StatusMisdirectedRequest, http.StatusTooEarly, http.StatusUpgradeRequired,
		http.StatusTooManyRequests, http.StatusRequestHeaderFieldsTooLarge:
		return false
	}
	return true
}
