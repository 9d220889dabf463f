// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package faultserver is the service's end of a connection, for tests on a fake clock: it has pipes in place of sockets, which live in a
// synctest bubble, and lets what responds to a request fail after the request has had its effect.
package faultserver

import (
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Server is one server, and its own listener. Its methods may be called by any goroutine.
type Server struct {
	URL string // the client must use Dial

	healthy http.Handler
	conns   chan net.Conn
	ended   chan struct{}
	playing sync.WaitGroup

	mu     sync.Mutex
	closed bool
	plays  map[string]http.HandlerFunc // by method
}

// New starts a server that ends with the test.
func New(t testing.TB, healthy http.Handler) *Server {
	t.Helper()
	s := &Server{healthy: healthy, conns: make(chan net.Conn), ended: make(chan struct{}), plays: map[string]http.HandlerFunc{}}
	s.URL = "http://" + s.Addr().String()
	server := &http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0)}
	t.Cleanup(func() {
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		_ = server.Close()
		s.playing.Wait()
	})
	go func() { _ = server.Serve(s) }()
	return s
}

// Accept is a method of net.Listener, as the next two are.
func (s *Server) Accept() (net.Conn, error) {
	select {
	case conn := <-s.conns:
		return conn, nil
	case <-s.ended:
		return nil, net.ErrClosed
	}
}

// Addr is where the listener is.
func (*Server) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// Close ends the listener.
func (s *Server) Close() error { close(s.ended); return nil }

// Dial opens a connection, whatever the address.
func (s *Server) Dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case s.conns <- server:
		return client, nil
	case <-s.ended:
		return nil, net.ErrClosed
	}
}

// Break has play respond to requests with this method, once they have had their effect; nil ends that.
func (s *Server) Break(method string, play http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plays[method] = play
}

// EOF closes the connection without a response.
func EOF(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// ServeHTTP responds to a request that could be read whole.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.mu.Lock()
	play := s.plays[r.Method]
	isOver := err != nil || s.closed
	if !isOver {
		s.playing.Add(1)
	}
	s.mu.Unlock()
	switch {
	case isOver:
		EOF(w, r)
	case play == nil:
		defer s.playing.Done()
		s.healthy.ServeHTTP(w, r)
	default:
		defer s.playing.Done()
		s.healthy.ServeHTTP(httptest.NewRecorder(), r)
		play(w, r)
	}
}
