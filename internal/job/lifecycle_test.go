// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/compare"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

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
