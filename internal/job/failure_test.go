// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
