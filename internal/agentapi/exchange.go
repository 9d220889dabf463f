// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/escape"
)

// maxBody is how much of a response is read, after decompression: a job record is
// under a kilobyte, and more than this is an attack or a mistake. A hundred waits may read at once.
const maxBody = 64 << 10

var (
	errTooLarge = errors.New("the response is larger than 64 kB")
	errTimeout  = errors.New("no complete response within the request timeout")
	errCut      = errors.New("the connection broke before the whole request was sent")
)

// exchange makes one HTTP exchange. The error is why the response is missing or
// incomplete; the response is never nil.
func (c *Client) exchange(ctx context.Context, transport http.RoundTripper, call apiCall) (got *response, err error) {
	got = &response{began: time.Now()}
	defer func() { got.took, err = time.Since(got.began), c.config.Key.maskError(err) }()
	d := delivery{call: call, unread: len(call.body)}
	if call.body != nil {
		var stop func()
		ctx, stop = d.detach(ctx)
		defer stop()
		defer d.end(got)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d.ctx = ctx
	timeout := time.AfterFunc(c.config.RequestTimeout, func() { cancel(errTimeout) })
	defer timeout.Stop()
	isConnected := false
	var handshake atomic.Pointer[error] // one may end after the request went over another connection
	req, err := c.newRequest(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) { handshake.Store(&err) },
		GotConn: func(info httptrace.GotConnInfo) {
			isConnected = true
			if call.body != nil {
				timeout.Stop() // the claim has its own time limits
				d.connect(info.Conn)
				timeout.Reset(c.config.RequestTimeout)
			}
		},
	}), call, &d)
	if err != nil {
		return got, err
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		if failed := handshake.Load(); failed != nil && isRefusedHandshake(*failed) && errors.Is(err, *failed) {
			err = fmt.Errorf("%w: %w", ErrHandshake, err)
		}
		return got, causeOf(ctx, isConnected, err)
	}
	defer func() { _ = res.Body.Close() }()
	got.status, got.header = res.StatusCode, res.Header
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	if len(body) > maxBody {
		body, err = body[:maxBody], errTooLarge
	}
	got.body = bytes.TrimPrefix(body, []byte("\ufeff"))
	if err != nil {
		return got, causeOf(ctx, true, err)
	}
	return got, nil
}

func (c *Client) newRequest(ctx context.Context, call apiCall, d *delivery) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, call.method(), call.url(c.config.BaseURL), nil)
	if err != nil {
		return nil, err
	}
	if call.body != nil { // without GetBody nothing below can send it a second time
		req.Body = io.NopCloser(postBody{bytes.NewReader(call.body), d})
		req.ContentLength = int64(len(call.body))
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.config.UserAgent)
	req.Header.Set("Authorization", "Bearer "+c.config.Key.reveal())
	return req, nil
}

// causeOf prefers the cause over the transport's wording of it, gives permanent
// failures a type, and says when there was no connection.
func causeOf(ctx context.Context, isConnected bool, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if unverified, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Errorf("%w: %w", ErrCertificate, unverified.Err)
	}
	switch {
	case isConnected:
		return fmt.Errorf("no usable response: %w", err)
	case errors.Is(err, context.DeadlineExceeded): // the dialer's own timeout: it must not pass for the end of ctx
		err = errors.New(err.Error())
	}
	return fmt.Errorf("no connection to the service: %w", err)
}

// logExchange logs an exchange and its outcome. pause is how long requests of this kind now wait
// for the rate limit.
func (c *Client) logExchange(ctx context.Context, call apiCall, got *response, job *Job, failure *Error, pause time.Duration) {
	if c.config.Log == nil {
		return
	}
	fields := map[string]any{
		"operation": string(call.op), "method": call.method(), "url": call.url(c.config.BaseURL), "request_bytes": len(call.body),
		"status": got.status, "response_bytes": len(got.body), "duration_ms": got.took.Milliseconds(),
	}
	if job != nil {
		fields["job_status"] = escape.Printable(string(job.Status))
	}
	if failure != nil {
		logged := *failure
		logged.Detail = "" // the service's message may quote the prompt
		fields["error"] = logged.Error()
	}
	if pause > 0 {
		fields["pause_ms"] = pause.Milliseconds()
	}
	c.config.Log(ctx, fields)
}
