// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Fault is something that goes wrong with the requests it matches. Without
// Status, Body or Drop the normal answer is sent, as Delay, Truncate, Slow and
// the header fields change it. A fault comes before the check of the key.
type Fault struct {
	// Which requests it is for; empty matches all. PromptContains looks at the
	// prompt that a request carries, and for a GET at all prompts of the job.
	Kind           Kind   `json:"kind,omitempty"`
	Project        string `json:"project,omitempty"`
	JobID          string `json:"jobId,omitempty"`
	PromptContains string `json:"promptContains,omitempty"`

	// Times is how many requests it is used for: 0 is one, below 0 is for ever.
	Times int `json:"times,omitempty"`
	// Skip is how many matching requests pass untouched first.
	Skip int `json:"skip,omitempty"`

	// Delay comes before the answer. It ends early, and without an answer,
	// when the request's context ends.
	Delay time.Duration `json:"delay,omitempty"`
	// AfterEffect lets the effect happen first (job created, message taken),
	// though the answer is delayed, dropped or replaced.
	AfterEffect bool `json:"afterEffect,omitempty"`

	// Status, Header, Body and ContentType are the answer instead. Status 0
	// with a Body is the one that success would have. ContentType "" is
	// application/json.
	Status      int               `json:"status,omitempty"`
	Header      map[string]string `json:"header,omitempty"`
	Body        string            `json:"body,omitempty"`
	ContentType string            `json:"contentType,omitempty"`
	// RetryAfter is the header of that name, sent as it is.
	RetryAfter string `json:"retryAfter,omitempty"`

	// Drop closes the connection without an answer. A net/http client then
	// sends a GET again by itself if the connection was used before.
	Drop bool `json:"drop,omitempty"`
	// Truncate cuts the body after so many bytes, below 0 after none, and closes
	// the connection. 0 cuts nothing.
	Truncate int `json:"truncate,omitempty"`
	// Slow sends the body byte by byte over that time.
	Slow time.Duration `json:"slow,omitempty"`
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
	for i, f := range s.faults {
		if !s.matches(f, r) {
			continue
		}
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
	return Fault{}
}

// matches tells whether a fault is for a request. The caller holds s.mu.
func (s *Server) matches(f *Fault, r *Request) bool {
	if f.Kind != "" && f.Kind != r.Kind ||
		f.Project != "" && f.Project != r.Project ||
		f.JobID != "" && f.JobID != r.JobID {
		return false
	}
	if f.PromptContains == "" {
		return true
	}
	prompts := []string{r.Prompt}
	if j := s.find(r.Project, r.JobID); j != nil && r.Kind == KindGet {
		prompts = j.prompts
	}
	return slices.ContainsFunc(prompts, func(p string) bool { return strings.Contains(p, f.PromptContains) })
}

// replaces tells whether the normal answer is not sent.
func (f Fault) replaces() bool { return f.Drop || f.Status != 0 || f.Body != "" }

// alter returns the answer as the fault changes it.
func (f Fault) alter(a answer, kind Kind) answer {
	if f.replaces() {
		a = answer{status: f.Status, body: []byte(f.Body)}
		if a.status == 0 {
			a.status = http.StatusOK
			if kind == KindCreate {
				a.status = http.StatusCreated
			}
		}
	}
	if len(f.Header) == 0 && f.ContentType == "" && f.RetryAfter == "" {
		return a
	}
	header := a.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	for name, value := range f.Header {
		header.Set(name, value)
	}
	if f.ContentType != "" {
		header.Set("Content-Type", f.ContentType)
	}
	if f.RetryAfter != "" {
		header.Set("Retry-After", f.RetryAfter)
	}
	a.header = header
	return a
}
