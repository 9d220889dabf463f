// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator

import (
	"net/http"
	"time"
)

// Kind is what a request asks for, as its method and path tell.
type Kind string

// The kinds of request.
const (
	KindCreate  Kind = "create"
	KindMessage Kind = "message"
	KindGet     Kind = "get"
	// KindOther is everything that the contract does not know: another path, another method.
	KindOther Kind = "other"
)

// Request is one recorded request. Header and Body are shared: read them only.
type Request struct {
	Time    time.Time `json:"time"` // when its header had arrived
	Kind    Kind      `json:"kind"`
	Method  string    `json:"method"`
	Path    string    `json:"path"` // escaped as it was sent, with the query if there was one
	Project string    `json:"project,omitempty"`
	JobID   string    `json:"jobId,omitempty"`
	Prompt  string    `json:"prompt,omitempty"`
	// Header lacks Authorization; Authorized tells whether it was right.
	Header     http.Header `json:"header"`
	Authorized bool        `json:"authorized"`
	Body       []byte      `json:"body,omitempty"` // base64 in JSON
	Complete   bool        `json:"complete"`       // whether the body was read whole
	// Status is what was answered; 0 while unanswered and for ever when the answer was dropped.
	Status int `json:"status"`
}

// Counts tells how many requests of each kind were read whole, whatever was
// answered.
type Counts struct {
	Create  int `json:"create"`
	Message int `json:"message"`
	Get     int `json:"get"`
	Other   int `json:"other"`
}

// of returns the counter of a kind.
func (c *Counts) of(kind Kind) *int {
	switch kind {
	case KindCreate:
		return &c.Create
	case KindMessage:
		return &c.Message
	case KindGet:
		return &c.Get
	default:
		return &c.Other
	}
}

// Requests returns all requests since the last reset, in the order in which
// their bodies were read. Those to the control paths are not among them.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Request, len(s.requests))
	for i, r := range s.requests {
		list[i] = *r
	}
	return list
}

// Count returns how many requests of a kind were read whole since the last reset.
func (s *Server) Count(kind Kind) int {
	counts := s.Counts()
	return *counts.of(kind)
}

// Counts returns the counts since the last reset.
func (s *Server) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// ResetRequests empties the record and sets the counts to zero. Jobs, faults
// and the limit's windows stay.
func (s *Server) ResetRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
	s.counts = Counts{}
}

func (s *Server) record(r *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	if r.Complete {
		*s.counts.of(r.Kind)++
	}
}
