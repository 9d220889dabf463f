// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

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
)

// ended is a job that somebody else has started and that is over.
func ended(s *service) string {
	id := s.Create(project, "from elsewhere").ID
	s.SetStatus(id, "completed")
	return id
}

func TestAccImportByID(t *testing.T) {
	s := newService(t, nil)
	id := ended(s)
	withTriggers := s.Config(jobConfig("What it was asked", `triggers = { spec = "1" }`))
	run(t,
		resource.TestStep{
			Config:             withTriggers,
			ResourceName:       jobAddress,
			ImportState:        true,
			ImportStateId:      project + "/" + id,
			ImportStatePersist: true,
		},
		resource.TestStep{
			Config:           withTriggers,
			ConfigPlanChecks: expectAction(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{
				expectAttr("id", knownvalue.StringExact(id)),
				expectAttr("prompt", knownvalue.StringExact("What it was asked")),
			},
		},
		expectNoChange(withTriggers),
	)
	s.Sent(t, 0, 0)
}

func TestAccImportByIdentity(t *testing.T) {
	s := newService(t, nil)
	id := ended(s)
	config := s.Config(jobConfig("What it was asked", `triggers = { spec = "1" }`), fmt.Sprintf(`
import {
  to       = agent_job.test
  identity = { project_id = %q, id = %q }
}`, project, id))
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: providerFactories(),
		// The import block takes an identity from this version on.
		TerraformVersionChecks: []tfversion.TerraformVersionCheck{tfversion.SkipBelow(tfversion.Version1_12_0)},
		Steps: []resource.TestStep{
			{Config: config, ConfigStateChecks: []statecheck.StateCheck{expectAttr("id", knownvalue.StringExact(id))}},
			expectNoChange(config),
		},
	})
	s.Sent(t, 0, 0)
}

func TestImportByIdentity(t *testing.T) {
	s := newService(t, nil)
	id := ended(s)
	c := newCore(t, s.Attrs())
	kind := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"project_id": tftypes.String, "id": tftypes.String}}
	resp, err := c.Server.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{
		TypeName: "agent_job",
		Identity: &tfprotov6.ResourceIdentityData{IdentityData: c.Dynamic(object(kind, attrs{"project_id": project, "id": id}))},
	})
	if err != nil || failed(resp.Diagnostics) {
		t.Fatal(err, text(resp.Diagnostics))
	}
	c.State, c.Private, c.Identity = c.Decode(resp.ImportedResources[0].State), nil, resp.ImportedResources[0].Identity
	if diags := c.Run(t.Context(), attrs{"prompt": "What it was asked", "triggers": attrs{"spec": "1"}}); len(diags) > 0 {
		t.Error(text(diags))
	}
	if c.Get("id") != id || c.Get("status") != "completed" || c.Get("prompt") != "What it was asked" {
		t.Errorf("state after the import: %s", c.State)
	}
	s.Sent(t, 0, 0)
}

func TestAccImportOfRunningJobWaitsForIt(t *testing.T) {
	s := newService(t, always(simulator.Script{Duration: time.Hour}))
	id := s.Create(project, "from elsewhere").ID
	config := s.Config(jobConfig("What it was asked"))
	run(t,
		resource.TestStep{Config: config, ResourceName: jobAddress, ImportState: true, ImportStateId: project + "/" + id, ImportStatePersist: true},
		resource.TestStep{
			Config:            config,
			ConfigPlanChecks:  expectAction(plancheck.ResourceActionUpdate, s.Ends(t)),
			ConfigStateChecks: []statecheck.StateCheck{expectAttr("status", knownvalue.StringExact("completed"))},
		},
	)
	s.Sent(t, 0, 0)
}

func TestAccImportOfUnknownJob(t *testing.T) {
	s := newService(t, nil)
	for _, test := range []struct{ name, id, want string }{
		{"unknown", project + "/job_nobody", `(?s)Failed to import agent job.*404`},
		{"no slash", "job_1", `PROJECT_ID/JOB_ID`},
		{"a slash too many", "a/b/c", `PROJECT_ID/JOB_ID`},
		{"dots", "../job_1", `PROJECT_ID/JOB_ID`},
	} {
		t.Run(test.name, func(t *testing.T) {
			run(t, resource.TestStep{
				Config: s.Config(jobConfig("Write")), ResourceName: jobAddress, ImportState: true,
				ImportStateId: test.id, ExpectError: regexp.MustCompile(test.want),
			})
		})
	}
	s.Sent(t, 0, 0)
}
