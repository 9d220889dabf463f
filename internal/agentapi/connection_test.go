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
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// The proxy is that of the environment, a dead address leaves time for the next one, and as many connections as GETs use at
// once are kept, none of them for ever.
func TestNewTransports(t *testing.T) {
	t.Parallel()
	environment := reflect.ValueOf(http.ProxyFromEnvironment).Pointer() // which reads it once, and excepts loopback addresses
	post, get := newTransports(Config{})
	if reflect.ValueOf(post.Proxy).Pointer() != environment || reflect.ValueOf(get.Proxy).Pointer() != environment {
		t.Error("HTTPS_PROXY is ignored")
	}
	if min(get.MaxIdleConns, get.MaxIdleConnsPerHost) < 100 || get.IdleConnTimeout == 0 || newDialer(time.Hour).Timeout > 30*time.Second {
		t.Errorf("connections, how long they are kept, and a dial: %+v, %+v", get, newDialer(time.Hour))
	}
}

// The key and the prompt go to base_url alone, and not where a redirect leads. (C10)
// What shows another certificate than the trusted ones gets no byte, and is not tried again. (C02)
//
// Red without: RoundTrip in exchange (an http.Client follows); ErrCertificate in causeOf (sent again until the deadline).
func TestExchange_elsewhere(t *testing.T) {
	t.Parallel()
	elsewhere := startServer(t, "", func(_ http.ResponseWriter, r *http.Request) { t.Errorf("the other server received a %s", r.Method) })
	requests := map[string]int{}
	c := startServer(t, "", func(w http.ResponseWriter, r *http.Request) {
		if requests[r.Method]++; requests[r.Method] == 1 {
			w.Header().Set("Location", elsewhere.config.BaseURL.String())
			w.WriteHeader(http.StatusFound)
		}
		_, _ = io.WriteString(w, record)
	})
	job, err := c.CreateJob(t.Context(), "p", PostBody{Prompt: "x"}, new(recorder))
	wantClass(t, job, err, ErrRefused, 302, nil)
	job, err = c.ReadJob(t.Context(), "p", "job_1")
	wantClass(t, job, err, nil, 0, nil)
	tries := 0
	untrusting := newClient(t, c.config.BaseURL.String(), func(config *Config) { config.Log = func(context.Context, map[string]any) { tries++ } })
	job, err = untrusting.CreateJob(t.Context(), "p", PostBody{Prompt: "x"}, new(recorder))
	wantClass(t, job, err, ErrNotSent, 0, ErrCertificate)
	if tries != 1 || requests["POST"] != 1 {
		t.Errorf("%d attempts without trust, want 1", tries)
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
	const refused = "the proxy refused the connection: proxy.invalid:3128 responded with "
	for name, tc := range map[string]struct {
		serve func(net.Conn)
		is    error // nil: it may be temporary
		says  string
	}{
		"garbled":     {secure(&tls.Config{Certificates: garbled}), ErrHandshake, "failed to parse certificate"},
		"old version": {secure(&tls.Config{Certificates: garbled, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}), ErrHandshake, "protocol version"},
		"no TLS":      {proxy("400 Bad Request"), ErrHandshake, "TLS handshake"},
		"broken":      {func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1)) }, nil, ""},
		"hanging":     {func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }, nil, ""}, // leaves time to try again
		"proxy 407":   {proxy("407 Authentication"), ErrProxyRefused, refused + "407 Proxy Authentication Required"},
		"proxy 302":   {proxy("302 Sign in"), ErrProxyRefused, refused + "302 Found"},
		"proxy 200":   {proxy("200 OK"), nil, "no connection to the service"},
		"proxy 502":   {proxy("502 Bad"), nil, "the proxy proxy.invalid:3128 responded with 502 Bad Gateway"},
	} {
		ofRead := ErrRefused
		if tc.is == nil {
			ofRead = ErrUnavailable
		}
		for op, class := range map[int]error{0: ErrNotSent, 2: ofRead} {
			synctest.Test(t, func(t *testing.T) {
				dials := 0
				var all sync.WaitGroup
				c := newClient(t, "https://service.invalid", func(config *Config) {
					config.Dial = func(context.Context, string, string) (net.Conn, error) {
						dials++
						client, server := net.Pipe()
						all.Go(func() { tc.serve(server); _ = server.Close() })
						return client, nil
					}
				})
				if strings.HasPrefix(name, "proxy") {
					through := &url.URL{Scheme: "http", Host: "proxy.invalid:3128", User: url.UserPassword("me", canary)}
					c.postTransport.(*http.Transport).Proxy, c.getTransport.(*http.Transport).Proxy = http.ProxyURL(through), http.ProxyURL(through)
				}
				start := time.Now()
				_, err := calls(c, "p", "job_1")[op](t.Context())
				took := time.Since(start)
				synctest.Wait() // for a dial of which nobody waits for the end
				all.Wait()
				if !errors.Is(err, class) || tc.is != nil && !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("%s, call %d: %v, want %q", name, op, err, tc.says)
				}
				noCanary(t, "the error", err.Error())
				isTried, isRefused := took >= 45*time.Second && dials >= 3, took <= 20*time.Second && dials == fewestRefusals
				if tc.is == nil && !isTried || tc.is != nil && !isRefused {
					t.Errorf("%s, call %d: %d connections in %v", name, op, dials, took)
				}
			})
		}
	}
}

