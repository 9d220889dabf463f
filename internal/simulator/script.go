// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator

import (
	"errors"
	"fmt"
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

// Script says how a job continues after a create or a message, and what its
// record shows from then on. The zero value ends at once as completed, with a
// pull request.
type Script struct {
	// Duration is how long the job is active. 0: it ends at once.
	Duration time.Duration
	// Status is the one that follows. "" is completed; "active" never ends.
	Status string
	// NoPullRequest leaves prLink null. It is null while active and when failed anyhow.
	NoPullRequest bool
	// Stale is for how long after a message its answer and every GET still
	// show the record as it was before.
	Stale time.Duration
	// Extra is laid over the record last. A value of [Omit] leaves the field out,
	// nil makes it null. Nil: what the turn before had.
	Extra map[string]any
}

// Omit as a value in [Script.Extra] leaves that field out of the record.
type Omit struct{}

// scriptFor asks for a script and lays the prompt's directives over it.
func (s *Server) scriptFor(prompt string, turn int) Script {
	script, err := s.options.Script(prompt, turn).directed(prompt)
	if err != nil {
		panic(err) // of Create alone: a request with such a prompt is refused with 400 before
	}
	return script
}

// directed returns the script changed by the directives in a prompt, such as
// "[simulate: 30s, failed]". Any other is an error: ignored, a typo would show
// something else than the prompt says.
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
		}
		value, stale := strings.CutPrefix(directive, "stale=")
		d, err := time.ParseDuration(value)
		switch {
		case err != nil || d < 0:
			return s, fmt.Errorf("the simulator does not know %q in [simulate: …]: it takes a duration such as 30s, "+
				"completed, failed, archived, active, no-pull-request and stale=5s", directive)
		case stale:
			s.Stale = d
		default:
			s.Duration = d
		}
	}
	return s, nil
}
