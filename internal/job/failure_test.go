// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// failing ends jobs as failed whose prompt says so.
func failing(prompt string, _ int) simulator.Script {
	script := simulator.Script{Duration: 100 * time.Millisecond}
	if strings.Contains(prompt, "fail") {
		script.Status = "failed"
	}
	return script
}

func TestAccFailedJobIsTainted(t *testing.T) {
	s := harness.NewService(t, failing)
	harness.Run(t,
		resource.TestStep{
			Config:      s.Config(harness.JobConfig("fail")),
			ExpectError: regexp.MustCompile(`(?s)Agent job failed.*job_.*next apply starts a new job`),
		},
		// A tainted job is replaced whatever else has changed.
		resource.TestStep{
			Config:           s.Config(harness.JobConfig("work")),
			ConfigPlanChecks: harness.ExpectAction(plancheck.ResourceActionDestroyBeforeCreate),
			Check:            s.SentCheck(t, 2, 0),
		},
	)
}

func TestAccFailedJobKeptByWarn(t *testing.T) {
	s := harness.NewService(t, failing)
	config := s.Config(harness.JobConfig("fail", `wait = { on_failure = "warn" }`))
	harness.Run(t,
		resource.TestStep{
			Config:            config,
			ConfigStateChecks: []statecheck.StateCheck{harness.ExpectAttr("status", knownvalue.StringExact("failed"))},
		},
		harness.ExpectNoChange(config),
		// It takes no message, so a new prompt is for a new job.
		resource.TestStep{
			Config:           s.Config(harness.JobConfig("work", `wait = { on_failure = "warn" }`)),
			ConfigPlanChecks: harness.ExpectAction(plancheck.ResourceActionDestroyBeforeCreate),
			Check:            s.SentCheck(t, 2, 0),
		},
	)
}

func TestAccFoundFailedAfterCutShortWaitIsReplaced(t *testing.T) {
	turn := 0
	s := harness.NewService(t, func(string, int) simulator.Script {
		turn++
		if turn == 1 {
			return simulator.Script{Duration: time.Hour}
		}
		return simulator.Script{Duration: 100 * time.Millisecond}
	})
	s.CutShort()
	config := s.Config(harness.JobConfig("Write"))
	harness.Run(t,
		resource.TestStep{Config: config, ExpectNonEmptyPlan: true},
		resource.TestStep{
			PreConfig:         func() { s.SetStatus(s.OnlyJob(t).ID, "failed") },
			Config:            config,
			ConfigPlanChecks:  harness.ExpectAction(plancheck.ResourceActionDestroyBeforeCreate),
			ConfigStateChecks: []statecheck.StateCheck{harness.ExpectAttr("status", knownvalue.StringExact("completed"))},
		},
		harness.ExpectNoChange(config),
	)
	s.Sent(t, 2, 0)
}

func TestFoundFailedIsReplacedWithAReason(t *testing.T) {
	harness.Bubble(t, harness.Always(simulator.Script{Duration: time.Hour}), foundFailed)
}

func foundFailed(t *testing.T, s *harness.Service, c *fakecli.CLI) {
	config := attrs{"prompt": "write", "timeouts": attrs{"create": "1m"}}
	harness.Contains(t, fakecli.Text(c.Run(t.Context(), config)), "WARNING: Agent job still running", "sends nothing")
	s.SetStatus(s.OnlyJob(t).ID, "failed")
	c.Refresh(t.Context())
	harness.Contains(t, fakecli.Text(c.Plan(t.Context(), config)), "Failed agent job is started anew", "on_failure")
	if diff := cmp.Diff([]string{`AttributeName("status")`}, c.Because); diff != "" {
		t.Errorf("replaced because of (-want +got):\n%s", diff)
	}
	harness.Contains(t, fakecli.Text(c.Plan(t.Context(), fakecli.With(config, attrs{"prompt": "write again"}))), "New prompt starts a new agent job")
	if diff := cmp.Diff([]string{`AttributeName("prompt")`}, c.Because); diff != "" {
		t.Errorf("with a new prompt, replaced because of (-want +got):\n%s", diff)
	}
	if diags := c.Plan(t.Context(), fakecli.With(config, attrs{"triggers": attrs{"a": "1"}})); len(diags) > 0 {
		t.Errorf("with new triggers: %s", fakecli.Text(diags))
	}
	config["wait"] = attrs{"on_failure": "warn"}
	harness.Contains(t, fakecli.Text(c.Plan(t.Context(), config)), "WARNING: Agent job failed")
	if c.Replace {
		t.Error("the job is replaced although on_failure is warn")
	}
}

func TestFailedImportIsNeverReplaced(t *testing.T) {
	s := harness.NewService(t, failing)
	id := s.Create(harness.Project, "fail").ID
	s.SetStatus(id, "failed")
	c := fakecli.New(t, s.Attrs())
	c.ImportState(t.Context(), harness.Project+"/"+id)
	diags := c.Run(t.Context(), attrs{"prompt": "write", "triggers": attrs{"a": "1"}})
	harness.Contains(t, fakecli.Text(diags), "WARNING: Agent job failed")
	if fakecli.Failed(diags) || c.Get("id") != id {
		t.Errorf("the job was not kept: %s", fakecli.Text(diags))
	}
	s.Sent(t, 0, 0)
}
