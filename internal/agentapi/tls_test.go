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
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

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
	for range 2 {
		if _, err := c.CreateJob(t.Context(), "p", "x", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := c.GetJob(t.Context(), "p", "job_1"); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"POST HTTP/1.1", "GET HTTP/1.1", "POST HTTP/1.1", "GET HTTP/1.1"}, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}
