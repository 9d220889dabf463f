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
	id := func() statecheck.StateCheck { return same.AddStateValue(harness.JobAddress, tfjsonpath.New("id")) }
	harness.Run(t,
		resource.TestStep{
			Config:      s.Config(harness.JobConfig("fail")),
			ExpectError: regexp.MustCompile(`(?s)Agent job failed.*job_.*next apply starts a new job`),
		},
		// A tainted job is replaced whatever else has changed.
		resource.TestStep{
			Config:           s.Config(harness.JobConfig("Write")),
			ConfigPlanChecks: harness.ExpectAction(plancheck.ResourceActionDestroyBeforeCreate),
			ConfigStateChecks: []statecheck.StateCheck{
				id(),
				harness.ExpectAttr("status", knownvalue.StringExact("completed")),
				harness.ExpectAttr("pr_link", knownvalue.StringRegexp(regexp.MustCompile(`^https://`))),
				harness.ExpectAttr("source", knownvalue.ObjectPartial(map[string]knownvalue.Check{"repository": knownvalue.NotNull()})),
				harness.ExpectAttr("archived_at", knownvalue.Null()),
			},
			Check: s.SentCheck(t, 2, 0),
		},
		resource.TestStep{
			Config:           s.Config(harness.JobConfig("Write more")),
			ConfigPlanChecks: harness.ExpectAction(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{
				id(),
				harness.ExpectAttr("status", knownvalue.StringExact("completed")),
				harness.ExpectAttr("prompt", knownvalue.StringExact("Write more")),
			},
		},
	)
	s.Sent(t, 2, 1)
}
