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
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"syscall"
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

// Dial opens a connection, like net.Dialer's DialContext.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// newDialer divides the time of one exchange among a host's addresses: net/http dials
// without the deadline of the request.
func newDialer(requestTimeout time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: min(requestTimeout, 30*time.Second), KeepAlive: 30 * time.Second}
}

// newTransports returns one transport for POSTs and one for GETs. Go sends a
// request again by itself when a kept-alive or HTTP/2 connection ends under it, so a
// POST gets a fresh HTTP/1.1 connection. GETs are pooled, and do not need HTTP/2 either.
func newTransports(config Config) (post, get *http.Transport) {
	dial := config.Dial
	if dial == nil {
		dial = newDialer(config.RequestTimeout).DialContext
	}
	build := func() *http.Transport {
		t := &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            dial,
			TLSClientConfig:        &tls.Config{RootCAs: config.RootCAs, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    15 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
			Protocols:              new(http.Protocols),
			OnProxyConnectResponse: checkProxy,
		}
		t.Protocols.SetHTTP1(true)
		return t
	}
	post, get = build(), build()
	post.DisableKeepAlives = true
	post.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &postConn{Conn: conn}, nil
	}
	get.MaxIdleConns, get.MaxIdleConnsPerHost = 128, 128
	get.IdleConnTimeout = 90 * time.Second
	return post, get
}

// response is the head of an HTTP response, and as much of its body as could be read.
type response struct {
	began  time.Time // when its request did
	took   time.Duration
	status int // 0: none
	header http.Header
	body   []byte

	// Of a POST:
	obstacle  error // why it was not sent
	isClaimed bool  // the recorder has claimed it
	isBegun   bool  // the transport has read from its body, so bytes may have been sent
	isCut     bool  // not all of its body was sent
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
		fields["error"] = failure.Error()
	}
	if pause > 0 {
		fields["pause_ms"] = pause.Milliseconds()
	}
	c.config.Log(ctx, fields)
}

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
	timeout := time.AfterFunc(c.config.RequestTimeout, func() { cancel(errTimeout) })
	defer timeout.Stop()
	isConnected := false
	var handshake atomic.Pointer[error] // one may end after the request went over another connection
	req, err := c.newRequest(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) { handshake.Store(&err) },
		GotConn: func(got httptrace.GotConnInfo) {
			isConnected = true
			if call.body != nil {
				timeout.Stop() // the claim has its own time limits
				d.connect(got.Conn)
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

// isRefusedHandshake reports whether a TLS handshake failed although the connection did not break:
// it would fail again.
func isRefusedHandshake(err error) bool {
	for _, broken := range []error{nil, io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed} {
		if errors.Is(err, broken) {
			return false
		}
	}
	_, isOfSystem := errors.AsType[syscall.Errno](err)
	network, ok := errors.AsType[net.Error](err)
	isSlow := ok && network.Timeout()
	return !isOfSystem && !isSlow
}

// checkProxy names the proxy that does not connect to the service. It is unavailable, or refuses
// and would do so again.
func checkProxy(_ context.Context, proxy *url.URL, _ *http.Request, got *http.Response) error {
	switch said := fmt.Sprintf("%s responded with %d %s", proxy.Host, got.StatusCode, http.StatusText(got.StatusCode)); {
	case got.StatusCode == http.StatusOK:
		return nil
	case got.StatusCode >= 500, got.StatusCode == http.StatusRequestTimeout, got.StatusCode == http.StatusTooManyRequests:
		return errors.New("the proxy " + said)
	default:
		return fmt.Errorf("%w: %s", ErrProxyRefused, said)
	}
}
