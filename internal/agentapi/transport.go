// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"
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
