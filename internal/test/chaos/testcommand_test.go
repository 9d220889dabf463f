// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
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

// writeTest puts a file for the command test in place.
func (w *world) writeTest(text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, "main.tftest.hcl"), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// The run blocks have their own state: they start, change and destroy their own
// job, beside the one of the configuration's state. Red without: the removal at
// the end (default folder), Seen and Forget (named folder).
func TestX11_terraform_test(t *testing.T) {
	needsVersion(t, "1.6.0")
	for _, named := range []bool{false, true} {
		t.Run(map[bool]string{false: "default folder", true: "named folder, after a plan"}[named], func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, simulator.Script{Duration: 300 * time.Millisecond}, withVariable)
			folder := filepath.Join(w.dir, ".terraform", "agent")
			if named {
				w, folder = newNamed(t, withVariable)
			}
			w.writeTest(createAndUpdate)
			w.unsurprised("apply")
			w.unsurprised("plan -detailed-exitcode")
			w.noEntries(folder)
			for i := range 2 {
				w.unsurprised("test -no-color")
				w.posts(2+i, 1+i)
				w.noEntries(folder)
			}
			w.unsurprised("plan -detailed-exitcode")
		})
	}
}

// Red without: TookOver.
func TestX13_terraform_test_sends_nothing_to_a_job_taken_over(t *testing.T) {
	needsVersion(t, "1.6.0")
	t.Parallel()
	w, _ := newNamed(t, withVariable)
	w.unsurprised("apply")
	id := w.onlyInstance().ID
	w.loseState()
	w.writeTest(createAndUpdate)
	output, ok := w.run("test -no-color")
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
	w, folder := newNamed(t, use("test", "write"))
	w.unsurprised("apply")
	w.loseState()
	w.write(triggering)
	harness.Contains(t, w.must("apply"), "Agent job of an earlier run taken over")
	w.posts(1, 1)
	w.assertEachJobOnce()
	w.unsurprised("plan -detailed-exitcode")
	w.noEntries(folder)
}
