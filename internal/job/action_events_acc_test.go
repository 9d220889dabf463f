// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-version"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/tfversion"

	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

const actions = `
action "agent_start_job" "first" {
  config {
    prompt = "${caller.input}: fails"
  }
}
action "agent_start_job" "second" {
  config {
    prompt = "${caller.input}: succeeds"
  }
}
`

// triggering is a revision of a resource that triggers both actions, and one that depends on it.
const triggering = `
resource "terraform_data" %[1]q {
  input            = "%[1]s %[2]d"
  triggers_replace = endswith(%[1]q, "destroy") ? %[2]d : null
  lifecycle {
    action_trigger {
      events  = [%[3]s]
      actions = [action.agent_start_job.first, action.agent_start_job.second]
      %[4]s
    }
  }
}
resource "terraform_data" "%[1]s_dependent" {
  input = terraform_data.%[1]s.output
}
`

// The table on the page of agent_start_job: what a failed action does to the resource
// that triggers it, and to one that depends on it. The next plan shows both.
func TestAccActionEvents(t *testing.T) {
	const (
		missing  = plancheck.ResourceActionCreate
		old      = plancheck.ResourceActionUpdate
		replaced = plancheck.ResourceActionDestroyBeforeCreate // tainted, or its replacement was stopped
		done     = plancheck.ResourceActionNoop
	)
	if strings.Contains(os.Getenv("TF_ACC_PROVIDER_HOST"), "opentofu") {
		t.Skip("OpenTofu has no actions") // the check below would compare OpenTofu's version with Terraform's
	}
	s := harness.NewService(t, byPrompt)
	first, second := []string{actions}, []string{actions}
	var checks []plancheck.PlanCheck
	want, got := map[string][]string{}, map[string][]string{}
	for name, test := range map[string]struct {
		event, onFailure    string
		resource, dependent plancheck.ResourceActionType
		destroyed           []string // jobs that the destroy at the end starts: nothing stops it
	}{
		"before_create":  {"before_create", "", missing, missing, nil},
		"after_create":   {"after_create", "", done, missing, nil},
		"tainted":        {"after_create", "on_failure = taint", replaced, missing, nil},
		"before_update":  {"before_update", "", old, old, nil},
		"after_update":   {"after_update", "", done, old, nil},
		"before_destroy": {"before_destroy", "", replaced, old, []string{"fails", "succeeds"}},
		"after_destroy":  {"after_destroy", "", missing, old, nil},
	} {
		if !strings.HasSuffix(test.event, "create") {
			first = append(first, fmt.Sprintf(triggering, name, 1, test.event, test.onFailure))
		}
		second = append(second, fmt.Sprintf(triggering, name, 2, test.event, test.onFailure))
		checks = append(checks,
			plancheck.ExpectResourceAction("terraform_data."+name, test.resource),
			plancheck.ExpectResourceAction("terraform_data."+name+"_dependent", test.dependent))
		want[name] = append([]string{"fails"}, test.destroyed...)
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
	for _, job := range s.Jobs() {
		caller, outcome, _ := strings.Cut(job.Prompts[0], ": ")
		name := strings.Fields(caller)[0]
		got[name] = append(got[name], outcome)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("jobs started by each resource, in order (-want +got):\n%s", diff)
	}
}
