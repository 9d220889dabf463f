// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/agentjobs/terraform-provider-agent/internal/plugin"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

const jobAddress = "agent_job.test"

// expectAction asserts what the plan does to the job.
func expectAction(action plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(jobAddress, action)}}
}

// expectAttr asserts an attribute of the job in the state.
func expectAttr(name string, check knownvalue.Check) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(jobAddress, tfjsonpath.New(name), check)
}

// providerFactories serve the provider to the CLI from the process of the test.
func providerFactories(t *testing.T) map[string]func() (tfprotov6.ProviderServer, error) {
	return map[string]func() (tfprotov6.ProviderServer, error){
		"agent": func() (tfprotov6.ProviderServer, error) {
			return plugin.NewServer(t.Context(), provider.New("test", provider.Options{})), nil
		},
	}
}

// runSteps runs the steps against one service. Not parallel with others: the CLI's
// processes fill the machine as it is.
func runSteps(t *testing.T, steps ...resource.TestStep) {
	t.Helper()
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: providerFactories(t), Steps: steps})
}

// jobConfig is agent_job.test with a prompt and more arguments, one a line.
func jobConfig(prompt string, arguments ...string) string {
	return fmt.Sprintf("resource \"agent_job\" \"test\" {\n  prompt = %q\n  %s\n}\n", prompt, strings.Join(arguments, "\n  "))
}

// sentCheck is Sent as a check of a step.
func sentCheck(t *testing.T, s *harness.Service, creates, messages int) resource.TestCheckFunc {
	return func(*terraform.State) error {
		s.Sent(t, creates, messages)
		return nil
	}
}
