// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator

import "time"

// Limit bounds the creates and messages of each project, counted together.
// Only those that took effect count. The window is fixed: it begins with the
// first use and lasts Per.
type Limit struct {
	Uses       int
	Per        time.Duration
	RetryAfter bool // whether a refusal tells in Retry-After when the window ends
}

// window is one project's current window.
type window struct {
	start time.Time
	used  int
}

// EndWindows ends all windows, as time does.
func (s *Server) EndWindows() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.windows)
}

// takeUse counts a use of the limit. Where none is left it returns how long
// the window still lasts and false. The caller holds s.mu.
func (s *Server) takeUse(project string, now time.Time) (time.Duration, bool) {
	if s.limit == nil {
		return 0, true
	}
	w := s.windows[project]
	if w == nil || !now.Before(w.start.Add(s.limit.Per)) {
		w = &window{start: now}
		s.windows[project] = w
	}
	if w.used >= s.limit.Uses {
		return w.start.Add(s.limit.Per).Sub(now), false
	}
	w.used++
	return 0, true
}
