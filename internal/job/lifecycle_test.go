// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/go-version"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/compare"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/hashicorp/terraform-plugin-testing/tfversion"

	"github.com/agentjobs/terraform-provider-agent/internal/plugin"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

func TestMain(m *testing.M) {
	if _, err := tfcli.ForTests(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// providerFactories serve the provider to the CLI from the process of the test.
func providerFactories(t *testing.T) map[string]func() (tfprotov6.ProviderServer, error) {
	return map[string]func() (tfprotov6.ProviderServer, error){"agent": func() (tfprotov6.ProviderServer, error) {
		return plugin.NewServer(t.Context(), provider.New("test", provider.Options{})), nil
	}}
}

// A real CLI stores what the fake one stores, and plugin-testing fails after a
// step whose next plan is not empty. The examples of the documentation show
// imports, moves, queries, data sources and actions (internal/tools/demo).
func TestAccPromptChangeSendsOneMessage(t *testing.T) {
	const address = "agent_job.test"
	s := harness.NewService(t, byPrompt)
	config := func(prompt string) string {
		return s.Config(fmt.Sprintf("resource \"agent_job\" \"test\" {\n  name   = \"test\"\n  prompt = %q\n}\n", prompt))
	}
	plans := func(action plancheck.ResourceActionType) resource.ConfigPlanChecks {
		return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, action)}}
	}
	has := func(attribute string, value knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue(address, tfjsonpath.New(attribute), value)
	}
	same := statecheck.CompareValue(compare.ValuesSame())
	// Not parallel with others: the CLI's processes fill the machine as it is.
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: providerFactories(t), Steps: []resource.TestStep{
		{
			Config:      config("fail"),
			ExpectError: regexp.MustCompile(`(?s)Agent job failed.*job_.*tainted.*the.next.apply.sends.nothing`),
		},
		{ // A tainted job that failed is replaced once its prompt has changed.
			Config:           config("Write"),
			ConfigPlanChecks: plans(plancheck.ResourceActionDestroyBeforeCreate),
			ConfigStateChecks: []statecheck.StateCheck{
				same.AddStateValue(address, tfjsonpath.New("id")),
				has("status", knownvalue.StringExact("completed")),
				has("source", knownvalue.ObjectPartial(map[string]knownvalue.Check{"repository": knownvalue.NotNull()})),
				has("messages", knownvalue.Int64Exact(0)),
			},
		},
		{
			Config:           config("Write\r\nmore"),
			ConfigPlanChecks: plans(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{
				same.AddStateValue(address, tfjsonpath.New("id")),
				has("status", knownvalue.StringExact("completed")),
				has("prompt", knownvalue.StringExact("Write\r\nmore")),
				has("messages", knownvalue.Int64Exact(1)),
			},
		},
		{ // The CLI accepts that a plan keeps the line ends of the state.
			Config:           config("Write\nmore"),
			ConfigPlanChecks: plans(plancheck.ResourceActionNoop),
		},
	}})
	s.Sent(t, 2, 1)
}

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
