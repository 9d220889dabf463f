// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package simulator is the agent service as an [http.Handler], for tests,
// demonstrations and measurements: jobs follow a script, faults are injected on
// demand, and every request is recorded. It shares no code with the provider's
// client, so that a wrong name in one cannot hide behind the same mistake in
// the other.
//
// No goroutine drives a job: its status follows from the time of the request.
// Thousands of jobs therefore cost nothing between requests, and a fake clock
// is enough to let them finish.
package simulator

import (
	"cmp"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Options configure a [Server].
type Options struct {
	// Key is the only admin key accepted.
	Key string
	// Script says how a job proceeds after a prompt; turn is 0 for the create,
	// then 1, 2, … for the messages. Several goroutines call it at once, without
	// any lock held. Nil: completed after 2 s. Directives in the prompt override it.
	Script func(prompt string, turn int) Script
}

// Server is the simulated service. It is safe for concurrent use. It drops a response
// by a panic with [http.ErrAbortHandler], as net/http expects.
type Server struct {
	options Options

	// mu is not held while a request is read, delayed or responded to.
	mu       sync.Mutex
	jobs     []*job // in the order of their creation
	created  int
	faults   []*Fault
	requests []*Request
	counts   Counts
}

// New returns a service without jobs.
func New(o Options) *Server {
	if o.Script == nil {
		o.Script = func(string, int) Script { return Script{Duration: 2 * time.Second} }
	}
	return &Server{options: o}
}

// ServeHTTP responds to one request: with the first fault that matches it, otherwise
// as the contract says.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if path, ok := strings.CutPrefix(r.URL.Path, controlPrefix); ok {
		s.control(r, path).write(w)
		return
	}
	request, refusal := s.receive(r)
	f := s.takeFault(request)
	var resp response
	if f.AfterEffect {
		resp = s.perform(request, refusal)
	}
	if f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
	if f.Drop {
		panic(http.ErrAbortHandler)
	}
	if !f.AfterEffect && f.Status == 0 {
		resp = s.perform(request, refusal)
	}
	if f.Status != 0 {
		resp = response{status: f.Status, body: []byte(f.Body)}
	}
	if f.RetryAfter != "" {
		resp.retryAfter = f.RetryAfter
	}
	// Before the response, so that a client that has read it finds the record complete.
	s.mu.Lock()
	request.Status = resp.status
	s.mu.Unlock()
	resp.write(w)
}

// perform carries out a request, unless it is refused, and returns the
// response that the contract requires.
func (s *Server) perform(r *Request, refusal response) response {
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

func (s *Server) createJob(project, prompt string) response {
	script := s.scriptFor(prompt, 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	record, _ := s.addJob(project, prompt, script, now).record(now)
	return success(http.StatusCreated, record)
}

func (s *Server) sendMessage(project, id, prompt string) response {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.find(id)
	if j == nil || j.project != project {
		return notFound()
	}
	status := j.statusAt(time.Now())
	if isClosed := status == statusFailed || status == statusArchived; isClosed || j.script.NoMessages != 0 && terminal(status) {
		return failure(cmp.Or(j.script.NoMessages, http.StatusConflict), "job is "+status+" and accepts no messages")
	}
	turn := j.turns
	j.turns++
	s.mu.Unlock() // a script may lock what its caller holds around our methods
	script := s.scriptFor(prompt, turn)
	s.mu.Lock()
	now := time.Now()
	j.begin(prompt, script, now)
	record, _ := j.record(now)
	return success(http.StatusOK, record)
}

func (s *Server) getJob(project, id string) response {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.find(id)
	if j == nil || j.project != project {
		return notFound()
	}
	now := time.Now()
	record, terminal := j.record(now)
	if terminal && j.firstTerminalGet.IsZero() {
		j.firstTerminalGet = now
	}
	return success(http.StatusOK, record)
}

// authorized reports whether a request has the key.
func (s *Server) authorized(h http.Header) bool {
	return subtle.ConstantTimeCompare([]byte(h.Get("Authorization")), []byte("Bearer "+s.options.Key)) == 1
}

// response is a response that is not sent yet.
type response struct {
	status     int
	body       []byte
	retryAfter string
}

// success returns a response with a JSON body.
func success(status int, value any) response {
	body, err := json.Marshal(value)
	if err != nil {
		panic(err) // only a Script.Extra can cause that
	}
	return response{status: status, body: body}
}

// failure returns a response with the service's error body.
func failure(status int, text string) response {
	return success(status, map[string]string{"error": text})
}

func unauthorized() response { return failure(http.StatusUnauthorized, "invalid or missing API key") }

func notFound() response { return failure(http.StatusNotFound, "job not found") }

func (r response) write(w http.ResponseWriter) {
	if len(r.body) > 0 {
		w.Header().Set("Content-Type", "application/json")
	}
	if r.retryAfter != "" {
		w.Header().Set("Retry-After", r.retryAfter)
	}
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body) // a client that has gone is no error of the service
}
