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

// runActions runs the steps on Terraform since 1.16; it skips others and says
// why. OpenTofu has no actions.
func runActions(t *testing.T, steps ...resource.TestStep) {
	t.Helper()
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: harness.ProviderFactories(),
		TerraformVersionChecks:   []tfversion.TerraformVersionCheck{tfversion.SkipBelow(version.Must(version.NewVersion("1.16.0")))},
		Steps:                    steps,
	})
}

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
	config := func(revision string) string {
		resources := []string{`
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
`}
		for _, test := range tests {
			if revision == "1" && strings.HasSuffix(test.event, "create") {
				continue
			}
			name, replace := test.event+"_"+test.onFailure, "null"
			if strings.HasSuffix(test.event, "destroy") {
				replace = revision
			}
			resources = append(resources, fmt.Sprintf(`
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
`, name, revision, replace, test.event, test.onFailure))
		}
		return s.Config(resources...)
	}

	var checks []plancheck.PlanCheck
	want := map[string][]string{}
	for _, test := range tests {
		name := test.event + "_" + test.onFailure
		checks = append(checks,
			plancheck.ExpectResourceAction("terraform_data."+name, test.resource),
			plancheck.ExpectResourceAction("terraform_data."+name+"_dependent", test.dependent))
		revision := " 2"
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
	runActions(t,
		resource.TestStep{Config: config("1"), Check: s.SentCheck(t, 0, 0)},
		resource.TestStep{Config: config("2"), ExpectError: regexp.MustCompile("Agent job failed")},
		resource.TestStep{
			Config: config("2"), PlanOnly: true, ExpectNonEmptyPlan: true,
			ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: checks},
		},
	)
	got := map[string][]string{}
	for _, job := range s.Jobs() {
		caller, outcome, _ := strings.Cut(job.Prompts[0], ": ")
		got[caller] = append(got[caller], outcome)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("jobs started by each resource, in order (-want +got):\n%s", diff)
	}
}

// Terraform 1.16 invokes actions of after_ events even if the create or update
// has failed. The condition that the guide shows prevents it.
func TestAccActionAfterFailedJob(t *testing.T) {
	s := harness.NewService(t, byPrompt)
	job := func(name, prompt, condition string) string {
		return fmt.Sprintf(`
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
`, name, prompt, condition)
	}
	const completed = `self.status == "completed"`
	runActions(t, resource.TestStep{
		Config: s.Config(job("always", "Always fails", "true"), job("guarded", "Guarded fails", completed),
			job("completed", "Write", completed), `
action "agent_start_job" "next" {
  config {
    prompt = "After: ${caller.prompt}"
  }
}
`),
		ExpectError: regexp.MustCompile("Agent job failed"),
	})
	var got []string
	for _, job := range s.Jobs() {
		got = append(got, job.Prompts...)
	}
	slices.Sort(got)
	want := []string{"After: Always fails", "After: Write", "Always fails", "Guarded fails", "Write"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("prompts (-want +got):\n%s", diff)
	}
}
