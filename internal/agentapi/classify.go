// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"

	"github.com/agentjobs/terraform-provider-agent/internal/escape"
)

// statusClientClosed is how nginx reports a client that left before the response.
const statusClientClosed = 499

// refuses reports whether a response to a POST says that it had no effect. Most redirects do, but a
// 303 follows a POST that was handled, and no POST should get a 304. A proxy may respond 408 or 499
// after it has forwarded the request, when the service is slow.
func refuses(status int) bool {
	switch status {
	case http.StatusSeeOther, http.StatusNotModified, http.StatusRequestTimeout, statusClientClosed:
		return false
	}
	return status >= 300 && status < 500
}

// jobIn returns the record in a response. If a record is complete, it does not matter what became
// of the rest of the response.
func (c *Client) jobIn(call apiCall, got *response) (*Job, error) {
	job, err := decodeJob(got.body, c.config.Key)
	switch {
	case err != nil && got.isWebPage():
		return nil, ErrWebPage
	case err == nil && call.jobID != "" && job.ID != call.jobID:
		return nil, fmt.Errorf("%w: %s", errWrongJob, job.ID)
	}
	return job, err
}

// classifyPost classifies the outcome of a POST: if the response is neither a complete job record
// nor a refusal, the outcome is unknown, unless the service cannot have received all of the
// request.
func (c *Client) classifyPost(call apiCall, got *response, err error) (*Job, *Error) {
	switch {
	case got.obstacle != nil:
		return nil, call.fail(ErrNotSent, got.obstacle)
	case got.isSuccess():
		job, noJob := c.jobIn(call, got)
		if noJob == nil {
			return job, nil
		}
		return nil, c.newError(call, ErrUnknownOutcome, got, cmp.Or(err, noJob))
	case refuses(got.status):
		return nil, c.newError(call, ErrRefused, got, nil)
	case got.status == 0 && !got.isBegun:
		return nil, c.newError(call, ErrNotSent, got, err)
	case got.isCut && (errors.Is(err, errTimeout) || errors.Is(err, errStopped)):
		return nil, c.newError(call, ErrNotSent, got, err)
	case got.isCut:
		return nil, c.newError(call, ErrNotSent, got, errCut)
	}
	return nil, c.newError(call, ErrUnknownOutcome, got, err)
}

// classifyGet classifies the outcome of a GET. What it says counts only if it persists: see read.
func (c *Client) classifyGet(call apiCall, got *response, err error) (*Job, *Error) {
	switch {
	case got.isSuccess():
		job, noJob := c.jobIn(call, got)
		switch {
		case noJob == nil:
			return job, nil
		case errors.Is(noJob, ErrWebPage), errors.Is(noJob, errWrongJob):
			return nil, c.newError(call, ErrRefused, got, noJob)
		}
		failure := c.newError(call, ErrUnavailable, got, cmp.Or(err, noJob))
		if failure.Detail != "" { // an error message in a whole object: it would come again
			failure.Class = ErrRefused
		}
		return nil, failure
	case errors.Is(err, ErrCertificate), errors.Is(err, ErrHandshake), errors.Is(err, ErrProxyRefused):
		return nil, c.newError(call, ErrRefused, got, err)
	case got.status == 0, got.status >= 500, got.status == http.StatusRequestTimeout,
		got.status == http.StatusTooEarly, got.status == http.StatusTooManyRequests:
		return nil, c.newError(call, ErrUnavailable, got, err)
	}
	return nil, c.newError(call, ErrRefused, got, nil)
}

// newError describes a failure with what the response contains about it.
func (c *Client) newError(call apiCall, class error, got *response, err error) *Error {
	failure := call.fail(class, err)
	failure.Endpoint = call.method() + " " + escape.Printable(c.config.Key.mask(call.url(c.config.BaseURL)))
	if !errors.Is(class, ErrNotSent) || got.status != 0 { // else it stays that of an earlier 429
		failure.StatusCode = got.status
	}
	detail := ""
	switch {
	case errors.Is(err, errNoID): // a whole object that is no record may say why
		detail = got.message(c.config.Key)
	case got.status == 0 || got.isSuccess():
	case got.status/100 == 3:
		detail = c.config.Key.mask(got.header.Get("Location"))
	default:
		detail, failure.RetryAfter = got.message(c.config.Key), retryAfter(got.header)
		if err == nil && got.isWebPage() {
			failure.Err = ErrWebPage
		}
	}
	failure.Detail = escape.Printable(detail)
	return failure
}
