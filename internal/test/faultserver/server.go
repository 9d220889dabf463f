// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package faultserver is the service's end of a connection, for tests: it
// plays one scripted fault for each request, down to what travels on the wire,
// and counts the POSTs whose body it has read whole. What no script covers is
// answered by a healthy handler.
package faultserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Kind is what a request asks for, as its method and path tell.
type Kind string

// The kinds of request.
const (
	Create  Kind = "create"
	Message Kind = "message"
	Get     Kind = "get"
)

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
	pipes   pipes
	playing sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	scripts map[Kind][]Play
	always  map[Kind]Play
	counts  map[Kind]int // of the requests that were read whole
}

// New starts a server that ends with the test.
func New(t testing.TB, healthy http.Handler, o Options) *Server {
	t.Helper()
	s := &Server{
		healthy: healthy, pipes: pipes{make(chan net.Conn), make(chan struct{})},
		scripts: map[Kind][]Play{}, always: map[Kind]Play{}, counts: map[Kind]int{},
	}
	var listener net.Listener = s.pipes
	if !o.InMemory {
		var err error
		if listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	s.URL = "http://" + listener.Addr().String()
	if o.TLS {
		s.URL = "https://" + listener.Addr().String()
		library := httptest.NewTLSServer(nil) // for its certificate
		library.Close()
		s.Authority = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: library.Certificate().Raw}))
		listener = tls.NewListener(listener, library.TLS)
	}
	server := &http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0)}
	t.Cleanup(func() {
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		_ = server.Close()
		s.playing.Wait()
	})
	go func() { _ = server.Serve(listener) }()
	return s
}

// pipes is a listener without sockets.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (p pipes) Close() error   { close(p.closed); return nil }

// Dial opens a connection to an in-memory server, whatever the address.
func (s *Server) Dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case s.pipes.conns <- server:
		return client, nil
	case <-s.pipes.closed:
		return nil, net.ErrClosed
	}
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

// ServeHTTP plays the server's part in one exchange.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	x := &Exchange{request: r, response: w, healthy: s.healthy}
	play := s.next(r)
	defer s.playing.Done()
	play(x)
	if x.conn != nil {
		_ = x.conn.Close()
	}
}

// next counts a request and returns what to play for it, which ends in playing.Done.
func (s *Server) next(r *http.Request) Play {
	kind := Get
	if r.Method == http.MethodPost {
		kind = Create
		if strings.HasSuffix(r.URL.Path, "/message") {
			kind = Message
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		panic(http.ErrAbortHandler)
	}
	s.playing.Add(1)
	s.counts[kind]++
	if script := s.scripts[kind]; len(script) > 0 {
		s.scripts[kind] = script[1:]
		return script[0]
	}
	if play := s.always[kind]; play != nil {
		return play
	}
	return healthy
}

// Count returns how many requests of a kind were read whole.
func (s *Server) Count(kind Kind) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[kind]
}
