// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package send

import (
	"io"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
)

// What is not known to have had no effect may have had one, and is not sent again.
func TestOutcome(t *testing.T) {
	for err, want := range map[error]Result{
		nil: Sent,
		&agentapi.Error{Class: agentapi.ErrNotSent}:        NoEffect,
		&agentapi.Error{Class: agentapi.ErrRefused}:        NoEffect,
		&agentapi.Error{Class: agentapi.ErrUnknownOutcome}: Unknown,
		io.EOF: Unknown,
	} {
		if got := new(Sender{Journal: journal.Discard()}).Begin(t.Context(), Request{}).outcome(nil, err).Result; got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}
