// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package faultserver

import (
	"net"
	"slices"
)

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

// Sent returns how many bytes the clients, or their sockets, have taken.
func (s *Server) Sent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytesOut
}

type countingConn struct {
	net.Conn
	server *Server
}

func (c *countingConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	c.server.bytesOut += n
	return n, err
}
