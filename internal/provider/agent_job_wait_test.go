// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

func TestAccWaitDisabled(t *testing.T) {
	s := newService(t, always(simulator.Script{Duration: time.Hour}))
	off := s.Config(jobConfig("Write", `wait = { enabled = false }`))
	on := s.Config(jobConfig("Write"))
	run(t,
		resource.TestStep{
			Config:            off,
			ConfigStateChecks: []statecheck.StateCheck{expectAttr("status", knownvalue.StringExact("active"))},
		},
		expectNoChange(off),
		resource.TestStep{
			Config:            on,
			ConfigPlanChecks:  expectAction(plancheck.ResourceActionUpdate, s.Ends(t)),
			ConfigStateChecks: []statecheck.StateCheck{expectAttr("status", knownvalue.StringExact("completed"))},
		},
		expectNoChange(on),
	)
	s.Sent(t, 1, 0)
}

func TestAccWaitTimeoutInCreateKeepsTheJob(t *testing.T) {
	s := newService(t, always(simulator.Script{Duration: time.Hour}))
	config := s.Config(jobConfig("Write", `timeouts = { create = "10s" }`))
	run(t,
		resource.TestStep{
			Config:             config,
			ExpectNonEmptyPlan: true, // it is to be waited for
			ConfigStateChecks:  []statecheck.StateCheck{expectAttr("status", knownvalue.StringExact("active"))},
			Check:              s.SentCheck(t, 1, 0),
		},
		resource.TestStep{
			Config: config,
			ConfigPlanChecks: expectAction(plancheck.ResourceActionUpdate, s.Ends(t),
				plancheck.ExpectUnknownValue(jobAddress, tfjsonpath.New("pr_link")),
				plancheck.ExpectKnownValue(jobAddress, tfjsonpath.New("id"), knownvalue.NotNull())),
			ConfigStateChecks: []statecheck.StateCheck{expectAttr("pr_link", knownvalue.NotNull())},
		},
		expectNoChange(config),
	)
	s.Sent(t, 1, 0)
}
