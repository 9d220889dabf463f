// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package faultserver_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/faultserver"
)

var healthy = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(w, r.Body)
})

// client makes a client of its own, so that no connection outlives a test.
func client(t *testing.T, s *faultserver.Server) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(s.Authority))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func post(c *http.Client, s *faultserver.Server) (string, error) {
	answer, err := c.Post(s.URL+"/v2/agent/p/job", "application/json", strings.NewReader("hello"))
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	return string(body), err
}

func TestCountsOnlyWholePosts(t *testing.T) {
	s := faultserver.New(t, healthy, faultserver.Options{})
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, "POST /v2/agent/p/job HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhel")
	_ = conn.(*net.TCPConn).CloseWrite()
	_, _ = io.Copy(io.Discard, conn)
	_ = conn.Close()
	if got := s.Count(faultserver.Create); got != 0 {
		t.Errorf("a POST whose body was cut counts: %d", got)
	}
	if body, err := post(client(t, s), s); body != "hello" || err != nil {
		t.Errorf("healthy answer: %q, %v", body, err)
	}
	if got := s.Count(faultserver.Create); got != 1 {
		t.Errorf("%d whole POSTs, want 1", got)
	}
}

func TestPlays(t *testing.T) {
	s := faultserver.New(t, healthy, faultserver.Options{})
	c := client(t, s)
	// Most plays close the connection just when the client thinks it is free for the next.
	c.Transport.(*http.Transport).DisableKeepAlives = true
	faults := map[string]faultserver.Play{
		"reset": faultserver.Reset, "EOF": faultserver.EOF, "raw": faultserver.Raw("nonsense"),
		"truncated": faultserver.Truncated(200, "whole", 3), "effect": faultserver.Effect(faultserver.EOF),
	}
	for name, play := range faults {
		s.Script(faultserver.Create, play)
		if body, err := post(c, s); err == nil {
			t.Errorf("%s: no error, body %q", name, body)
		}
	}
	for name, want := range map[string]struct {
		play faultserver.Play
		body string
	}{
		"answer":   {faultserver.Answer(201, "yes"), "yes"},
		"oversize": {faultserver.Oversize(200, 100_000), strings.Repeat(" ", 100_000)},
		"gzip":     {faultserver.GzipBomb(200, 1<<20), strings.Repeat(" ", 1<<20)},
		"slow":     {faultserver.Slow(200, "abc", time.Millisecond), "abc"},
	} {
		s.Script(faultserver.Create, want.play)
		if body, err := post(c, s); body != want.body || err != nil {
			t.Errorf("%s: %d bytes, %v", name, len(body), err)
		}
	}
	if got, want := s.Count(faultserver.Create), len(faults)+4; got != want {
		t.Errorf("%d POSTs were read whole, want %d", got, want)
	}
}

func TestCertificates(t *testing.T) {
	for certificate, want := range map[faultserver.Certificate]bool{
		faultserver.GoodCertificate: true, faultserver.ExpiredCertificate: false, faultserver.WrongNameCertificate: false,
	} {
		s := faultserver.New(t, healthy, faultserver.Options{Certificate: certificate})
		_, err := post(client(t, s), s)
		var refused *tls.CertificateVerificationError
		if (err == nil) != want || err != nil && !errors.As(err, &refused) {
			t.Errorf("certificate %d: %v", certificate, err)
		}
	}
}

func TestHTTP2(t *testing.T) {
	for name, fault := range map[string]faultserver.StreamFault{
		"REFUSED_STREAM": faultserver.RefuseStream, "PROTOCOL_ERROR": faultserver.ProtocolErrorStream,
		"GOAWAY": faultserver.GoAway, "GOAWAY with PROTOCOL_ERROR": faultserver.GoAwayProtocolError,
	} {
		s := faultserver.New(t, healthy, faultserver.Options{
			Certificate: faultserver.GoodCertificate, HTTP2: []faultserver.StreamFault{fault},
		})
		c := client(t, s)
		_, err := post(c, s) // Go's client may send it again by itself
		body, again := post(c, s)
		if body != "hello" || again != nil {
			t.Errorf("%s: afterwards %q, %v", name, body, again)
		}
		if err != nil && s.Count(faultserver.Create) != 2 || err == nil && s.Count(faultserver.Create) != 3 {
			t.Errorf("%s was not played: %d POSTs, first %v", name, s.Count(faultserver.Create), err)
		}
		if proto := s.Requests()[0].Proto; proto != "HTTP/2.0" {
			t.Errorf("%s: came by %s", name, proto)
		}
	}
}

func TestInMemoryOnAFakeClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := faultserver.New(t, healthy, faultserver.Options{InMemory: true})
		s.FailDials(io.ErrUnexpectedEOF, nil)
		s.Script(faultserver.Create, faultserver.Slow(200, "abc", time.Hour))
		transport := &http.Transport{DialContext: s.Dial}
		defer transport.CloseIdleConnections()
		c := &http.Client{Transport: transport}
		if _, err := post(c, s); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("first dial: %v", err)
		}
		start := time.Now()
		if body, err := post(c, s); body != "abc" || err != nil || time.Since(start) != 3*time.Hour {
			t.Errorf("%q, %v after %s", body, err, time.Since(start))
		}
	})
}
