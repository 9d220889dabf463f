// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/go-version"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/tfversion"

	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// triggering is a revision of a resource that triggers an action, which fails.
const triggering = `
resource "terraform_data" %[1]q {
  input = "%[1]s %[2]d"
  lifecycle {
    action_trigger {
      events  = [%[3]s]
      actions = [action.agent_start_job.it]
      %[4]s
    }
  }
}
`

// What the page of agent_start_job says: whether the next apply after a failed action runs it again, because its resource changes again.
func TestAccActionEvents(t *testing.T) {
	if strings.Contains(os.Getenv("TF_ACC_PROVIDER_HOST"), "opentofu") {
		t.Skip("OpenTofu has no actions") // the check below would compare OpenTofu's version with Terraform's
	}
	s := harness.NewService(t, byPrompt)
	const action = `
action "agent_start_job" "it" {
  config {
    prompt = "fails"
  }
}
`
	first, second := []string{action}, []string{action}
	var checks []plancheck.PlanCheck
	for name, test := range map[string]struct {
		event, onFailure string
		next             plancheck.ResourceActionType
	}{
		"before_create": {"before_create", "", plancheck.ResourceActionCreate},
		"after_create":  {"after_create", "", plancheck.ResourceActionNoop},
		"tainted":       {"after_create", "on_failure = taint", plancheck.ResourceActionDestroyBeforeCreate},
		"before_update": {"before_update", "", plancheck.ResourceActionUpdate},
		"after_update":  {"after_update", "", plancheck.ResourceActionNoop},
	} {
		if strings.HasSuffix(test.event, "update") {
			first = append(first, fmt.Sprintf(triggering, name, 1, test.event, test.onFailure))
		}
		second = append(second, fmt.Sprintf(triggering, name, 2, test.event, test.onFailure))
		checks = append(checks, plancheck.ExpectResourceAction("terraform_data."+name, test.next))
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: providerFactories(t),
		TerraformVersionChecks:   []tfversion.TerraformVersionCheck{tfversion.SkipBelow(version.Must(version.NewVersion("1.16.0")))},
		Steps: []resource.TestStep{
			{Config: s.Config(first...)},
			{Config: s.Config(second...), ExpectError: regexp.MustCompile("Agent job failed")},
			{
				Config: s.Config(second...), PlanOnly: true, ExpectNonEmptyPlan: true,
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: checks},
			},
		},
	})
	s.Sent(t, len(checks), 0)
}
