// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
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
	t.Parallel() // it sleeps
	s := harness.NewService(t, nil)
	config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": filepath.Join(t.TempDir(), "journal")}})
	c := fakecli.New(t, config)
	run := func(name journal.Run, prompt string) string {
		t.Helper()
		return fakecli.Text(apply(t, c, name, config, attrs{"prompt": prompt, "wait": attrs{"enabled": false}}))
	}
	run("first", "A")
	state, private := c.State, c.Private
	run("second", "B")
	time.Sleep(2100 * time.Millisecond) // C must be later than B by more than the journal's clockError
	c.State, c.Private = state, private
	s.Inject(simulator.Fault{Kind: simulator.KindMessage, Status: 409})
	harness.Contains(t, run("third", "C"), "Failed to send message to agent job")
	s.Sent(t, 1, 2)
	harness.Contains(t, run("fourth", "B"), "taken over", "Message of an earlier run taken over")
	s.Sent(t, 1, 2)
}

// Found by chaos: the effect of a message that was reported as unknown was taken
// for that of the next one, which had not arrived.
func TestUnconfirmedMessageProvesNothingOfTheNext(t *testing.T) {
	s := harness.NewService(t, func(_ string, turn int) simulator.Script {
		return simulator.Script{Duration: []time.Duration{50 * time.Millisecond, time.Hour}[turn]}
	})
	c := fakecli.New(t, s.Attrs())
	c.Run(t.Context(), attrs{"prompt": "write"})
	// A has its effect late, so that it is not seen in time; its answer is lost.
	s.Inject(
		simulator.Fault{Kind: simulator.KindMessage, Status: 500, AfterEffect: true},
		simulator.Fault{Kind: simulator.KindMessage, Status: 500},
	)
	s.Inject(simulator.Fault{Kind: simulator.KindGet, Status: 404, Body: `{"error":"late"}`})
	harness.Contains(t, fakecli.Text(c.Plan(t.Context(), attrs{"prompt": "A"}))+fakecli.Text(c.Apply(t.Context(), attrs{"prompt": "A"})), "Outcome of message to agent job unknown")
	// B does not arrive at all, while the job is active because of A.
	got := fakecli.Text(c.Plan(t.Context(), attrs{"prompt": "B"})) + fakecli.Text(c.Apply(t.Context(), attrs{"prompt": "B"}))
	harness.Contains(t, got, "Outcome of message to agent job unknown")
	s.Sent(t, 1, 2)
}
