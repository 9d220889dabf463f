// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

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
	end  time.Time
	used int
}

// EndWindows ends all windows, as time does.
func (s *Server) EndWindows() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.windows)
}

// admit counts a use of the limit, or returns a refusal, which has a status.
// The caller holds s.mu.
func (s *Server) admit(project string, now time.Time) (refusal answer) {
	if s.limit == nil {
		return answer{}
	}
	w := s.windows[project]
	if w == nil || !now.Before(w.end) {
		w = &window{end: now.Add(s.limit.Per)}
		s.windows[project] = w
	}
	if w.used < s.limit.Uses {
		w.used++
		return answer{}
	}
	refusal = failure(http.StatusTooManyRequests, "rate limit exceeded")
	if s.limit.RetryAfter {
		// Rounded up: a client that waits that long finds the window over.
		rest := int(math.Ceil(w.end.Sub(now).Seconds()))
		refusal.header = http.Header{"Retry-After": {strconv.Itoa(rest)}}
	}
	return refusal
}
