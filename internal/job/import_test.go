// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// ended is a job that somebody else has started and that is over.
func ended(s *harness.Service) string {
	id := s.Create(harness.Project, "from elsewhere").ID
	s.SetStatus(id, "completed")
	return id
}

func TestImportByIdentity(t *testing.T) {
	s := harness.NewService(t, nil)
	id := ended(s)
	c := fakecli.New(t, s.Attrs())
	kind := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"project_id": tftypes.String, "id": tftypes.String}}
	resp, err := c.Server.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{
		TypeName: "agent_job",
		Identity: &tfprotov6.ResourceIdentityData{IdentityData: c.Dynamic(fakecli.Object(kind, attrs{"project_id": harness.Project, "id": id}))},
	})
	if err != nil || fakecli.Failed(resp.Diagnostics) {
		t.Fatal(err, fakecli.Text(resp.Diagnostics))
	}
	c.State, c.Private, c.Identity = c.Decode(resp.ImportedResources[0].State), nil, resp.ImportedResources[0].Identity
	if diags := c.Run(t.Context(), attrs{"prompt": "What it was asked", "triggers": attrs{"spec": "1"}}); len(diags) > 0 {
		t.Error(fakecli.Text(diags))
	}
	if c.Get("id") != id || c.Get("status") != "completed" || c.Get("prompt") != "What it was asked" {
		t.Errorf("state after the import: %s", c.State)
	}
	s.Sent(t, 0, 0)
}

func TestImport_activeJob(t *testing.T) {
	harness.Bubble(t, harness.Always(simulator.Script{Duration: time.Minute}), func(t *testing.T, s *harness.Service, c *fakecli.CLI) {
		id := s.Create(harness.Project, "from elsewhere").ID
		c.ImportState(t.Context(), harness.Project+"/"+id)
		if c.Get("status") != "active" {
			t.Errorf("imported as %s", c.State)
		}
		diags := c.Run(t.Context(), attrs{"prompt": "What it was asked"})
		if fakecli.Failed(diags) || c.Get("status") != "completed" || c.Get("id") != id {
			t.Errorf("%s: %s", c.State, fakecli.Text(diags))
		}
		s.Sent(t, 0, 0)
	})
}

func TestImport_invalidID(t *testing.T) {
	s := harness.NewService(t, nil)
	for _, id := range []string{"job_1", "a/b/c", "/"} {
		diags := fakecli.New(t, s.Attrs()).ImportState(t.Context(), id)
		harness.Contains(t, fakecli.Text(diags), "ERROR: Failed to import agent job", "PROJECT_ID/JOB_ID")
	}
}
