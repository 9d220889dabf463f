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
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

var healthy = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "echo")
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

const onePost = "POST /v2/agent/p/job HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"

// talk sends a text over a connection of its own, and returns what comes back
// until the server ends it.
func talk(t *testing.T, s *faultserver.Server, text string) (string, error) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, text)
	_ = conn.(*net.TCPConn).CloseWrite()
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

func TestCounts(t *testing.T) {
	s := faultserver.New(t, healthy, faultserver.Options{})
	cut := onePost[:len(onePost)-2]
	if answer, _ := talk(t, s, cut); answer != "" {
		t.Errorf("a POST whose body was cut is answered: %q", answer)
	}
	answer, _ := talk(t, s, onePost)
	type counts struct{ Dials, Received, Sent, Requests, Creates int }
	want := counts{Dials: 2, Received: len(cut) + len(onePost), Sent: len(answer), Requests: 2, Creates: 1}
	if got := (counts{s.Dials(), s.Received(), s.Sent(), len(s.Requests()), s.Count(faultserver.Create)}); got != want || answer == "" {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// What each play sends, to the byte, where two requests come by one connection.
func TestWire(t *testing.T) {
	const (
		echo = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: echo\r\n\r\nhello"
		head = "HTTP/1.1 201 Created\r\nContent-Length: "
		json = "\r\nContent-Type: application/json\r\n"
	)
	for name, test := range map[string]struct {
		play    faultserver.Play
		want    string
		is      error
		effects int
	}{
		"healthy":    {play: faultserver.Healthy, want: echo + echo, effects: 2},
		"answer":     {play: faultserver.Answer(201, "yes"), want: head + "3" + json + "\r\nyes" + echo, effects: 1},
		"other type": {play: faultserver.Answer(201, "yes", "content-type: x"), want: head + "3\r\ncontent-type: x\r\n\r\nyes" + echo, effects: 1},
		"last":       {play: faultserver.Last(faultserver.Answer(201, "yes", "A: b")), want: head + "3" + json + "A: b\r\n\r\nyes"},
		"truncated":  {play: faultserver.Truncated(201, "whole", 3), want: head + "5" + json + "\r\nwho"},
		"oversize":   {play: faultserver.Oversize(201, 3), want: head + "3" + json + "\r\n   "},
		"slow":       {play: faultserver.Slow(201, "abc", time.Nanosecond), want: head + "3" + json + "\r\nabc"},
		"raw":        {play: faultserver.Raw("nonsense"), want: "nonsense"},
		"effect":     {play: faultserver.Effect(faultserver.Raw("x")), want: "x", effects: 1},
		"EOF":        {play: faultserver.EOF},
		"stall":      {play: faultserver.Stall},
		"reset":      {play: faultserver.Reset, is: syscall.ECONNRESET},
	} {
		t.Run(name, func(t *testing.T) {
			effects := 0
			s := faultserver.New(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				effects++
				healthy(w, r)
			}), faultserver.Options{})
			s.Script(faultserver.Create, test.play)
			answer, err := talk(t, s, onePost+onePost)
			if answer != test.want || !errors.Is(err, test.is) {
				t.Errorf("%q, %v, want %q, %v", answer, err, test.want, test.is)
			}
			if effects != test.effects {
				t.Errorf("%d effects, want %d", effects, test.effects)
			}
		})
	}
}

func TestGzipBomb(t *testing.T) {
	s := faultserver.New(t, healthy, faultserver.Options{})
	s.Script(faultserver.Create, faultserver.GzipBomb(200, 1<<20))
	body, err := post(client(t, s), s)
	if body != strings.Repeat(" ", 1<<20) || err != nil || s.Sent() > 1<<14 {
		t.Errorf("%d bytes, %v, by %d bytes", len(body), err, s.Sent())
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

// A Go client comes by HTTP/2. Where it takes the fault for a request that was not
// processed, it sends the POST again by itself.
func TestHTTP2(t *testing.T) {
	for name, test := range map[string]struct {
		fault faultserver.StreamFault
		posts int
		says  string // in the client's error
	}{
		"healthy":                    {nil, 1, ""},
		"REFUSED_STREAM":             {faultserver.RefuseStream, 2, ""},
		"PROTOCOL_ERROR":             {faultserver.ProtocolErrorStream, 2, ""},
		"GOAWAY":                     {faultserver.GoAway, 2, ""},
		"GOAWAY with PROTOCOL_ERROR": {faultserver.GoAwayProtocolError, 1, "PROTOCOL_ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			s := faultserver.New(t, healthy, faultserver.Options{Certificate: faultserver.GoodCertificate, HTTP2: []faultserver.StreamFault{test.fault}})
			body, err := post(client(t, s), s)
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) || err == nil && body != "hello" {
				t.Errorf("%q, %v", body, err)
			}
			if got := s.Count(faultserver.Create); got != test.posts {
				t.Errorf("%d POSTs, want %d", got, test.posts)
			}
			for _, r := range s.Requests() {
				if r.Proto != "HTTP/2.0" {
					t.Errorf("came by %s", r.Proto)
				}
			}
		})
	}
}

// A body that trickles in takes the time that it should.
func TestSlowOnAFakeClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := faultserver.New(t, healthy, faultserver.Options{InMemory: true})
		transport := &http.Transport{DialContext: s.Dial}
		defer transport.CloseIdleConnections()
		s.FailDials(io.ErrUnexpectedEOF, nil)
		if _, err := post(&http.Client{Transport: transport}, s); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("dial: %v", err)
		}
		s.Script(faultserver.Create, faultserver.Slow(200, "abc", time.Hour))
		start := time.Now()
		if body, err := post(&http.Client{Transport: transport}, s); body != "abc" || err != nil || time.Since(start) != 3*time.Hour || s.Dials() != 2 {
			t.Errorf("%q, %v after %s and %d dials", body, err, time.Since(start), s.Dials())
		}
	})
}
