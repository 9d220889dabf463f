// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package faultserver_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

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

const (
	onePost = "POST /v2/agent/p/job HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
	oneGet  = "GET /v2/agent/p/job/j HTTP/1.1\r\nHost: x\r\n\r\n"
)

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

// Scripts come first, each for its kind, then what is always played.
func TestScripts(t *testing.T) {
	s := faultserver.New(t, healthy, faultserver.Options{})
	says := func(text string) faultserver.Play {
		return func(x *faultserver.Exchange) { faultserver.Answer(200, fmt.Sprint(text, " ", x.Reused))(x) }
	}
	s.Always(faultserver.Get, says("always"))
	s.Script(faultserver.Get, says("first"), says("second"))
	s.Script(faultserver.Message, says("message"))
	s.Script(faultserver.Other, says("other"))
	message, put := strings.Replace(onePost, "/job", "/job/j/message", 1), strings.Replace(oneGet, "GET", "PUT", 1)
	answers, _ := talk(t, s, oneGet+message+oneGet+put+oneGet)
	s.Always(faultserver.Get, nil)
	last, _ := talk(t, s, oneGet)
	var got []string
	for reader := bufio.NewReader(strings.NewReader(answers + last)); ; {
		answer, err := http.ReadResponse(reader, nil)
		if err != nil {
			break
		}
		body, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		got = append(got, string(body))
	}
	want := []string{"first false", "message true", "second true", "other true", "always true", ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
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

func TestOnConnect(t *testing.T) {
	s := faultserver.New(t, healthy, faultserver.Options{})
	s.OnConnect(faultserver.ResetEarly)
	if answer, err := talk(t, s, onePost); !errors.Is(err, syscall.ECONNRESET) || len(s.Requests()) != 0 {
		t.Errorf("%q, %v, %d requests", answer, err, len(s.Requests()))
	}
	if answer, err := talk(t, s, onePost); !strings.HasSuffix(answer, "hello") || err != nil {
		t.Errorf("afterwards: %q, %v", answer, err)
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

// A Go client comes by HTTP/2, and sends a POST again by itself after such a fault.
func TestHTTP2(t *testing.T) {
	s := faultserver.New(t, healthy, faultserver.Options{
		Certificate: faultserver.GoodCertificate, HTTP2: []faultserver.StreamFault{faultserver.ProtocolErrorStream},
	})
	if body, err := post(client(t, s), s); body != "hello" || err != nil {
		t.Errorf("%q, %v", body, err)
	}
	if got := s.Count(faultserver.Create); got != 2 {
		t.Errorf("%d POSTs, want 2", got)
	}
	for _, r := range s.Requests() {
		if r.Proto != "HTTP/2.0" {
			t.Errorf("came by %s", r.Proto)
		}
	}
}

// What each fault sends for the first of two requests by one connection.
func TestStreamFaults(t *testing.T) {
	const second = " RST_STREAM 3 REFUSED_STREAM"
	for name, test := range map[string]struct {
		fault faultserver.StreamFault
		want  string
	}{
		"REFUSED_STREAM":              {faultserver.RefuseStream, " RST_STREAM 1 REFUSED_STREAM" + second},
		"PROTOCOL_ERROR":              {faultserver.ProtocolErrorStream, " RST_STREAM 1 PROTOCOL_ERROR" + second},
		"GOAWAY":                      {faultserver.GoAway, " GOAWAY 0 NO_ERROR"},
		"GOAWAY with PROTOCOL_ERROR":  {faultserver.GoAwayProtocolError, " GOAWAY 1 PROTOCOL_ERROR"},
		"none: the answer is healthy": {nil, " HEADERS 1 DATA 1" + second},
	} {
		t.Run(name, func(t *testing.T) {
			s := faultserver.New(t, healthy, faultserver.Options{
				Certificate: faultserver.GoodCertificate, HTTP2: []faultserver.StreamFault{test.fault, faultserver.RefuseStream, faultserver.GoAway},
			})
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM([]byte(s.Authority))
			conn, err := tls.Dial("tcp", strings.TrimPrefix(s.URL, "https://"), &tls.Config{RootCAs: roots, NextProtos: []string{"h2"}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			var fields bytes.Buffer
			encoder := hpack.NewEncoder(&fields)
			for _, field := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "x"}, {":path", "/v2/agent/p/job/j"}} {
				_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
			}
			framer := http2.NewFramer(conn, conn)
			_, _ = io.WriteString(conn, http2.ClientPreface)
			_ = framer.WriteSettings()
			for _, stream := range []uint32{1, 3} {
				_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: fields.Bytes(), EndStream: true, EndHeaders: true})
			}
			_ = conn.CloseWrite()
			got := ""
			for {
				frame, err := framer.ReadFrame()
				if err != nil {
					break
				}
				switch frame := frame.(type) {
				case *http2.RSTStreamFrame:
					got += fmt.Sprintf(" RST_STREAM %d %s", frame.StreamID, frame.ErrCode)
				case *http2.GoAwayFrame:
					got += fmt.Sprintf(" GOAWAY %d %s", frame.LastStreamID, frame.ErrCode)
				case *http2.HeadersFrame, *http2.DataFrame:
					got += fmt.Sprintf(" %s %d", frame.Header().Type, frame.Header().StreamID)
				}
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestInMemoryOnAFakeClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := faultserver.New(t, healthy, faultserver.Options{InMemory: true})
		transport := &http.Transport{DialContext: s.Dial}
		defer transport.CloseIdleConnections()
		c := &http.Client{Transport: transport}
		s.FailDials(io.ErrUnexpectedEOF)
		for range 2 {
			if _, err := post(c, s); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("dial: %v", err)
			}
		}
		s.FailDials(io.ErrUnexpectedEOF, nil)
		if _, err := post(c, s); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("dial: %v", err)
		}
		s.Script(faultserver.Create, faultserver.Slow(200, "abc", time.Hour))
		start := time.Now()
		if body, err := post(c, s); body != "abc" || err != nil || time.Since(start) != 3*time.Hour {
			t.Errorf("%q, %v after %s", body, err, time.Since(start))
		}
		if got := s.Dials(); got != 4 {
			t.Errorf("%d dials, want 4", got)
		}
	})
}
