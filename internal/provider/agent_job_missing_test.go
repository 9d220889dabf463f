// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

func TestAccMissingJobThatHadEndedIsKept(t *testing.T) {
	s := newService(t, nil)
	config := s.Config(jobConfig("Write"))
	run(t,
		resource.TestStep{Config: config},
		resource.TestStep{PreConfig: func() { s.Forget(s.OnlyJob(t).ID) }, Config: config, PlanOnly: true},
	)
	s.Sent(t, 1, 0)
}

func TestAccMissingJobThatWasActive(t *testing.T) {
	s := newService(t, always(simulator.Script{Duration: time.Hour}))
	s.CutShort()
	config := s.Config(jobConfig("Write"))
	run(t,
		resource.TestStep{Config: config, ExpectNonEmptyPlan: true},
		resource.TestStep{
			PreConfig:        func() { s.Forget(s.OnlyJob(t).ID) },
			Config:           config,
			ConfigPlanChecks: expectAction(plancheck.ResourceActionUpdate),
			ExpectError:      regexp.MustCompile(`(?s)not.found.*-replace=ADDRESS`),
		},
	)
	s.Sent(t, 1, 0)
}

func TestMissingJobIsWarnedOfOnce(t *testing.T) {
	s := newService(t, nil)
	c := newCore(t, s.Attrs())
	c.Run(t.Context(), attrs{"prompt": "write"})
	before := c.State
	s.Forget(s.OnlyJob(t).ID)
	contains(t, text(c.Refresh(t.Context())), "WARNING: Agent job not found", "once")
	if diags := c.Refresh(t.Context()); len(diags) > 0 {
		t.Errorf("said a second time: %s", text(diags))
	}
	if !c.State.Equal(before) {
		t.Errorf("the state has changed: %s", c.State)
	}
}
