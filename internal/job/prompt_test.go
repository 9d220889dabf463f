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
	harness.Run(t,
		resource.TestStep{
			Config:           with("Python", ""),
			ConfigPlanChecks: harness.ExpectAction(plancheck.ResourceActionCreate),
			ConfigStateChecks: []statecheck.StateCheck{
				harness.ExpectAttr("prompt", knownvalue.Null()), harness.ExpectAttr("prompt_wo", knownvalue.Null()),
			},
		},
		resource.TestStep{Config: with("Go", ""), ConfigPlanChecks: harness.ExpectAction(plancheck.ResourceActionUpdate)},
		resource.TestStep{Config: with("Rust", "lifecycle { ignore_changes = [prompt_wo] }")},
	)
	s.Sent(t, 1, 1)
	if diff := cmp.Diff([]string{"Write about the language Python.\n", "Write about the language Go.\n"}, s.OnlyJob(t).Prompts); diff != "" {
		t.Errorf("prompts (-want +got):\n%s", diff)
	}
}
