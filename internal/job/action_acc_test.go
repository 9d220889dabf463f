// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-version"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/tfversion"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// runActions runs the steps on Terraform since that version; it skips others
// and says why. OpenTofu has no actions.
func runActions(t *testing.T, since string, steps ...resource.TestStep) {
	t.Helper()
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: harness.ProviderFactories(),
		TerraformVersionChecks:   []tfversion.TerraformVersionCheck{tfversion.SkipBelow(version.Must(version.NewVersion(since)))},
		Steps:                    steps,
	})
}

// triggered is a configuration in which a change of the revision runs an action.
func triggered(s *harness.Service, revision, action string) string {
	return s.Config(`
resource "terraform_data" "spec" {
  input = "`+revision+`"
  lifecycle {
    action_trigger {
      events  = [after_create, after_update]
      actions = [`+action+`]
    }
  }
}
`, `
action "agent_start_job" "refresh" {
  config {
    prompt = "refresh ${terraform_data.spec.output}"
  }
}
`, harness.JobConfig("Write"), `
action "agent_send_message" "tell" {
  config {
    id     = agent_job.test.id
    prompt = "look at ${terraform_data.spec.output}"
  }
}
`)
}

func TestAccActionTriggers(t *testing.T) {
	for action, last := range map[string][][]string{
		"action.agent_start_job.refresh": {{"Write"}, {"refresh 1"}, {"refresh 2"}},
		"action.agent_send_message.tell": {{"Write", "look at 1", "look at 2"}},
	} {
		t.Run(action, func(t *testing.T) {
			s := harness.NewService(t, nil)
			// The first message is for a job of the same apply.
			runActions(t, "1.14.0", resource.TestStep{Config: triggered(s, "1", action)},
				resource.TestStep{Config: triggered(s, "2", action)}, harness.ExpectNoChange(triggered(s, "2", action)))
			var got [][]string
			for _, job := range s.Jobs() {
				got = append(got, job.Prompts)
			}
			if len(got) == 3 && got[0][0] != "Write" { // nothing orders the job and the first trigger
				got[0], got[1] = got[1], got[0]
			}
			if diff := cmp.Diff(last, got); diff != "" {
				t.Errorf("prompts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAccActionA03JobFailsAndTaintsNothing(t *testing.T) {
	s := harness.NewService(t, func(prompt string, _ int) simulator.Script {
		script := simulator.Script{Duration: 100 * time.Millisecond}
		if prompt != "Write" {
			script.Status = "failed"
		}
		return script
	})
	config := triggered(s, "1", "action.agent_start_job.refresh")
	runActions(t, "1.14.0",
		resource.TestStep{Config: config, ExpectError: regexp.MustCompile(`(?s)Agent job failed.*job_`)},
		// Neither what had triggered the action nor the job beside it is tainted.
		harness.ExpectNoChange(config),
	)
	if got := s.Counts().Create; got != 2 {
		t.Errorf("%d creates, want the job's and the action's", got)
	}
}
