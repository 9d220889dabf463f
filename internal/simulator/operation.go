// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator

import (
	"net/http"
	"time"
)

func (s *Server) createJob(project, prompt string) answer {
	// Outside the lock, here and below: a script may ask the server.
	script := s.scriptFor(prompt, 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if refusal := s.admit(project, now); refusal.status != 0 {
		return refusal
	}
	record, _ := s.addJob(project, prompt, script, now).record(now)
	return success(http.StatusCreated, record)
}

func (s *Server) sendMessage(project, id, prompt string) answer {
	j, turn, refusal := s.openTurn(project, id)
	if j == nil {
		return refusal
	}
	script := s.scriptFor(prompt, turn)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	j.begin(prompt, script, now)
	record, _ := j.record(now)
	return success(http.StatusOK, record)
}

// openTurn lets a message in. It returns the job and the number of the turn,
// or no job and the refusal.
func (s *Server) openTurn(project, id string) (*job, int, answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.find(project, id)
	if j == nil {
		return nil, 0, notFound()
	}
	if status := j.statusAt(time.Now()); status == statusFailed || status == statusArchived {
		return nil, 0, failure(http.StatusConflict, "job is "+status+" and takes no messages")
	}
	if refusal := s.admit(project, time.Now()); refusal.status != 0 {
		return nil, 0, refusal
	}
	turn := j.turns
	j.turns++
	return j, turn, answer{}
}

func (s *Server) getJob(project, id string) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.find(project, id)
	if j == nil {
		return notFound()
	}
	record, end := j.record(time.Now())
	a := success(http.StatusOK, record)
	if end {
		a.shownEnd = j
	}
	return a
}

// find returns a project's job, or nil. The caller holds s.mu.
func (s *Server) find(project, id string) *job {
	if j := s.jobs[id]; j != nil && j.project == project {
		return j
	}
	return nil
}
