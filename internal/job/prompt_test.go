// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// Neither comparing jobs nor a table of hashes reveals the prompt behind a hash.
func TestPromptWO_hashIsSalted(t *testing.T) {
	s := harness.NewService(t, nil)
	hashes := map[string]bool{}
	for range 2 {
		c := fakecli.New(t, s.Attrs())
		c.Run(t.Context(), attrs{"prompt_wo": "A"})
		_, hash, found := strings.Cut(string(c.Private), `"prompt"`)
		if hashes[hash] = true; !found {
			t.Errorf("no hash in the private state: %s", c.Private)
		}
	}
	if len(hashes) != 2 {
		t.Errorf("equal prompts have equal hashes: %v", hashes)
	}
}

// An ephemeral value may be another one in the apply than in the plan. What the plan has
// left to notice it does not stay in the state.
//
// Red without: plans, the look at planned in Update, either reset of it.
func TestPromptWO_differsFromPlan(t *testing.T) {
	const warning = "WARNING: Prompt differs from the plan"
	for name, test := range map[string]struct {
		plan, apply attrs
		warns       bool
		sent        int
	}{
		"same":                         {attrs{"prompt_wo": "B"}, attrs{"prompt_wo": "B"}, false, 1},
		"another":                      {attrs{"prompt_wo": "B"}, attrs{"prompt_wo": "C"}, true, 1},
		"the old one":                  {attrs{"prompt_wo": "B"}, attrs{"prompt_wo": "A"}, false, 0},
		"another, and none in plan":    {attrs{"prompt_wo": "A", "timeouts": attrs{"update": "5m"}}, attrs{"prompt_wo": "C", "timeouts": attrs{"update": "5m"}}, true, 1},
		"plan does not know it":        {attrs{"prompt_wo": fakecli.Unknown{}}, attrs{"prompt_wo": "C"}, false, 1},
		"of a prompt that is in plans": {attrs{"prompt": "B"}, attrs{"prompt": "B"}, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := harness.NewService(t, nil)
			c := fakecli.New(t, s.Attrs())
			c.Run(t.Context(), attrs{"prompt_wo": "A"})
			c.Plan(t.Context(), test.plan)
			if got := fakecli.Text(c.Apply(t.Context(), test.apply)); strings.Contains(got, warning) != test.warns {
				t.Errorf("want a warning %t: %s", test.warns, got)
			}
			s.Sent(t, 1, test.sent)
			if strings.Contains(string(c.Private), "planned") {
				t.Errorf("the plan's hash is in the state: %s", c.Private)
			}
			c.Plan(t.Context(), test.apply)
			if got := fakecli.Text(c.Apply(t.Context(), test.apply)); got != "" {
				t.Errorf("the next apply: %s", got)
			}
		})
	}
}

// A real CLI: the prompt from a template and an ephemeral value, known while
// planning and not.
func TestAccPromptWO(t *testing.T) {
	s := harness.NewService(t, nil)
	with := func(topic, arguments string) string {
		return s.Config(`variable "language" {
  default   = "the language"
  ephemeral = true
}
resource "terraform_data" "topic" {
  input = "` + topic + `"
}
resource "agent_job" "test" {
  prompt_wo = templatefile("testdata/prompt.tftpl", { topic = "${var.language} ${terraform_data.topic.output}" })
  ` + arguments + `
}`)
	}
	runSteps(t,
		resource.TestStep{
			Config:           with("Python", ""),
			ConfigPlanChecks: expectAction(plancheck.ResourceActionCreate),
			ConfigStateChecks: []statecheck.StateCheck{
				expectAttr("prompt", knownvalue.Null()), expectAttr("prompt_wo", knownvalue.Null()),
			},
		},
		resource.TestStep{Config: with("Go", ""), ConfigPlanChecks: expectAction(plancheck.ResourceActionUpdate)},
		resource.TestStep{Config: with("Rust", "lifecycle { ignore_changes = [prompt_wo] }")},
	)
	s.Sent(t, 1, 1)
	if diff := cmp.Diff([]string{"Write about the language Python.\n", "Write about the language Go.\n"}, s.OnlyJob(t).Prompts); diff != "" {
		t.Errorf("prompts (-want +got):\n%s", diff)
	}
}
