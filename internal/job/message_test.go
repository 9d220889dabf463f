// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/compare"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

func TestAccPromptChangeSendsOneMessage(t *testing.T) {
	s := harness.NewService(t, nil)
	same := statecheck.CompareValue(compare.ValuesSame())
	id := func() statecheck.StateCheck { return same.AddStateValue(harness.JobAddress, tfjsonpath.New("id")) }
	harness.Run(t,
		resource.TestStep{Config: s.Config(harness.JobConfig("Write")), ConfigStateChecks: []statecheck.StateCheck{id()}},
		resource.TestStep{
			Config:           s.Config(harness.JobConfig("Write more")),
			ConfigPlanChecks: harness.ExpectAction(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{
				id(),
				harness.ExpectAttr("status", knownvalue.StringExact("completed")),
				harness.ExpectAttr("prompt", knownvalue.StringExact("Write more")),
			},
			Check: s.SentCheck(t, 1, 1),
		},
		harness.ExpectNoChange(s.Config(harness.JobConfig("Write more"))),
	)
	s.Sent(t, 1, 1)
}

func TestAccWaitTimeoutInUpdateIsAnError(t *testing.T) {
	s := harness.NewService(t, func(_ string, turn int) simulator.Script {
		return simulator.Script{Duration: []time.Duration{50 * time.Millisecond, time.Hour}[turn]}
	})
	short := s.Config(harness.JobConfig("Write more", `timeouts = { update = "10s" }`))
	harness.Run(t,
		resource.TestStep{Config: s.Config(harness.JobConfig("Write", `timeouts = { update = "10s" }`))},
		resource.TestStep{
			Config:      short,
			ExpectError: regexp.MustCompile(`(?s)Agent job still running.*sends\s+nothing`),
		},
		resource.TestStep{
			PreConfig:         func() { s.SetStatus(s.OnlyJob(t).ID, "completed") },
			Config:            short,
			ConfigStateChecks: []statecheck.StateCheck{harness.ExpectAttr("status", knownvalue.StringExact("completed"))},
		},
	)
	s.Sent(t, 1, 1)
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
