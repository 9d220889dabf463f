// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import "sync"

// settled are the ids of entries and of jobs that no other call of this process may find: this
// process wrote them, a call has found them, or the prior state shows them.
type settled struct {
	mu sync.Mutex
	by map[string]any // the call, or nil: the prior state
}

// settle settles entries and jobs, for a call or (nil) because of the prior state.
func (s *settled) settle(by any, ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if id != "" {
			s.by[id] = by
		}
	}
}

// isSettled reports whether an entry or a job is settled, and whether the prior state shows it.
func (s *settled) isSettled(id string) (is, inState bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	by, is := s.by[id]
	return is, is && by == nil
}

// take settles an entry and the job that it started, if it did, for a call. If either is
// settled it returns false, and a job's other entries share its fate.
func (s *settled) take(by any, id, job string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, is := s.by[id]; is {
		return false
	}
	owner, is := s.by[job]
	if !is {
		owner = by
	}
	s.by[id] = owner
	if job != "" {
		s.by[job] = owner
	}
	return !is
}
