// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
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

// A dead address must leave time for the next one.
func TestNewDialer_requestTimeout(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[time.Duration]time.Duration{10 * time.Second: 10 * time.Second, time.Hour: 30 * time.Second} {
		if got := newDialer(timeout).Timeout; got != want {
			t.Errorf("%v for all addresses within a request timeout of %v, want %v", got, timeout, want)
		}
	}
}

// A handshake that hangs leaves time to try again within one call.
func TestTLS_hangingHandshake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := startServer(t, faultserver.Options{InMemory: true, TLS: true})
		s.OnConnect(func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
		start := time.Now()
		if _, err := c.PollJob(t.Context(), "p", "job_1"); !errors.Is(err, ErrUnavailable) || time.Since(start) != 15*time.Second {
			t.Errorf("%v after %v, want ErrUnavailable after 15s", err, time.Since(start))
		}
	})
}

// What a proxy refuses has not reached the service, and is sent again.
func TestProxy_C14(t *testing.T) {
	t.Parallel()
	environment := reflect.ValueOf(http.ProxyFromEnvironment).Pointer() // which reads it once, and excepts loopback addresses
	forPOSTs, forGETs := newTransports(Config{})
	if reflect.ValueOf(forPOSTs.Proxy).Pointer() != environment || reflect.ValueOf(forGETs.Proxy).Pointer() != environment {
		t.Error("HTTPS_PROXY is ignored")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var proxy sync.WaitGroup
	proxy.Go(func() {
		for _, status := range []int{407, 503, 200} {
			client, err := listener.Accept()
			if err != nil {
				t.Errorf("no request to be answered with %d: %v", status, err)
				return
			}
			r, err := http.ReadRequest(bufio.NewReader(client))
			if err != nil || r.Method != http.MethodConnect || r.Header.Get("Authorization") != "" {
				t.Errorf("the proxy got %v, %+v", err, r)
			}
			_, _ = fmt.Fprintf(client, "HTTP/1.1 %d \r\n\r\n", status)
			if status == http.StatusOK {
				service, err := net.Dial("tcp", r.Host)
				if err != nil {
					t.Error(err)
					return
				}
				go func() { _, _ = io.Copy(client, service) }()
				_, _ = io.Copy(service, client)
				_ = service.Close()
			}
			_ = client.Close()
		}
	})
	s, c := startServer(t, faultserver.Options{TLS: true})
	transport, _ := c.postTransport.(*http.Transport)
	transport.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: listener.Addr().String()})
	if job, err := c.CreateJob(t.Context(), "p", NewJob{Prompt: "x"}, new(recorder)); err != nil || job.ID != "job_1" {
		t.Errorf("%v, %v, want the job", job, err)
	}
	_ = listener.Close()
	proxy.Wait()
	if posts := s.Count(faultserver.Create); posts != 1 {
		t.Errorf("%d POSTs, want 1", posts)
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
		ids  string // shown in a response that is not a record
		lost bool
	}{
		"whole":              {play: sized(record, 0)},
		"a BOM":              {play: sized("\ufeff"+record, 0)},
		"white space":        {play: sized(" \r\n"+record+"\n\t \n", 0)},
		"no last chunk":      {play: faultserver.Raw(chunk)},
		"a broken chunk":     {play: faultserver.Raw(chunk + "zz\r\n")},
		"a length too large": {play: sized(record, 1000)},
		"no length":          {play: faultserver.Raw(head + "\r\n" + record)},
		"a reset":            {play: func(x *faultserver.Exchange) { sized(record, 1000)(x); faultserver.Reset(x) }},
		"a length too small": {play: sized(record, -1), lost: true, ids: "job_1"},
		"cut after the id":   {play: sized(`{"id":"job_1","sta`, 10), lost: true, ids: "job_1"},
		"cut in the id":      {play: sized(`{"id":"job_1`, 10), lost: true},
		"two objects":        {play: sized(record+`{"id":"job_2"}`, 0), lost: true, ids: "job_1, job_2"},
		"trailing text":      {play: sized(record+"0", 0), lost: true, ids: "job_1"},
		"nothing":            {play: sized("", 0), lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var logged []string
			s, c := startServer(t, faultserver.Options{}, func(config *Config) {
				config.Log = func(_ context.Context, fields map[string]any) { logged = append(logged, fmt.Sprint(fields["error"])) }
			})
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
			failure, _ := errors.AsType[*Error](err)
			if ids := strings.Join(failure.JobIDs, ", "); ids != tc.ids || !strings.Contains(failure.Error(), failure.ShownJobs()) {
				t.Errorf("%v names the ids %q, want %q", failure, ids, tc.ids)
			}
			if !strings.Contains(strings.Join(logged, ""), failure.ShownJobs()) {
				t.Errorf("logged %q without the ids", logged)
			}
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
				s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
				}))
				s.EnableHTTP2 = true
				s.StartTLS()
				defer s.Close()
				c := newClient(t, s.URL, func(config *Config) {
					config.RootCAs = x509.NewCertPool()
					config.RootCAs.AddCert(s.Certificate())
				})
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				r := request{op: OpCreate, projectID: "p", body: bytes.Repeat([]byte("x"), size), recorder: new(recorder), isPaused: func() bool { return false }}
				got, err := c.do(ctx, c.postTransport, r)
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
