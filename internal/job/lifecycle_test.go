// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/compare"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// A real CLI stores what the fake one stores, and plugin-testing fails after a
// step whose next plan is not empty. The examples of the documentation show
// imports, moves, data sources and actions (internal/tools/demo).

func TestAccPromptChangeSendsOneMessage(t *testing.T) {
	s := harness.NewService(t, byPrompt)
	same := statecheck.CompareValue(compare.ValuesSame())
	id := func() statecheck.StateCheck { return same.AddStateValue(jobAddress, tfjsonpath.New("id")) }
	runSteps(t,
		resource.TestStep{
			Config:      s.Config(jobConfig("fail")),
			ExpectError: regexp.MustCompile(`(?s)Agent job failed.*job_.*next apply starts a new job`),
		},
		// A tainted job is replaced whatever else has changed.
		resource.TestStep{
			Config:           s.Config(jobConfig("Write")),
			ConfigPlanChecks: expectAction(plancheck.ResourceActionDestroyBeforeCreate),
			ConfigStateChecks: []statecheck.StateCheck{
				id(),
				expectAttr("status", knownvalue.StringExact("completed")),
				expectAttr("pr_link", knownvalue.StringRegexp(regexp.MustCompile(`^https://`))),
				expectAttr("source", knownvalue.ObjectPartial(map[string]knownvalue.Check{"repository": knownvalue.NotNull()})),
				expectAttr("archived_at", knownvalue.Null()),
			},
			Check: sentCheck(t, s, 2, 0),
		},
		resource.TestStep{
			Config:           s.Config(jobConfig("Write more")),
			ConfigPlanChecks: expectAction(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{
				id(),
				expectAttr("status", knownvalue.StringExact("completed")),
				expectAttr("prompt", knownvalue.StringExact("Write more")),
			},
		},
	)
	s.Sent(t, 2, 1)
}
