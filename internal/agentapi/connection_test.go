// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// As many as are used at once are kept, and none for ever.
func TestExchange_pooledConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const callers = 128
		s, c := startServer(t, faultserver.Options{InMemory: true})
		s.Always(faultserver.Get, func(x *faultserver.Exchange) {
			time.Sleep(time.Second) // until all have asked
			faultserver.Healthy(x)
		})
		for i, dials := range []int{callers, callers, 2 * callers} {
			time.Sleep(time.Duration(i) * time.Minute) // the third time, the connections have idled too long
			var all sync.WaitGroup
			for range callers {
				all.Go(func() { _, _ = c.ReadJob(t.Context(), "p", "job_1") })
			}
			all.Wait()
			synctest.Wait() // the connections are idle again
			if s.Dials() != dials {
				t.Errorf("%d connections for %d callers, want %d", s.Dials(), callers, dials)
			}
		}
	})
}

// The proxy is that of the environment, and a dead address leaves time for the next one.
func TestNewTransports(t *testing.T) {
	t.Parallel()
	environment := reflect.ValueOf(http.ProxyFromEnvironment).Pointer() // which reads it once, and excepts loopback addresses
	forPOSTs, forGETs := newTransports(Config{})
	if reflect.ValueOf(forPOSTs.Proxy).Pointer() != environment || reflect.ValueOf(forGETs.Proxy).Pointer() != environment {
		t.Error("HTTPS_PROXY is ignored")
	}
	for timeout, want := range map[time.Duration]time.Duration{10 * time.Second: 10 * time.Second, time.Hour: 30 * time.Second} {
		if got := newDialer(timeout).Timeout; got != want {
			t.Errorf("%v for all addresses within a request timeout of %v, want %v", got, timeout, want)
		}
	}
}

// What cannot work is not tried for a minute: a proxy that refuses, or a handshake that fails for another reason than a
// connection that broke. Either may be a stray one (C14), so it counts at the third time.
func TestConnect_C02_refused(t *testing.T) {
	t.Parallel()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	garbled := []tls.Certificate{{Certificate: [][]byte{[]byte("no certificate")}, PrivateKey: key}}
	secure := func(config *tls.Config) func(net.Conn) {
		return func(conn net.Conn) { _ = tls.Server(conn, config).Handshake() }
	}
	proxy := func(status string) func(net.Conn) {
		return func(conn net.Conn) {
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			_, _ = io.WriteString(conn, "HTTP/1.1 "+status+"\r\n\r\n")
		}
	}
	for name, tc := range map[string]struct {
		serve func(net.Conn)
		is    error
		says  string
	}{
		"garbled":     {secure(&tls.Config{Certificates: garbled}), ErrHandshake, "failed to parse certificate"},
		"old version": {secure(&tls.Config{Certificates: garbled, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}), ErrHandshake, "protocol version"},
		"no TLS":      {proxy("400 Bad Request"), ErrHandshake, "TLS handshake"},
		"broken":      {func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1)) }, nil, "tried for"},
		"hanging":     {func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }, nil, ""}, // leaves time to try again
		"proxy 407":   {proxy("407 Authentication"), ErrProxyRefused, "the proxy refused the connection: proxy.invalid:3128 responded with 407 Proxy Authentication Required"},
		"proxy 403":   {proxy("403 Policy"), ErrProxyRefused, "the proxy refused the connection: proxy.invalid:3128 responded with 403 Forbidden"},
		"proxy 302":   {proxy("302 Sign in"), ErrProxyRefused, "the proxy refused the connection: proxy.invalid:3128 responded with 302 Found"},
		"proxy 200":   {proxy("200 OK"), nil, "no connection to the service"},
		"proxy 502":   {proxy("502 Bad"), nil, "the proxy proxy.invalid:3128 responded with 502 Bad Gateway"},
	} {
		for _, op := range []Op{OpCreate, OpGet} {
			synctest.Test(t, func(t *testing.T) {
				dials := 0
				var all sync.WaitGroup
				c := newClient(t, "https://service.invalid", func(config *Config) {
					config.Dial = func(context.Context, string, string) (net.Conn, error) {
						dials++
						client, server := net.Pipe()
						all.Go(func() {
							tc.serve(server)
							_ = server.Close()
						})
						return client, nil
					}
				})
				if strings.HasPrefix(name, "proxy") {
					for _, transport := range []http.RoundTripper{c.postTransport, c.getTransport} {
						transport.(*http.Transport).Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.invalid:3128", User: url.UserPassword("me", canary)})
					}
				}
				start := time.Now()
				var err error
				if op == OpGet {
					_, err = c.ReadJob(t.Context(), "p", "job_1")
				} else {
					_, err = c.CreateJob(t.Context(), "p", NewJob{Prompt: "x"}, new(recorder))
				}
				took := time.Since(start)
				synctest.Wait() // for a dial of which nobody waits for the end
				all.Wait()
				failure, _ := errors.AsType[*Error](err)
				if failure == nil || !strings.Contains(fmt.Sprint(err, " tried for ", failure.Lasted), tc.says) || op == OpCreate && !errors.Is(err, ErrNotSent) {
					t.Fatalf("%s, %s: %v, want %q", name, op, err, tc.says)
				}
				noCanary(t, "the error", err.Error())
				if isQuick := took < 20*time.Second && dials == fewestRefusals; tc.is != nil && (!isQuick || !errors.Is(err, tc.is)) {
					t.Errorf("%s, %s: %v after %v and %d connections, want %v at the third", name, op, err, took, dials, tc.is)
				}
				isTimed := name == "hanging" || failure.Lasted.Round(time.Second) == took.Round(time.Second)
				if isTemporary := took > 45*time.Second && dials > 2 && isTimed; tc.is == nil && !isTemporary {
					t.Errorf("%s, %s: %v after %v, want a minute", name, op, err, took)
				}
			})
		}
	}
}

