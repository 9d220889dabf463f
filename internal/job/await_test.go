// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

func TestAccWaitDisabled(t *testing.T) {
	s := harness.NewService(t, harness.Always(simulator.Script{Duration: time.Hour}))
	off := s.Config(harness.JobConfig("Write", `wait = { enabled = false }`))
	on := s.Config(harness.JobConfig("Write"))
	harness.Run(t,
		resource.TestStep{
			Config:            off,
			ConfigStateChecks: []statecheck.StateCheck{harness.ExpectAttr("status", knownvalue.StringExact("active"))},
		},
		harness.ExpectNoChange(off),
		resource.TestStep{
			Config:            on,
			ConfigPlanChecks:  harness.ExpectAction(plancheck.ResourceActionUpdate, s.Ends(t)),
			ConfigStateChecks: []statecheck.StateCheck{harness.ExpectAttr("status", knownvalue.StringExact("completed"))},
		},
		harness.ExpectNoChange(on),
	)
	s.Sent(t, 1, 0)
}

func TestAccWaitTimeoutInCreateKeepsTheJob(t *testing.T) {
	s := harness.NewService(t, harness.Always(simulator.Script{Duration: time.Hour}))
	config := s.Config(harness.JobConfig("Write", `timeouts = { create = "10s" }`))
	harness.Run(t,
		resource.TestStep{
			Config:             config,
			ExpectNonEmptyPlan: true, // it is to be waited for
			ConfigStateChecks:  []statecheck.StateCheck{harness.ExpectAttr("status", knownvalue.StringExact("active"))},
			Check:              s.SentCheck(t, 1, 0),
		},
		resource.TestStep{
			Config: config,
			ConfigPlanChecks: harness.ExpectAction(plancheck.ResourceActionUpdate, s.Ends(t),
				plancheck.ExpectUnknownValue(harness.JobAddress, tfjsonpath.New("pr_link")),
				plancheck.ExpectKnownValue(harness.JobAddress, tfjsonpath.New("id"), knownvalue.NotNull())),
			ConfigStateChecks: []statecheck.StateCheck{harness.ExpectAttr("pr_link", knownvalue.NotNull())},
		},
		harness.ExpectNoChange(config),
	)
	s.Sent(t, 1, 0)
}
