// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"path/filepath"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// A message that the service refused shows nothing about an earlier one whose
// state was lost: the journal still has that.
//
// Red without: sendOrTakeOver keeping the entry of a refused message out of the
// private state.
func TestRefusedMessageDoesNotForgetEarlierOne(t *testing.T) {
	s := harness.NewService(t, nil)
	config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": filepath.Join(t.TempDir(), "journal")}})
	c := fakecli.New(t, config)
	run := func(name journal.Run, prompt string) string {
		t.Helper()
		process := journal.NewProcess(name, func(err error) { t.Error(err) })
		defer process.Close(t.Context())
		c.ConnectTo(t.Context(), provider.New("test", provider.Options{Process: process}), config)
		return fakecli.Text(c.Run(t.Context(), attrs{"prompt": prompt, "wait": attrs{"enabled": false}}))
	}
	run("first", "A")
	state, private := c.State, c.Private
	run("second", "B")
	c.State, c.Private = state, private
	s.Inject(simulator.Fault{Kind: simulator.KindMessage, Status: 409})
	harness.Contains(t, run("third", "C"), "Failed to send message to agent job")
	s.Sent(t, 1, 2)
	harness.Contains(t, run("fourth", "B"), "taken over", "Message of an earlier run found")
	s.Sent(t, 1, 2)
}
