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

// Options configure a [Server]. The zero value accepts any key and runs every
// job as [ParsePrompt] says.
type Options struct {
	// Key is the only admin key accepted. Empty: any bearer token that is not empty.
	Key string
	// Script says how a job goes on after a prompt; turn is 0 for the create,
	// then 1, 2, … for the messages. It is called without any lock held, by
	// several goroutines at once. Nil: [ParsePrompt].
	Script func(project, prompt string, turn int) Script
	// Now is the clock. Nil: time.Now. Delays of faults are real time whatever it says.
	Now func() time.Time
	// Limit bounds creates and messages. Nil: no limit.
	Limit *Limit
	// PathPrefix, for example "/gateway", is the path below which the API lives.
	// Everything outside it is answered 404. Empty: the root.
	PathPrefix string
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
	script func(project, prompt string, turn int) Script
	now    func() time.Time
	limit  *Limit
	prefix string

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
	s := &Server{
		key:     o.Key,
		script:  o.Script,
		now:     o.Now,
		limit:   o.Limit,
		jobs:    map[string]*job{},
		windows: map[string]*window{},
	}
	if s.script == nil {
		s.script = ParsePrompt
	}
	if s.now == nil {
		s.now = time.Now
	}
	if prefix := strings.Trim(o.PathPrefix, "/"); prefix != "" {
		s.prefix = "/" + prefix
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
	c := s.receive(r)
	f := s.takeFault(c.request)
	if f.Delay > 0 || f.Slow > 0 {
		liftDeadlines(w)
	}

	var a answer
	if f.AfterEffect {
		a = s.perform(c)
	}
	if err := pause(ctx, f.Delay); err != nil {
		panic(http.ErrAbortHandler)
	}
	if !f.AfterEffect && !f.replaces() {
		a = s.perform(c)
	}
	if f.Drop {
		panic(http.ErrAbortHandler)
	}
	a = f.alter(a, c.request.Kind)
	// Before the answer, so that who has read it finds the record complete.
	s.answered(c.request, a, f)
	a.write(ctx, w, f)
}

// perform carries out a request that was received and returns the answer that
// the contract gives.
func (s *Server) perform(c call) answer {
	switch {
	case !c.request.Authorized:
		return failure(http.StatusUnauthorized, "invalid or missing API key")
	case c.allow != "":
		a := failure(http.StatusMethodNotAllowed, "method not allowed")
		a.header = http.Header{"Allow": {c.allow}}
		return a
	case c.request.Kind == KindOther:
		return failure(http.StatusNotFound, "not found")
	case c.problem != "":
		return failure(c.problemStatus, c.problem)
	}
	switch c.request.Kind {
	case KindCreate:
		return s.createJob(c.request.Project, c.request.Prompt)
	case KindMessage:
		return s.sendMessage(c.request.Project, c.request.JobID, c.request.Prompt)
	default:
		return s.getJob(c.request.Project, c.request.JobID)
	}
}

// answered completes the record of a request whose answer is about to be sent.
func (s *Server) answered(r *Request, a answer, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Status = a.status
	now := s.now()
	// A message may have revived the job since the answer was made.
	if j := a.shownEnd; j != nil && f.Truncate == 0 && j.firstTerminalGet.IsZero() && terminal(j.statusAt(now)) {
		j.firstTerminalGet = now
	}
}

// authorized tells whether a request carries the key.
func (s *Server) authorized(h http.Header) bool {
	token, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		return false
	}
	return s.key == "" || subtle.ConstantTimeCompare([]byte(token), []byte(s.key)) == 1
}
