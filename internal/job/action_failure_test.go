// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"maps"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

func TestActionTimeout(t *testing.T) {
	eachAction(t, simulator.Script{Duration: time.Hour}, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
		a.config["timeouts"] = attrs{"invoke": "300ms"}
		_, diags := c.Invoke(t.Context(), a.name, a.config)
		harness.Contains(t, fakecli.Text(diags), "ERROR: Agent job still running", "read job "+s.Jobs()[0].ID+" of project proj_1 with the data source agent_job",
			"Running the action again sends the prompt again.")
		a.config["wait"] = attrs{"on_timeout": "warn"}
		_, diags = c.Invoke(t.Context(), a.name, a.config)
		harness.Contains(t, fakecli.Text(diags), "WARNING: Agent job still running")
		if fakecli.Failed(diags) {
			t.Error("on_timeout = warn fails")
		}
	})
}

func TestActionRefused(t *testing.T) {
	eachAction(t, simulator.Script{}, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
		s.Inject(simulator.Fault{Kind: a.kind, Status: 404, Body: `{"error":"no such thing"}`})
		_, diags := c.Invoke(t.Context(), a.name, a.config)
		target := "project proj_1"
		if a.jobID != "" {
			target = "job " + a.jobID + " in project proj_1"
		}
		harness.Contains(t, fakecli.Text(diags), "ERROR: Failed to", "no such thing", "refused the prompt for "+target+", so it has had no effect", "project_id")
		a.sentOnce(t, s)
	})
}

func TestActionArguments(t *testing.T) {
	at := tftypes.NewAttributePath
	eachAction(t, simulator.Script{}, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
		for name, test := range map[string]struct {
			attribute string
			value     any
			path      *tftypes.AttributePath
		}{
			"white space":       {"prompt", " \n", at().WithAttributeName("prompt")},
			"slash in project":  {"project_id", "a/b", at().WithAttributeName("project_id")},
			"zero timeout":      {"timeouts", attrs{"invoke": "0s"}, at().WithAttributeName("timeouts").WithAttributeName("invoke")},
			"unreadable":        {"timeouts", attrs{"invoke": "soon"}, at().WithAttributeName("timeouts").WithAttributeName("invoke")},
			"unknown on_failed": {"wait", attrs{"on_failure": "retry"}, at().WithAttributeName("wait").WithAttributeName("on_failure")},
		} {
			config := maps.Clone(a.config)
			config[test.attribute] = test.value
			_, diags := c.Invoke(t.Context(), a.name, config)
			if fakecli.WantPath(t, diags, test.path); t.Failed() {
				t.Fatal("that was:", name)
			}
		}
		config := s.Attrs()
		config["admin_key"] = unknown{}
		_, diags := fakecli.New(t, config).Invoke(t.Context(), a.name, a.config)
		harness.Contains(t, fakecli.Text(diags), "ERROR: Agent provider not configured", "Not known yet: admin_key.")

		t.Setenv("AGENT_PROJECT_ID", "")
		config = s.Attrs()
		delete(config, "project_id")
		_, diags = fakecli.New(t, config).PlanAction(t.Context(), a.name, a.config)
		fakecli.WantPath(t, diags, at().WithAttributeName("project_id"))
		harness.Contains(t, fakecli.Text(diags), "needs the project that the job shall belong to, here or as its default.", "AGENT_PROJECT_ID")
		s.Sent(t, 0, 0)
	})
}
