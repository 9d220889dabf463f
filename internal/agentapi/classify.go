// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"time"

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
func (c *Client) jobIn(r request, got *response) (*Job, error) {
	job, err := decodeJob(got.body, c.config.Key)
	switch {
	case err != nil && isWebPage(got.header, got.body):
		return nil, ErrWebPage
	case err == nil && r.jobID != "" && job.ID != r.jobID:
		return nil, wrongJob(job)
	}
	return job, err
}

// isSuccess reports whether the status is a success: no other response can have a job record.
func (r *response) isSuccess() bool { return r.status >= 200 && r.status < 300 }

// classifyPost classifies the outcome of a POST: if the response is neither a complete job record
// nor a refusal, the outcome is unknown, unless the service cannot have received all of the
// request.
func (c *Client) classifyPost(r request, got *response, err error) (*Job, *Error) {
	switch {
	case got.isSuccess():
		job, noJob := c.jobIn(r, got)
		if noJob == nil {
			return job, nil
		}
		return nil, c.newError(r, ErrUnknownOutcome, got, cmp.Or(err, noJob))
	case refuses(got.status):
		return nil, c.newError(r, ErrRefused, got, nil)
	case got.status == 0 && !got.reached:
		return nil, c.newError(r, ErrNotSent, got, err)
	case got.cut && (errors.Is(err, errTimeout) || errors.Is(err, errStopped)):
		return nil, c.newError(r, ErrNotSent, got, err)
	case got.cut:
		return nil, c.newError(r, ErrNotSent, got, errCut)
	}
	return nil, c.newError(r, ErrUnknownOutcome, got, err)
}

// classifyGet classifies the outcome of a GET. What it says counts only if it persists: see read.
func (c *Client) classifyGet(r request, got *response, err error) (*Job, *Error) {
	switch {
	case got.isSuccess():
		job, noJob := c.jobIn(r, got)
		switch {
		case noJob == nil:
			return job, nil
		case errors.Is(noJob, ErrWebPage), errors.Is(noJob, ErrWrongJob):
			return nil, c.newError(r, ErrRefused, got, noJob)
		}
		failure := c.newError(r, ErrUnavailable, got, cmp.Or(err, noJob))
		if failure.Detail != "" { // an error message in a whole object: it would come again
			failure.Class = ErrRefused
		}
		return nil, failure
	case errors.Is(err, ErrCertificate), errors.Is(err, ErrHandshake), errors.Is(err, ErrProxyRefused):
		return nil, c.newError(r, ErrRefused, got, err)
	}
	switch got.status {
	case 0, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return nil, c.newError(r, ErrUnavailable, got, err)
	}
	if got.status >= 500 {
		return nil, c.newError(r, ErrUnavailable, got, err)
	}
	return nil, c.newError(r, ErrRefused, got, nil)
}

// wrongJob names the job whose record was received. decodeJob has checked its id.
func wrongJob(received *Job) error {
	return fmt.Errorf("%w: %s", ErrWrongJob, received.ID)
}

// newError describes a failure with what the response contains about it.
func (c *Client) newError(r request, class error, got *response, err error) *Error {
	failure := r.fail(class, err)
	failure.Request = r.method() + " " + escape.Printable(c.config.Key.mask(r.url(c.config.BaseURL)))
	if !errors.Is(class, ErrNotSent) || got.status != 0 { // else it stays that of an earlier 429
		failure.StatusCode = got.status
	}
	if got.status != 0 && !got.isSuccess() || errors.Is(err, errNoID) { // a whole object that is no record may say why
		failure.Detail = escape.Printable(got.message(c.config.Key))
	}
	if got.status != 0 && !got.isSuccess() {
		failure.RetryAfter, _ = retryAfter(got.header, time.Now())
		switch {
		case got.status >= 300 && got.status < 400:
			failure.Detail = escape.Printable(c.config.Key.mask(got.header.Get("Location")))
		case err == nil && isWebPage(got.header, got.body):
			failure.Err = ErrWebPage
		}
	}
	return failure
}