// A record that arrived is a record, whatever became of the rest of the response. What is ambiguous is not. Any
// success is one (C07). A POST without a whole response is not sent again.
func TestExchange_C05_response(t *testing.T) {
	t.Parallel()
	const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	sized := func(body string, more int, plays ...func(*tls.Conn)) http.HandlerFunc {
		return raw(fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body)+more, body), plays...)
	}
	chunk := fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", head, len(record), record)
	unknown := ErrUnknownOutcome
	for name, tc := range map[string]struct {
		play   http.HandlerFunc
		class  error // of a POST; nil: there is a job
		status int
		is     error
	}{
		"a BOM":              {play: sized("\ufeff"+record, 0)},
		"no last chunk":      {play: raw(chunk)},
		"a length too large": {play: sized(record, 1000)},
		"a reset":            {play: sized(record, 1000, reset)},
		"a length too small": {sized(record, -1), unknown, 200, errNoObject},
		"cut after the id":   {sized(`{"id":"job_1","sta`, 10), unknown, 200, io.ErrUnexpectedEOF},
		"trailing text":      {sized(record+"0", 0), unknown, 200, errNoObject},
		"C03 end of file":    {raw(""), unknown, 0, io.EOF},
		"C03 reset":          {raw("", reset), unknown, 0, syscall.ECONNRESET},
		"C13 it trickles in": {sized("", 1000, trickle), unknown, 200, errTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			posts := 0
			c := startServer(t, "", func(w http.ResponseWriter, r *http.Request) {
				if _, _ = io.ReadAll(r.Body); r.Method == http.MethodPost {
					posts++
				}
				tc.play(w, r)
			})
			if errors.Is(tc.is, errTimeout) {
				c.config.RequestTimeout = time.Second / 2
			}
			job, err := c.CreateJob(t.Context(), "p", PostBody{Prompt: "x"}, new(recorder))
			wantClass(t, job, err, tc.class, tc.status, tc.is)
			class := tc.class
			if class != nil {
				class = ErrUnavailable
			}
			job, err = c.PollJob(t.Context(), "p", "job_1")
			wantClass(t, job, err, class, tc.status, tc.is)
			if posts != 1 {
				t.Errorf("%d POSTs", posts)
			}
		})
	}
}

// A server that refuses a large prompt before it has read it all is heard, whatever the size. If nothing is heard, a
// request that was cut was not accepted, and is sent again. The server offers HTTP/2, too.
//
// Red without: postConn (the response is lost), isCut (the outcome is unknown).
func TestCreateJob_C15_largePrompt(t *testing.T) {
	t.Parallel()
	for _, size := range []int{60 << 10, 900 << 10, 8 << 20} {
		for name, status := range map[string]int{"413": 413, "503": 503, "reset": 0, "read": 201} {
			t.Run(fmt.Sprintf("%d kB, %s", size>>10, name), func(t *testing.T) {
				t.Parallel()
				respond := raw("")
				if status != 0 {
					respond = raw(fmt.Sprintf("HTTP/1.1 %d \r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", status, len(record), record))
				}
				c := startServer(t, "", func(w http.ResponseWriter, r *http.Request) {
					limit := int64(1000)
					if status == 201 {
						limit = int64(2 * size)
					}
					_, _ = io.CopyN(io.Discard, r.Body, limit)
					respond(w, r)
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
