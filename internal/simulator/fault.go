// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator

import (
	"cmp"
	"slices"
	"time"
)

// Fault is something that goes wrong with the requests it matches. Without
// Status or Drop the normal response is sent, after Delay and with RetryAfter.
// A fault comes before the check of the key.
type Fault struct {
	// Kind is the requests it is for; "" is all.
	Kind Kind
	// Times is how many requests it is used for: 0 is one, below 0 is all.
	Times int
	// Skip is how many matching requests pass untouched before.
	Skip int

	// Delay comes before the response. It stops early, and without a response,
	// when the client is gone.
	Delay time.Duration
	// AfterEffect lets the effect happen before the delay (job created, message
	// accepted), though the response is delayed, dropped or replaced.
	AfterEffect bool

	// Status and Body are the response instead.
	Status int
	Body   string
	// RetryAfter is the header of that name, sent unchanged.
	RetryAfter string
	// Drop closes the connection without a response. A net/http client then
	// sends a GET again if the connection was used before.
	Drop bool
}

// Inject appends faults to the queue. Of those that match a request the first
// in the queue decides alone: the fault is used, or, while its Skip lasts, the
// request passes untouched. A fault that is used up leaves the queue.
func (s *Server) Inject(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		f.Times = cmp.Or(f.Times, 1)
		s.faults = append(s.faults, &f)
	}
}

// ClearFaults empties the queue.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// takeFault returns what goes wrong with a request; the zero Fault is nothing.
func (s *Server) takeFault(r *Request) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.faults, func(f *Fault) bool { return f.Kind == "" || f.Kind == r.Kind })
	if i < 0 {
		return Fault{}
	}
	f := s.faults[i]
	if f.Skip > 0 {
		f.Skip--
		return Fault{}
	}
	if f.Times > 0 {
		f.Times--
	}
	if f.Times == 0 {
		s.faults = slices.Delete(s.faults, i, i+1)
	}
	return *f
}
