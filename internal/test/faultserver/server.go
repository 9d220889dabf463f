// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package faultserver is the service's end of a connection, for tests: it
// plays one scripted fault for each request, down to what travels on the wire,
// and counts the POSTs whose body it has read whole. What no script covers is
// answered by a healthy handler.
package faultserver

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Kind is what a request asks for, as its method and path tell.
type Kind string

// The kinds of request.
const (
	Create  Kind = "create"
	Message Kind = "message"
	Get     Kind = "get"
	Other   Kind = "other"
)

// Play is the service's part in one exchange, after the request was read.
type Play func(*Exchange)

// Options say what the server is like. The zero value is HTTP/1.1 on a
// loopback port.
type Options struct {
	// InMemory replaces sockets by pipes, which live in a synctest bubble. The
	// client must use Server.Dial.
	InMemory bool
	// TLS has the server show a certificate that is its own authority.
	TLS bool
}

// Server is one server. Its methods may be called by any goroutine.
type Server struct {
	URL       string
	Authority string // of the certificate, in PEM form; empty without TLS

	healthy http.Handler
	tls     *tls.Config
	running sync.WaitGroup

	mu           sync.Mutex
	closed       bool
	scripts      map[Kind][]Play
	always       map[Kind]Play
	connectPlays []func(net.Conn)
	dialError    error
	conns        map[net.Conn]struct{}
	requests     []Request
	dials        int
}

// Request is one request whose head was read.
type Request struct {
	Time  time.Time
	Kind  Kind
	Whole bool // the body was read to its end
}

// New starts a server that ends with the test.
func New(t testing.TB, healthy http.Handler, o Options) *Server {
	t.Helper()
	s := &Server{healthy: healthy, scripts: map[Kind][]Play{}, always: map[Kind]Play{}, conns: map[net.Conn]struct{}{}}
	scheme := "http://"
	if o.TLS {
		scheme = "https://"
		library := httptest.NewTLSServer(nil) // for its certificate
		library.Close()
		s.tls = library.TLS
		s.Authority = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: library.Certificate().Raw}))
	}
	t.Cleanup(s.close)
	if o.InMemory {
		s.URL = scheme + "127.0.0.1:1"
		return s
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.URL = scheme + listener.Addr().String()
	t.Cleanup(func() { _ = listener.Close() }) // before s.close, which waits for this goroutine
	s.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.start(conn)
		}
	})
	return s
}

// Dial opens a connection to an in-memory server, whatever the address.
func (s *Server) Dial(context.Context, string, string) (net.Conn, error) {
	s.mu.Lock()
	err := s.dialError
	if err != nil {
		s.dials++
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	client, server := net.Pipe()
	s.start(server)
	return client, nil
}

// FailDials makes Dial fail with err from now on; nil ends that.
func (s *Server) FailDials(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dialError = err
}

// OnConnect is played on the next connections in turn, before anything is read
// from them. They are closed afterwards.
func (s *Server) OnConnect(plays ...func(net.Conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connectPlays = append(s.connectPlays, plays...)
}

// Script has the next requests of a kind answered by these plays in turn.
func (s *Server) Script(kind Kind, plays ...Play) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts[kind] = append(s.scripts[kind], plays...)
}

// Always has every request of a kind answered by one play, once its script is
// over; nil ends that.
func (s *Server) Always(kind Kind, play Play) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.always[kind] = play
}

// start serves a connection in its own goroutine.
func (s *Server) start(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = conn.Close()
		return
	}
	s.dials++
	s.conns[conn] = struct{}{}
	var play func(net.Conn)
	if len(s.connectPlays) > 0 {
		play, s.connectPlays = s.connectPlays[0], s.connectPlays[1:]
	}
	s.running.Go(func() {
		defer func() {
			_ = conn.Close()
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.conns, conn)
		}()
		if play != nil {
			play(conn)
			return
		}
		s.serve(conn)
	})
}

func (s *Server) serve(raw net.Conn) {
	conn := raw
	if s.tls != nil {
		secure := tls.Server(raw, s.tls)
		if secure.Handshake() != nil {
			return
		}
		conn = secure
	}
	reader := bufio.NewReader(conn)
	for {
		r, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		body, err := io.ReadAll(r.Body)
		play := s.record(r, err == nil)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		x := &Exchange{Request: r, conn: conn, raw: raw, healthy: s.healthy}
		play(x)
		if x.over || r.Close {
			return
		}
	}
}

// record takes a request down and returns what to play for it.
func (s *Server) record(r *http.Request, whole bool) Play {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := kindOf(r)
	s.requests = append(s.requests, Request{Time: time.Now(), Kind: kind, Whole: whole})
	if script := s.scripts[kind]; whole && len(script) > 0 {
		s.scripts[kind] = script[1:]
		return script[0]
	}
	if play := s.always[kind]; play != nil {
		return play
	}
	return Healthy
}

func kindOf(r *http.Request) Kind {
	switch {
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/job"):
		return Create
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/message"):
		return Message
	case r.Method == http.MethodGet:
		return Get
	}
	return Other
}

// close ends all connections and waits for their goroutines.
func (s *Server) close() {
	s.mu.Lock()
	s.closed = true
	for conn := range s.conns {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
}

// Requests returns what was read so far, in that order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Count returns how many requests of a kind were read whole.
func (s *Server) Count(kind Kind) int {
	n := 0
	for _, r := range s.Requests() {
		if r.Kind == kind && r.Whole {
			n++
		}
	}
	return n
}

// Dials returns how many connections were tried, those made to fail included.
func (s *Server) Dials() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dials
}
