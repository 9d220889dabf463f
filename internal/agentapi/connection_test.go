// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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

// C13: the largest response that is read.
func TestExchange_bound(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]error{maxBody: nil, maxBody + 1: errTooLarge} {
		c := newFakeClient(t, &fakeService{answers: []answer{{status: 200, body: record + strings.Repeat(" ", size-len(record))}}})
		if _, err := c.PollJob(t.Context(), "p", "job_1"); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v, want %v", size, err, want)
		}
	}
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
		s, c := startServer(t, faultserver.Options{InMemory: true, Certificate: faultserver.GoodCertificate})
		s.OnConnect(func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
		start := time.Now()
		if _, err := c.PollJob(t.Context(), "p", "job_1"); !errors.Is(err, ErrUnavailable) || time.Since(start) != 15*time.Second {
			t.Errorf("%v after %v, want ErrUnavailable after 15s", err, time.Since(start))
		}
	})
}

// Where a server offers HTTP/2, whose client sends requests again by itself, nothing uses it.
func TestHTTP2_C11(t *testing.T) {
	t.Parallel()
	var got []string
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.Proto)
		_, _ = io.WriteString(w, record)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	c := newClient(t, s.URL, func(config *Config) {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AddCert(s.Certificate())
	})
	if _, err := c.CreateJob(t.Context(), "p", "x", nil); err != nil {
		t.Error(err)
	}
	if _, err := c.ReadJob(t.Context(), "p", "job_1"); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"POST HTTP/1.1", "GET HTTP/1.1"}, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// startProxy answers its first CONNECTs with these statuses and tunnels the rest.
func startProxy(t *testing.T, statuses ...int) (address string, connects *atomic.Int64) {
	t.Helper()
	connects = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Header.Get("Authorization") != "" {
			t.Errorf("the proxy got %s with the headers %v", r.Method, r.Header)
		}
		if n := int(connects.Add(1)); n <= len(statuses) {
			w.Header().Set("Proxy-Authenticate", "Basic")
			w.WriteHeader(statuses[n-1])
			return
		}
		service, err := net.Dial("tcp", r.Host)
		if err != nil {
			t.Error(err)
			return
		}
		client, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(client, service); _ = client.Close() }()
		_, _ = io.Copy(service, client)
		_ = service.Close()
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), connects
}

// What a proxy refuses has not reached the service, and is sent again.
func TestProxy_C14(t *testing.T) {
	t.Parallel()
	environment := reflect.ValueOf(http.ProxyFromEnvironment).Pointer() // which reads it once, and excepts loopback addresses
	forPOSTs, forGETs := newTransports(Config{})
	if reflect.ValueOf(forPOSTs.Proxy).Pointer() != environment || reflect.ValueOf(forGETs.Proxy).Pointer() != environment {
		t.Error("HTTPS_PROXY is ignored")
	}
	s, c := startServer(t, faultserver.Options{Certificate: faultserver.GoodCertificate})
	address, connects := startProxy(t, 407, 503)
	c.postTransport.(*http.Transport).Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: address})
	if job, err := c.CreateJob(t.Context(), "p", "x", nil); err != nil || job.ID != "job_1" {
		t.Errorf("%v, %v, want the job", job, err)
	}
	if posts := s.Count(faultserver.Create); posts != 1 || connects.Load() != 3 {
		t.Errorf("%d POSTs and %d CONNECTs, want 1 and 3", posts, connects.Load())
	}
}
