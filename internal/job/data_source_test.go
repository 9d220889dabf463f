// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// It reads once and does not wait.
func TestDataSource(t *testing.T) {
	t.Setenv("AGENT_PROJECT_ID", "")
	script := simulator.Script{Status: "active", Extra: map[string]any{"prLink": "javascript:alert(1)"}}
	harness.Bubble(t, harness.Always(script), func(t *testing.T, s *harness.Service, c *fakecli.CLI) {
		id := s.Create(harness.Project, "write").ID
		if state, _ := c.Data(t.Context(), attrs{"id": id}); c.Attribute(state, "project_id") != harness.Project {
			t.Errorf("the default project is not in %s", state)
		}
		c.ConnectTo(t.Context(), provider.New("test", provider.Options{Dial: s.Wire.Dial}), fakecli.With(s.Attrs(), attrs{"project_id": nil}))
		_, diags := c.Data(t.Context(), attrs{"id": id})
		fakecli.WantPath(t, diags, "project_id")
		state, diags := c.Data(t.Context(), attrs{"id": id, "project_id": harness.Project})
		harness.Contains(t, fakecli.Text(diags), "WARNING: Invalid pull request link", id)
		if status := c.Attribute(state, "status"); status != "active" || fakecli.Failed(diags) {
			t.Errorf("status %v: %s", status, fakecli.Text(diags))
		}
		s.Inject(simulator.Fault{Kind: simulator.KindGet, Times: -1, Status: 503})
		_, diags = c.Data(t.Context(), attrs{"id": id, "project_id": harness.Project})
		harness.Contains(t, fakecli.Text(diags), "ERROR: Failed to read agent job", "503 Service Unavailable")
		s.ClearFaults()
		s.Forget(id)
		_, diags = c.Data(t.Context(), attrs{"id": id, "project_id": harness.Project})
		harness.Contains(t, fakecli.Text(diags), "ERROR: Agent job not found", "job "+id+" in project proj_1.", "project_id")
	})
}
