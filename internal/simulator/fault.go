// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator

import (
	"cmp"
	"slices"
	"time"
)

// Fault is what goes wrong with the requests that it matches. Without Status or
// Drop, the normal response is sent, after Delay and with RetryAfter. A fault is
// applied before the key is checked.
type Fault struct {
	// Kind is the kind of requests that it matches; "": all.
	Kind Kind
	// Times is the number of requests that it applies to; 0: one, negative: all.
	Times int
	// Skip is the number of matching requests that pass before it applies.
	Skip int

	// Delay precedes the response. If the client disconnects, the delay ends and
	// there is no response.
	Delay time.Duration
	// AfterEffect makes the request take effect before the delay (job created,
	// message accepted), although its response is delayed, dropped or replaced.
	AfterEffect bool

	// Status and Body replace the response.
	Status int
	Body   string
	// RetryAfter is sent unchanged as the header Retry-After.
	RetryAfter string
	// Drop closes the connection without a response. A net/http client then repeats
	// a GET if the connection was used before.
	Drop bool
}

// Inject appends faults to the queue. Only the first one that matches a request
// counts: it is applied or, while its Skip lasts, the request passes. A fault leaves
// the queue after Times requests.
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

// takeFault returns the fault for a request; the zero Fault: none.
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
