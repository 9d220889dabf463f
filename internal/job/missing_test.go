// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

func TestAccMissingJobThatHadEndedIsKept(t *testing.T) {
	s := harness.NewService(t, nil)
	config := s.Config(harness.JobConfig("Write"))
	harness.Run(t,
		resource.TestStep{Config: config},
		resource.TestStep{PreConfig: func() { s.Forget(s.OnlyJob(t).ID) }, Config: config, PlanOnly: true},
	)
	s.Sent(t, 1, 0)
}

func TestAccMissingJobThatWasActive(t *testing.T) {
	s := harness.NewService(t, harness.Always(simulator.Script{Duration: time.Hour}))
	s.CutShort()
	config := s.Config(harness.JobConfig("Write"))
	harness.Run(t,
		resource.TestStep{Config: config, ExpectNonEmptyPlan: true},
		resource.TestStep{
			PreConfig:        func() { s.Forget(s.OnlyJob(t).ID) },
			Config:           config,
			ConfigPlanChecks: harness.ExpectAction(plancheck.ResourceActionUpdate),
			ExpectError:      regexp.MustCompile(`(?s)not.found.*-replace=ADDRESS`),
		},
	)
	s.Sent(t, 1, 0)
}

func TestMissingJobIsWarnedOfOnce(t *testing.T) {
	s := harness.NewService(t, nil)
	c := fakecli.New(t, s.Attrs())
	c.Run(t.Context(), attrs{"prompt": "write"})
	before := c.State
	s.Forget(s.OnlyJob(t).ID)
	harness.Contains(t, fakecli.Text(c.Refresh(t.Context())), "WARNING: Agent job not found", "once")
	if diags := c.Refresh(t.Context()); len(diags) > 0 {
		t.Errorf("said a second time: %s", fakecli.Text(diags))
	}
	if !c.State.Equal(before) {
		t.Errorf("the state has changed: %s", c.State)
	}
}
