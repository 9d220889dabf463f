// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

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

// Red without: the entries that stay after a clean run; announce; TookOver.
// Red when agent_send_message is refused as an update is: a message that follows a
// takeover is what the configuration asks for.
func TestX13_named_folder_without_a_plan(t *testing.T) {
	loseState := func(w *workingDir) { w.putBack(nil, false) }
	const takenOver = "Agent job of an earlier run taken over"
	for _, test := range []struct {
		name     string
		needs    func(*testing.T)
		lose     func(*workingDir)
		config   string
		command  string
		says     []string // JOB stands for the id
		fails    bool
		messages int
	}{
		{"state rm", nil, func(w *workingDir) { w.run("state rm agent_job.test") }, withVariable, "apply", []string{"An earlier run started job JOB with this prompt", takenOver}, false, 0},
		{"state lost", nil, loseState, withVariable, "apply", []string{"An earlier run started job JOB with this prompt", takenOver}, false, 0},
		{"terraform test sends nothing to a job taken over", func(t *testing.T) { needsVersion(t, "1.6.0") }, loseState, withVariable, "test -no-color", []string{
			takenOver, "JOB", "Failed to send message to agent job", "This run took the job over from an earlier one", `run "update"... fail`,
		}, true, 0},
		{"action after a takeover", needsActions, loseState, triggering, "apply", []string{takenOver}, false, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.needs != nil {
				test.needs(t)
			}
			t.Parallel()
			w := newWorkingDir(t, quick, withVariable)
			w.keepJournal(namedFolder)
			w.runQuietly("apply")
			id := w.onlyInstance().ID
			test.lose(w)
			w.writeFile("main.tftest.hcl", createAndUpdate)
			w.write(test.config)
			output, ok := w.try(test.command)
			for _, says := range test.says {
				harness.Contains(t, strings.Join(strings.Fields(output), " "), strings.ReplaceAll(says, "JOB", id)) // unwrapped
			}
			w.posts(1, test.messages)
			if ok == test.fails {
				t.Errorf("success: %t\n%s", ok, output)
			}
			if !test.fails {
				w.assertEachJobOnce()
				w.runQuietly("plan -detailed-exitcode")
				w.assertJournalEmpty()
			}
		})
	}
}
