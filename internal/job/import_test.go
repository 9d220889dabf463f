// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfversion"

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

func TestAccImportByID(t *testing.T) {
	s := harness.NewService(t, nil)
	id := ended(s)
	withTriggers := s.Config(harness.JobConfig("What it was asked", `triggers = { spec = "1" }`))
	harness.Run(t,
		resource.TestStep{
			Config:             withTriggers,
			ResourceName:       harness.JobAddress,
			ImportState:        true,
			ImportStateId:      harness.Project + "/" + id,
			ImportStatePersist: true,
		},
		resource.TestStep{
			Config:           withTriggers,
			ConfigPlanChecks: harness.ExpectAction(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{
				harness.ExpectAttr("id", knownvalue.StringExact(id)),
				harness.ExpectAttr("prompt", knownvalue.StringExact("What it was asked")),
			},
		},
		harness.ExpectNoChange(withTriggers),
	)
	s.Sent(t, 0, 0)
}

func TestAccImportByIdentity(t *testing.T) {
	s := harness.NewService(t, nil)
	id := ended(s)
	config := s.Config(harness.JobConfig("What it was asked", `triggers = { spec = "1" }`), fmt.Sprintf(`
import {
  to       = agent_job.test
  identity = { project_id = %q, id = %q }
}`, harness.Project, id))
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: harness.ProviderFactories(),
		// The import block takes an identity from this version on.
		TerraformVersionChecks: []tfversion.TerraformVersionCheck{tfversion.SkipBelow(tfversion.Version1_12_0)},
		Steps: []resource.TestStep{
			{Config: config, ConfigStateChecks: []statecheck.StateCheck{harness.ExpectAttr("id", knownvalue.StringExact(id))}},
			harness.ExpectNoChange(config),
		},
	})
	s.Sent(t, 0, 0)
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

func TestAccImportOfRunningJobWaitsForIt(t *testing.T) {
	s := harness.NewService(t, harness.Always(simulator.Script{Duration: time.Hour}))
	id := s.Create(harness.Project, "from elsewhere").ID
	config := s.Config(harness.JobConfig("What it was asked"))
	harness.Run(t,
		resource.TestStep{Config: config, ResourceName: harness.JobAddress, ImportState: true, ImportStateId: harness.Project + "/" + id, ImportStatePersist: true},
		resource.TestStep{
			Config:            config,
			ConfigPlanChecks:  harness.ExpectAction(plancheck.ResourceActionUpdate, s.Ends(t)),
			ConfigStateChecks: []statecheck.StateCheck{harness.ExpectAttr("status", knownvalue.StringExact("completed"))},
		},
	)
	s.Sent(t, 0, 0)
}

func TestAccImportOfUnknownJob(t *testing.T) {
	s := harness.NewService(t, nil)
	for _, test := range []struct{ name, id, want string }{
		{"unknown", harness.Project + "/job_nobody", `(?s)Failed to import agent job.*404`},
		{"no slash", "job_1", `PROJECT_ID/JOB_ID`},
		{"a slash too many", "a/b/c", `PROJECT_ID/JOB_ID`},
		{"dots", "../job_1", `PROJECT_ID/JOB_ID`},
	} {
		t.Run(test.name, func(t *testing.T) {
			harness.Run(t, resource.TestStep{
				Config: s.Config(harness.JobConfig("Write")), ResourceName: harness.JobAddress, ImportState: true,
				ImportStateId: test.id, ExpectError: regexp.MustCompile(test.want),
			})
		})
	}
	s.Sent(t, 0, 0)
}
