// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"fmt"
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
  triggers_replace = %[3]s
  lifecycle {
    action_trigger {
      events     = [%[4]s]
      actions    = [action.agent_start_job.first, action.agent_start_job.second]
      on_failure = %[5]s
    }
  }
}
resource "terraform_data" "%[1]s_dependent" {
  input = terraform_data.%[1]s.output
}
`

// ephemeral replaces a page, which is refused: the plan must know the action of a destroy.
const ephemeral = `
variable "topic" {
  default   = "confidential"
  ephemeral = true
}
resource "terraform_data" "page" {
  triggers_replace = "again"
  lifecycle {
    action_trigger {
      events  = [before_destroy]
      actions = [action.agent_start_job.write]
    }
  }
}
action "agent_start_job" "write" {
  config {
    prompt_wo = "Write about ${var.topic}"
  }
}
`

// The table of the lifecycle guide: what a failed action does to the resource
// that triggers it, and to one that depends on it. The next plan shows both.
func TestAccActionEvents(t *testing.T) {
	const (
		missing  = plancheck.ResourceActionCreate
		old      = plancheck.ResourceActionUpdate
		replaced = plancheck.ResourceActionDestroyBeforeCreate // tainted, or its replacement was stopped
		done     = plancheck.ResourceActionNoop
	)
	s := harness.NewService(t, byPrompt)
	first, second := []string{actions, `resource "terraform_data" "page" {}`}, []string{actions}
	var checks []plancheck.PlanCheck
	want := map[string][]string{}
	for _, test := range []struct {
		event, onFailure    string
		resource, dependent plancheck.ResourceActionType
		destroyed           int // revision that the destroy at the end finds; 0: no destroy runs the actions
	}{
		{"before_create", "halt", missing, missing, 0},
		{"before_create", "taint", missing, missing, 0},
		{"before_create", "continue", done, done, 0},
		{"after_create", "halt", done, missing, 0},
		{"after_create", "taint", replaced, missing, 0},
		{"after_create", "continue", done, done, 0},
		{"before_update", "halt", old, old, 0},
		{"before_update", "continue", done, done, 0},
		{"after_update", "halt", done, old, 0},
		{"after_update", "taint", done, old, 0},
		{"after_update", "continue", done, done, 0},
		{"before_destroy", "halt", replaced, old, 1},
		{"before_destroy", "continue", done, done, 2},
		{"after_destroy", "halt", missing, old, 0},
		{"after_destroy", "continue", done, done, 2},
	} {
		name, acting := test.event+"_"+test.onFailure, 2
		isDestroy := strings.HasSuffix(test.event, "destroy")
		if isDestroy {
			acting = 1
		}
		at := func(revision int) string {
			replace := "null"
			if isDestroy {
				replace = fmt.Sprint(revision)
			}
			return fmt.Sprintf(triggering, name, revision, replace, test.event, test.onFailure)
		}
		if !strings.HasSuffix(test.event, "create") {
			first = append(first, at(1))
		}
		second = append(second, at(2))
		checks = append(checks,
			plancheck.ExpectResourceAction("terraform_data."+name, test.resource),
			plancheck.ExpectResourceAction("terraform_data."+name+"_dependent", test.dependent))
		caller := fmt.Sprint(name, " ", acting)
		want[caller] = append(want[caller], "fails")
		if test.onFailure == "continue" {
			want[caller] = append(want[caller], "succeeds")
		}
		if test.destroyed != 0 { // a destroy of everything is never stopped
			caller = fmt.Sprint(name, " ", test.destroyed)
			want[caller] = append(want[caller], "fails", "succeeds")
		}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: providerFactories(t),
		// OpenTofu has no actions.
		TerraformVersionChecks: []tfversion.TerraformVersionCheck{tfversion.SkipBelow(version.Must(version.NewVersion("1.16.0")))},
		Steps: []resource.TestStep{
			{Config: s.Config(first...)},
			{Config: s.Config(ephemeral), ExpectError: regexp.MustCompile(`cannot contain\s+ephemeral values`)},
			{Config: s.Config(second...), ExpectError: regexp.MustCompile("Agent job failed")},
			{
				Config: s.Config(second...), PlanOnly: true, ExpectNonEmptyPlan: true,
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: checks},
			},
		},
	})
	got := map[string][]string{}
	for _, job := range s.Jobs() {
		caller, outcome, _ := strings.Cut(job.Prompts[0], ": ")
		got[caller] = append(got[caller], outcome)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("jobs started by each resource, in order (-want +got):\n%s", diff)
	}
}
