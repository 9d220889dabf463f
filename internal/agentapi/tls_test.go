// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// C02: one handshake, and no byte of a request.
func TestTLS_badCertificate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		certificate faultserver.Certificate
		distrusted  bool
	}{
		"untrusted":  {faultserver.GoodCertificate, true},
		"expired":    {faultserver.ExpiredCertificate, false},
		"wrong name": {faultserver.WrongNameCertificate, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := startServer(t, faultserver.Options{Certificate: tc.certificate}, func(config *Config) {
				if tc.distrusted {
					config.RootCAs = nil // the system's
				}
			})
			if _, err := c.CreateJob(t.Context(), "p", "x"); !errors.Is(err, ErrNotSent) || !errors.Is(err, ErrCertificate) {
				t.Errorf("CreateJob: %v, want ErrNotSent and ErrCertificate", err)
			}
			if _, err := c.GetJob(t.Context(), "p", "job_1"); !errors.Is(err, ErrRefused) || !errors.Is(err, ErrCertificate) {
				t.Errorf("GetJob: %v, want ErrRefused and ErrCertificate", err)
			}
			if s.Dials() != 2 || len(s.Requests()) != 0 {
				t.Errorf("%d connections and the requests %v, want one connection for each call and nothing else", s.Dials(), s.Requests())
			}
		})
	}
}

// A server without TLS has had no request, and trying again does not change it.
func TestTLS_serverWithoutTLS(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(nil)
	var conns atomic.Int64
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	c := newClient(t, strings.Replace(s.URL, "http://", "https://", 1))
	if _, err := c.CreateJob(t.Context(), "p", "x"); !errors.Is(err, ErrNotSent) || !errors.Is(err, ErrNoTLS) {
		t.Errorf("CreateJob: %v, want ErrNotSent and ErrNoTLS", err)
	}
	if _, err := c.PollJob(t.Context(), "p", "job_1"); !errors.Is(err, ErrRefused) || !errors.Is(err, ErrNoTLS) {
		t.Errorf("PollJob: %v, want ErrRefused and ErrNoTLS", err)
	}
	if got := conns.Load(); got != 2 {
		t.Errorf("%d connections, want one for each call", got)
	}
}

// The key is not shown to a service that offers nothing newer than TLS 1.1.
func TestTLS_oldVersion(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") }))
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	c := newClient(t, s.URL, func(config *Config) {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AddCert(s.Certificate())
	})
	if job, err := c.PollJob(t.Context(), "p", "job_1"); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("%v, %v, want ErrUnavailable for the protocol version", job, err)
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

// C11: where a server offers HTTP/2, which sends
// requests again by itself, POSTs keep to HTTP/1.1.
func TestHTTP2_onlyGETs(t *testing.T) {
	t.Parallel()
	s, c := startServer(t, faultserver.Options{Certificate: faultserver.GoodCertificate, HTTP2: []faultserver.StreamFault{}})
	for range 3 {
		if _, err := c.CreateJob(t.Context(), "p", "x"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.GetJob(t.Context(), "p", "job_1"); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range s.Requests() {
		if want := map[faultserver.Kind]string{faultserver.Create: "HTTP/1.1", faultserver.Get: "HTTP/2.0"}[r.Kind]; r.Proto != want {
			t.Errorf("%s came over %s, want %s", r.Kind, r.Proto, want)
		}
	}
}
