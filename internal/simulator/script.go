// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// The statuses of the contract.
const (
	statusActive    = "active"
	statusCompleted = "completed"
	statusArchived  = "archived"
	statusFailed    = "failed"
)

// Script says how a job continues after a create or a message, and what its record
// then shows. With the zero value it completes at once, with a pull request.
type Script struct {
	// Duration is how long the job is active; 0: it finishes at once.
	Duration time.Duration
	// Status follows. "": completed; "active": the job never finishes.
	Status string
	// NoPullRequest leaves prLink null, as it is for active and failed jobs.
	NoPullRequest bool
	// LinkAfter is how long prLink stays null after the job has completed.
	LinkAfter time.Duration
	// NoMessages is the status with which the job refuses messages once it has finished; 0: it accepts them.
	NoMessages int
	// Stale is how long after a message its response and every GET still show the
	// earlier record.
	Stale time.Duration
	// Extra overrides fields of the record. The value [Omit] omits a field, nil makes
	// it null.
	Extra map[string]any
}

// Omit as a value in [Script.Extra] omits that field from the record.
type Omit struct{}

// scriptFor returns the script, changed by the prompt's directives.
func (s *Server) scriptFor(prompt string, turn int) Script {
	script, err := s.options.Script(prompt, turn).directed(prompt)
	if err != nil {
		panic(err) // of Create alone: a request with such a prompt is refused with 400 before
	}
	return script
}

// directed returns the script changed by the directives in a prompt, such as
// "[simulate: 30s, failed]". An unknown one is an error, because it may be a typo.
func (s Script) directed(prompt string) (Script, error) {
	_, rest, found := strings.Cut(prompt, "[simulate:")
	if !found {
		return s, nil
	}
	directives, rest, closed := strings.Cut(rest, "]")
	if !closed || strings.Contains(rest, "[simulate:") {
		return s, errors.New("the simulator takes one [simulate: …] in a prompt, closed by ]")
	}
	for directive := range strings.SplitSeq(directives, ",") {
		directive = strings.TrimSpace(directive)
		switch directive {
		case statusActive, statusCompleted, statusArchived, statusFailed:
			s.Status = directive
			continue
		case "no-pull-request":
			s.NoPullRequest = true
			continue
		case "no-messages":
			s.NoMessages = http.StatusConflict
			continue
		}
		value, stale := strings.CutPrefix(directive, "stale=")
		d, err := time.ParseDuration(value)
		switch {
		case err != nil || d < 0:
			return s, fmt.Errorf("the simulator does not know %q in [simulate: …]: it takes a duration such as 30s, "+
				"completed, failed, archived, active, no-pull-request, no-messages and stale=5s", directive)
		case stale:
			s.Stale = d
		default:
			s.Duration = d
		}
	}
	return s, nil
}
