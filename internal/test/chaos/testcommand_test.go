// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

const (
	withVariable = "variable \"prompt\" {\n  default = \"write\"\n}\nresource \"agent_job\" \"test\" {\n  prompt = var.prompt\n}\n"

	createAndUpdate = `
run "create" {}
run "update" {
  variables {
    prompt = "write more"
  }
}
`
)

// The run blocks have their own state: they start, change and destroy their own
// job, beside the one of the configuration's state. Red without: the removal at
// the end (default folder), Seen and Forget (named folder).
func TestX11_terraform_test(t *testing.T) {
	needsVersion(t, "1.6.0")
	for _, s := range everyNth(t, envRounds, 2, []store{namedFolder, defaultFolder}) {
		t.Run(string(s), func(t *testing.T) {
			t.Parallel()
			w := newWorkingDir(t, quick, withVariable)
			w.keepJournal(s)
			w.writeFile("main.tftest.hcl", createAndUpdate)
			w.runQuietly("apply")
			w.runQuietly("plan -detailed-exitcode")
			w.assertJournalEmpty()
			for i := range 2 {
				w.runQuietly("test -no-color")
				w.posts(2+i, 1+i)
				w.assertJournalEmpty()
			}
			w.runQuietly("plan -detailed-exitcode")
		})
	}
}

// Red without: TookOver.
func TestX13_terraform_test_sends_nothing_to_a_job_taken_over(t *testing.T) {
	needsVersion(t, "1.6.0")
	t.Parallel()
	w := newNamed(t, withVariable)
	w.runQuietly("apply")
	id := w.onlyInstance().ID
	w.putBack(nil, false)
	w.writeFile("main.tftest.hcl", createAndUpdate)
	output, ok := w.try("test -no-color")
	if ok {
		t.Errorf("the update succeeds:\n%s", output)
	}
	unwrapped := strings.Join(strings.Fields(output), " ")
	harness.Contains(t, unwrapped, "Agent job of an earlier run taken over", id, "Failed to send message to agent job",
		"This run took the job over from an earlier one", `run "update"... fail`)
	w.posts(1, 0)
}

// A message that follows a takeover is what the configuration asks for. Red
// when agent_send_message is refused as an update is.
func TestX13_action_after_a_takeover(t *testing.T) {
	needsActions(t)
	t.Parallel()
	const triggering = `
resource "agent_job" "test" {
  prompt = "write"
  lifecycle {
    action_trigger {
      events  = [after_create]
      actions = [action.agent_send_message.more]
    }
  }
}
action "agent_send_message" "more" {
  config {
    id     = agent_job.test.id
    prompt = "write more"
  }
}
`
	w := newNamed(t, use("test", "write"))
	w.runQuietly("apply")
	w.putBack(nil, false)
	w.write(triggering)
	harness.Contains(t, w.run("apply"), "Agent job of an earlier run taken over")
	w.posts(1, 1)
	w.assertEachJobOnce()
	w.runQuietly("plan -detailed-exitcode")
	w.assertJournalEmpty()
}
