// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-version"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/tfversion"

	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// The table of the lifecycle guide: what a failed action does to the resource
// that triggers it, and to one that depends on it. The next plan shows both.
func TestAccActionEvents(t *testing.T) {
	const (
		missing  = plancheck.ResourceActionCreate
		old      = plancheck.ResourceActionUpdate
		replaced = plancheck.ResourceActionDestroyBeforeCreate // tainted, or its replacement was stopped
		done     = plancheck.ResourceActionNoop
	)
	tests := []struct {
		event, onFailure    string
		resource, dependent plancheck.ResourceActionType
		destroyed           string // revision that the destroy at the end finds
	}{
		{"before_create", "halt", missing, missing, ""},
		{"before_create", "taint", missing, missing, ""},
		{"before_create", "continue", done, done, ""},
		{"after_create", "halt", done, missing, ""},
		{"after_create", "taint", replaced, missing, ""},
		{"after_create", "continue", done, done, ""},
		{"before_update", "halt", old, old, ""},
		{"before_update", "continue", done, done, ""},
		{"after_update", "halt", done, old, ""},
		{"after_update", "taint", done, old, ""},
		{"after_update", "continue", done, done, ""},
		{"before_destroy", "halt", replaced, old, "1"},
		{"before_destroy", "continue", done, done, "2"},
		{"after_destroy", "halt", missing, old, ""},
		{"after_destroy", "continue", done, done, "2"},
	}
	s := harness.NewService(t, byPrompt)
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
	const next = `
action "agent_start_job" "next" {
  config {
    prompt = "After: ${caller.prompt}"
  }
}
`
	first, second := []string{actions}, []string{actions, next}
	var checks []plancheck.PlanCheck
	want := map[string][]string{}
	for _, test := range tests {
		name, revision := test.event+"_"+test.onFailure, " 2"
		at := func(revision string) string {
			replace := "null"
			if strings.HasSuffix(test.event, "destroy") {
				replace = revision
			}
			return fmt.Sprintf(`
resource "terraform_data" %[1]q {
  input            = "%[1]s %[2]s"
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
`, name, revision, replace, test.event, test.onFailure)
		}
		if !strings.HasSuffix(test.event, "create") {
			first = append(first, at("1"))
		}
		second = append(second, at("2"))
		checks = append(checks,
			plancheck.ExpectResourceAction("terraform_data."+name, test.resource),
			plancheck.ExpectResourceAction("terraform_data."+name+"_dependent", test.dependent))
		if strings.HasSuffix(test.event, "destroy") {
			revision = " 1" // the one that is replaced
		}
		want[name+revision] = append(want[name+revision], "fails")
		if test.onFailure == "continue" {
			want[name+revision] = append(want[name+revision], "succeeds")
		}
		if test.destroyed != "" { // a destroy of everything is never stopped
			want[name+" "+test.destroyed] = append(want[name+" "+test.destroyed], "fails", "succeeds")
		}
	}
	// Terraform 1.16 invokes actions of after_ events even if the create or update
	// has failed. The condition that the guide shows prevents it.
	for prompt, condition := range map[string]string{"Always fails": "true", "Guarded fails": `self.status == "completed"`, "Write": `self.status == "completed"`} {
		second = append(second, fmt.Sprintf(`
resource "agent_job" %q {
  prompt = %q
  lifecycle {
    action_trigger {
      events    = [after_create]
      condition = %s
      actions   = [action.agent_start_job.next]
    }
  }
}
`, strings.ReplaceAll(prompt, " ", "_"), prompt, condition))
		want[prompt] = []string{""}
	}
	want["After"] = []string{"Always fails", "Write"}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: providerFactories(t),
		// OpenTofu has no actions.
		TerraformVersionChecks: []tfversion.TerraformVersionCheck{tfversion.SkipBelow(version.Must(version.NewVersion("1.16.0")))},
		Steps: []resource.TestStep{
			{Config: s.Config(first...), Check: sentCheck(t, s, 0, 0)},
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
	slices.Sort(got["After"])
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("jobs started by each resource, in order (-want +got):\n%s", diff)
	}
}

// A real CLI: an ephemeral prompt_wo reaches the service, and no plan shows it. Events of
// destroys, whose actions must be known to the plan, refuse it.
func TestAccActionPromptWO(t *testing.T) {
	s := harness.NewService(t, nil)
	with := func(event string) string {
		return s.Config(`variable "topic" {
  default   = "confidential"
  ephemeral = true
}
resource "terraform_data" "page" {
  triggers_replace = "` + event + `"
  lifecycle {
    action_trigger {
      events  = [` + event + `]
      actions = [action.agent_start_job.write]
    }
  }
}
action "agent_start_job" "write" {
  config {
    prompt_wo = "Write about ${var.topic}"
  }
}`)
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: providerFactories(t),
		TerraformVersionChecks:   []tfversion.TerraformVersionCheck{tfversion.SkipBelow(version.Must(version.NewVersion("1.16.0")))},
		Steps: []resource.TestStep{
			{Config: with("after_create")},
			{Config: with("before_destroy"), ExpectError: regexp.MustCompile(`cannot contain\s+ephemeral values`)},
			{Config: with("after_update")},
		},
	})
	s.Sent(t, 1, 0)
	if prompt := s.OnlyJob(t).Prompts[0]; prompt != "Write about confidential" {
		t.Errorf("prompt %q", prompt)
	}
}
