// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package wait

import (
	"fmt"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/escape"
)

// Error is a wait that stopped before its job finished. It wraps the cause of the
// context's end, or the *agentapi.Error that ended it.
type Error struct {
	JobID      string
	LastStatus agentapi.Status // as last read; empty if it never was
	Waited     time.Duration
	LastFault  error // what was wrong with the last poll, if anything was
	Err        error
}

// Error says how long the wait lasted and which status was read last.
func (e *Error) Error() string {
	text := fmt.Sprintf("job %s: %v after %s", e.JobID, e.Err, e.Waited.Round(time.Second))
	if e.LastStatus != "" {
		text += fmt.Sprintf(", last status %q", escape.Printable(string(e.LastStatus)))
	}
	return text
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }
