// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import "sync"

// settled are the ids of entries and of jobs that no other call of this process may find: this
// process wrote them, a call has found them, or the prior state shows them.
type settled struct {
	mu      sync.Mutex
	inState map[string]bool // whether the prior state shows it
}

// settle settles an entry or a job.
func (s *settled) settle(id string, inState bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != "" {
		s.inState[id] = inState
	}
}

// isSettled reports whether an entry or a job is settled, and whether the prior state shows it.
func (s *settled) isSettled(id string) (is, inState bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	inState, is = s.inState[id]
	return is, inState
}

// take settles an entry and the job that it started, if it did, for a call. If either is
// settled it returns false, and a job's other entries share its fate.
func (s *settled) take(id, job string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, is := s.inState[id]; is {
		return false
	}
	inState, is := s.inState[job]
	s.inState[id] = inState
	if job != "" {
		s.inState[job] = inState
	}
	return !is
}
