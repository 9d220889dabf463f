// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"slices"
	"strings"
	"testing"
)

// A misspelt setting costs a job if the CLI ignores it, as it does inside attributes.
func TestAccMisspeltSettings(t *testing.T) {
	t.Parallel()
	for place, test := range map[string]struct {
		least  string            // version of Terraform, if not every CLI will do
		blocks map[string]string // a name that does not exist in each block
		config string            // BLOCK is the block
	}{
		"provider": {"", map[string]string{"poll": "min_intervall", "journal": "ulr"}, "provider \"agent\" {\n BLOCK\n}\nresource \"agent_job\" \"this\" {\n prompt = \"Write\"\n}\n"},
		"resource": {"", map[string]string{"wait": "on_failur", "timeouts": "creat"}, "resource \"agent_job\" \"this\" {\n prompt = \"Write\"\n BLOCK\n}\n"},
		"start_job": {
			"1.14.0", map[string]string{"wait": "enable", "timeouts": "invok"},
			"action \"agent_start_job\" \"this\" {\n config {\n prompt = \"Write\"\n BLOCK\n }\n}\n",
		},
		"send_message": {
			"1.14.0", map[string]string{"wait": "onfailure", "timeouts": "create"},
			"action \"agent_send_message\" \"this\" {\n config {\n job_id = \"job_1\"\n prompt = \"Write\"\n BLOCK\n }\n}\n",
		},
	} {
		for block, name := range test.blocks {
			t.Run(place+" "+block, func(t *testing.T) {
				t.Parallel()
				s := start(t, 0)
				if test.least != "" {
					needs(t, test.least, "-")
				}
				required, _, _ := strings.Cut(setup(t), "provider ")
				for _, setting := range []string{block + " {\n " + name + " = null\n }", block + "s {\n }"} {
					s.write("main.tf", required+strings.ReplaceAll(test.config, "BLOCK", setting))
					shown, ok := s.try("validate")
					if misspelt := `named "` + name + `" is not expected`; ok || !strings.Contains(shown, misspelt) && !strings.Contains(shown, `type "`+block+`s" are not expected`) {
						t.Errorf("%s\nvalid: %t\n%s", setting, ok, shown)
					}
				}
			})
		}
	}
}

// What a configuration can do with the blocks of a resource.
func TestAccBlocks(t *testing.T) {
	t.Parallel()
	s := start(t, 0)
	s.write("main.tf", setup(t)+`
variable "failure" {
  default = "warn"
}

resource "terraform_data" "late" { # not known before it is applied
  input = [var.failure]
}

resource "agent_job" "unknown" {
  prompt = "Write unknown [simulate: 0s, failed]"

  wait {
    on_failure = terraform_data.late.output[0]
  }
}

resource "agent_job" "unknown_block" {
  prompt = "Write unknown_block [simulate: 0s, failed]"

  dynamic "wait" {
    for_each = terraform_data.late.output
    content {
      on_failure = wait.value
    }
  }
}

resource "agent_job" "ignored" {
  prompt = "Write ignored [simulate: 0s, failed]"

  wait {
    on_failure = var.failure
  }
  timeouts {
    create = var.failure == "warn" ? "1m" : "2m"
  }
  lifecycle {
    ignore_changes = [wait, timeouts]
  }
}
`)
	s.apply()
	var names []string
	for _, job := range s.service.Jobs() {
		names = append(names, strings.Fields(job.Prompts[0])[1])
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "ignored unknown unknown_block" {
		t.Errorf("jobs: %s", got)
	}
	s.env = append(s.env, "TF_VAR_failure=error")
	if shown := s.call("plan"); !strings.Contains(shown, "agent_job.unknown will be updated in-place") || strings.Contains(shown, "agent_job.ignored will be") {
		t.Errorf("plan after the blocks have changed:\n%s", shown)
	}
}
