// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/escape"
)

// Op names the call that failed.
type Op string

// The calls that the service offers.
const (
	OpCreate  Op = "create job"
	OpMessage Op = "send message"
	OpGet     Op = "get job"
)

// Class says what a failed call means for the service.
type Class int

const (
	// NotSent: no byte of the request reached the service.
	NotSent Class = iota + 1
	// Refused: the service, or a proxy before it, answered with a definite no.
	Refused
	// UnknownOutcome: a POST was sent, and no answer says whether it had its effect.
	UnknownOutcome
	// Unavailable: a GET failed in a way that may pass.
	Unavailable
	// Unusable: a GET was answered, but not with the record of the job that was asked for.
	Unusable
)

// Sentinels for errors.Is. An *Error matches the one of its class, and those
// of its status and cause.
var (
	ErrNotSent        = errors.New("nothing was sent")
	ErrRefused        = errors.New("refused")
	ErrUnknownOutcome = errors.New("outcome unknown")
	ErrUnavailable    = errors.New("service unavailable")
	// ErrUnauthorized matches the answers 401 and 403.
	ErrUnauthorized = errors.New("key not accepted")
	// ErrForbidden matches the answer 403: the key is known, and may not do this.
	ErrForbidden = errors.New("forbidden")
	// ErrNotFound matches an answer 404 that is not a web page.
	ErrNotFound = errors.New("not found")
	// ErrWebPage matches an HTML answer: something other than the service replied.
	ErrWebPage = errors.New("the answer is a web page, not the service's JSON")
	// ErrWrongJob matches a record that carries another id than the one asked for.
	ErrWrongJob = errors.New("the answer is the record of another job")
	// ErrPauseTooLong matches a call given up because the service's rate limit
	// lasts longer than the call may.
	ErrPauseTooLong = errors.New("the rate limit lasts longer than the time that is left")
	// ErrRedirected matches a 3xx answer. Redirects are never followed: the key
	// goes only where the user said.
	ErrRedirected = errors.New("redirected")
	// ErrProxy matches a proxy that cannot be reached or refused the connection.
	ErrProxy = errors.New("proxy")
	// ErrCertificate matches a server certificate that could not be verified.
	ErrCertificate = errors.New("the server's certificate could not be verified")
	// ErrNoTLS matches a server that answered https:// with something else.
	ErrNoTLS = errors.New("the server does not speak TLS")
)

// Error is the failure of one call.
type Error struct {
	Op         Op
	Class      Class
	ProjectID  string
	JobID      string        // empty for a create
	Request    string        // method and URL; empty when none was tried
	StatusCode int           // 0 without an HTTP answer
	Detail     string        // the service's own words: escaped, cut, the key masked
	RetryAfter time.Duration // how long the service asked to wait; 0 when it did not
	Err        error         // cause; may be nil
}

// Error tells the call, the answer and the cause, safe to show.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Op))
	if answer := e.Answer(); answer != "" {
		b.WriteString(": " + answer)
	}
	if e.Err != nil {
		b.WriteString(": " + escape.Printable(e.Err.Error()))
	}
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	return b.String()
}

// Answer tells the status of the answer; it is empty without one.
func (e *Error) Answer() string {
	if e.StatusCode == 0 {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("the service answered %d %s", e.StatusCode, http.StatusText(e.StatusCode)))
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is matches the sentinels of the class and of the status.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrNotSent:
		return e.Class == NotSent
	case ErrRefused:
		return e.Class == Refused
	case ErrUnknownOutcome:
		return e.Class == UnknownOutcome
	case ErrUnavailable:
		return e.Class == Unavailable
	case ErrUnauthorized:
		return e.StatusCode == http.StatusUnauthorized || e.StatusCode == http.StatusForbidden
	case ErrForbidden:
		return e.StatusCode == http.StatusForbidden
	case ErrNotFound:
		return e.StatusCode == http.StatusNotFound && !errors.Is(e.Err, ErrWebPage)
	case ErrRedirected:
		return e.StatusCode >= 300 && e.StatusCode < 400
	}
	return false
}

// serviceMessage finds what the service says about a refusal: a string under
// "error" or "message", an object with a "message" under "error", problem+json's
// "detail" or "title", or the text itself. A web page says nothing useful.
func serviceMessage(header http.Header, body []byte) string {
	if isWebPage(header, body) {
		return ""
	}
	fields, err := decodeObject(body)
	if err != nil {
		return strings.TrimSpace(string(body))
	}
	for _, name := range []string{"error", "message", "detail", "title"} {
		if text := optionalString(fields[name]); text != nil && *text != "" {
			return *text
		}
		if nested, err := decodeObject(fields[name]); err == nil {
			if text := optionalString(nested["message"]); text != nil && *text != "" {
				return *text
			}
		}
	}
	return ""
}

func isWebPage(header http.Header, body []byte) bool {
	kind := strings.ToLower(header.Get("Content-Type"))
	return strings.HasPrefix(kind, "text/html") || strings.HasPrefix(kind, "application/xhtml") ||
		strings.HasPrefix(strings.TrimSpace(string(body[:min(len(body), 64)])), "<")
}
