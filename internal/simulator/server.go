// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package simulator is the agent service as an [http.Handler], for tests,
// demonstrations and measurements: jobs follow a script, faults are injected
// on purpose, and every request is recorded. It shares no code with the
// provider's client, so that a wrong name in one cannot cancel itself out in
// the other.
//
// No goroutine drives a job: what a job is like follows from the time of the
// question alone. Thousands of jobs therefore cost nothing between requests,
// and a fake clock is enough to let them end.
package simulator

import (
	"crypto/subtle"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Options configure a [Server].
type Options struct {
	// Key is the only admin key accepted.
	Key string
	// Script says how a job goes on after a prompt; turn is 0 for the create,
	// then 1, 2, … for the messages. It is called without any lock held, by
	// several goroutines at once. Nil: completed after 2 s. Directives in the
	// prompt come on top.
	Script func(prompt string, turn int) Script
	// Limit bounds creates and messages. Nil: no limit.
	Limit *Limit
}

// Server is the simulated service. Its methods may be called at any time by
// any goroutine.
//
// Where an answer must not arrive (a dropped or truncated one, or a request
// given up while it was delayed), ServeHTTP panics with
// [http.ErrAbortHandler], as net/http expects it; who calls it directly
// recovers that and treats the connection as closed.
type Server struct {
	key    string
	script func(prompt string, turn int) Script
	limit  *Limit

	// mu is never held while a request is read, delayed or answered.
	mu       sync.Mutex
	jobs     map[string]*job
	order    []*job
	created  int
	windows  map[string]*window
	faults   []*Fault
	requests []*Request
	counts   Counts
}

// New returns a service without jobs.
func New(o Options) *Server {
	s := &Server{key: o.Key, script: o.Script, limit: o.Limit, jobs: map[string]*job{}, windows: map[string]*window{}}
	if s.script == nil {
		s.script = func(string, int) Script { return Script{Duration: 2 * time.Second} }
	}
	return s
}

// ServeHTTP answers one request: first the fault that waits for it, if any,
// else as the contract says.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if path, ok := strings.CutPrefix(r.URL.Path, controlPrefix); ok {
		s.serveControl(w, r, path)
		return
	}
	ctx := r.Context()
	request, refusal := s.receive(r)
	f := s.takeFault(request)
	if f.Delay > 0 || f.Slow > 0 {
		liftDeadlines(w)
	}

	var a answer
	if f.AfterEffect {
		a = s.perform(request, refusal)
	}
	if err := pause(ctx, f.Delay); err != nil {
		panic(http.ErrAbortHandler)
	}
	if !f.AfterEffect && !f.replaces() {
		a = s.perform(request, refusal)
	}
	if f.Drop {
		panic(http.ErrAbortHandler)
	}
	a = f.alter(a, request.Kind)
	// Before the answer, so that who has read it finds the record complete.
	s.answered(request, a, f)
	a.write(ctx, w, f)
}

// perform carries out a request, unless it is to be refused, and returns the
// answer that the contract gives.
func (s *Server) perform(r *Request, refusal answer) answer {
	switch {
	case refusal.status != 0:
		return refusal
	case r.Kind == KindCreate:
		return s.createJob(r.Project, r.Prompt)
	case r.Kind == KindMessage:
		return s.sendMessage(r.Project, r.JobID, r.Prompt)
	default:
		return s.getJob(r.Project, r.JobID)
	}
}

// answered completes the record of a request whose answer is about to be sent.
func (s *Server) answered(r *Request, a answer, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Status = a.status
	now := time.Now()
	// A message may have revived the job since the answer was made.
	if j := a.shownEnd; j != nil && f.Truncate == 0 && j.firstTerminalGet.IsZero() && terminal(j.statusAt(now)) {
		j.firstTerminalGet = now
	}
}

// authorized tells whether a request carries the key.
func (s *Server) authorized(h http.Header) bool {
	return subtle.ConstantTimeCompare([]byte(h.Get("Authorization")), []byte("Bearer "+s.key)) == 1
}