// A record that arrived is a record, whatever became of the rest of the response. What is ambiguous is not, but its ids
// are named.
func TestResponse_C05_envelope(t *testing.T) {
	t.Parallel()
	const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	sized := func(body string, more int) faultserver.Play {
		return faultserver.Raw(fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body)+more, body))
	}
	chunk := fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", head, len(record), record)
	for name, tc := range map[string]struct {
		play faultserver.Play
		lost bool
	}{
		"a BOM":              {play: sized("\ufeff"+record, 0)},
		"no last chunk":      {play: faultserver.Raw(chunk)},
		"a length too large": {play: sized(record, 1000)},
		"a reset":            {play: func(x *faultserver.Exchange) { sized(record, 1000)(x); faultserver.Reset(x) }},
		"a length too small": {play: sized(record, -1), lost: true},
		"cut after the id":   {play: sized(`{"id":"job_1","sta`, 10), lost: true},
		"trailing text":      {play: sized(record+"0", 0), lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := startServer(t, faultserver.Options{})
			s.Always(faultserver.Create, tc.play)
			s.Always(faultserver.Get, tc.play)
			job, err := c.CreateJob(t.Context(), "p", NewJob{Prompt: "x"}, new(recorder))
			if !tc.lost {
				wantClass(t, job, err, nil, 0, nil)
				job, err = c.PollJob(t.Context(), "p", "job_1")
				wantClass(t, job, err, nil, 0, nil)
				return
			}
			wantClass(t, job, err, ErrUnknownOutcome, 200, nil)
			if job, err = c.PollJob(t.Context(), "p", "job_1"); !errors.Is(err, ErrUnavailable) {
				t.Errorf("GET: %v, %v, want ErrUnavailable", job, err)
			}
		})
	}
}

// A server that refuses a large prompt before it has read it all is heard, whatever the size. If nothing is heard, a
// request that was cut was not accepted, and is sent again. The server offers HTTP/2, too.
//
// Red without: postConn (the response is lost), cut (the outcome is unknown).
func TestCreateJob_C15_largePrompt(t *testing.T) {
	t.Parallel()
	for _, size := range []int{60 << 10, 900 << 10, 8 << 20} {
		for name, status := range map[string]int{"413": 413, "503": 503, "reset": 0, "read": 201} {
			t.Run(fmt.Sprintf("%d kB, %s", size>>10, name), func(t *testing.T) {
				t.Parallel()
				c := startHTTP2(t, "", func(w http.ResponseWriter, r *http.Request) {
					limit := int64(1000)
					if status == 201 {
						limit = int64(2 * size)
					}
					_, _ = io.CopyN(io.Discard, r.Body, limit)
					conn, _, err := http.NewResponseController(w).Hijack()
					if err != nil {
						t.Error(err)
						return
					}
					defer func() { _ = conn.Close() }()
					if status != 0 {
						_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d \r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", status, len(record), record)
					}
				})
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				r := apiCall{op: OpCreate, projectID: "p", body: bytes.Repeat([]byte("x"), size), recorder: new(recorder), isPaused: func() bool { return false }}
				got, err := c.exchange(ctx, c.postTransport, r)
				job, failure := c.classifyPost(r, got, err)
				switch isSmall := size < 2<<20; { // the kernel may take it all before anything is known
				case status == 201:
					wantClass(t, job, failure, nil, 0, nil)
				case status == 413:
					wantClass(t, job, failure, ErrRefused, 413, nil)
				case isSmall && errors.Is(failure, ErrUnknownOutcome):
				default:
					wantClass(t, job, failure, ErrNotSent, status, errCut)
				}
			})
		}
	}
}
