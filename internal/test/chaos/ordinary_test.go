// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// command is one command of the CLI in the course of ordinary use.
type command struct {
	write    string // the configuration to put in place before; empty: unchanged
	args     string
	creates  int // that the service has read after it, since the start
	messages int
	adopts   bool // the command says that it adopts a job
}

const createAndUpdate = `
run "create" {}
run "update" {
  variables {
    prompt = "write more"
  }
}
`

// Exactly the jobs and messages that the configuration asks for, and not a word of the journal.
//
// Red without: each condition of Delete in internal/job/resource.go.
// UpgradeResourceState of the server: without a refresh, Terraform plans the
// replacement of a tainted object as if the object did not exist, and forgets one
// without reading it.
func TestOrdinaryUse(t *testing.T) {
	t.Parallel()
	const (
		removed = "removed {\n  from = agent_job.test\n  lifecycle {\n    destroy = false\n  }\n}\n"
		tested  = "variable \"prompt\" {\n  default = \"write\"\n}\n" +
			"resource \"agent_job\" \"test\" {\n  name   = \"test\"\n  prompt = var.prompt\n}\n"
	)
	const noRefresh = "-refresh=false"
	plain := use("test", "write")
	// With one prompt, -target would name test[0].
	instances := func(n string) string { return use("test", "write ${count.index}", "count = "+n) }
	for i, test := range []struct {
		name     string
		args     string // of every plan, apply and destroy
		commands []command
	}{
		{"X11_replace_and_taint", noRefresh, []command{
			{write: plain, args: "apply", creates: 1}, {args: "apply -replace=agent_job.test", creates: 2},
			{args: "taint agent_job.test", creates: 2}, {args: "apply", creates: 2},
		}},
		{"X11_destroy_and_apply_and_two_workspaces", noRefresh, []command{
			{write: plain, args: "apply", creates: 1}, {args: "destroy", creates: 1}, {args: "apply", creates: 2},
			{args: "workspace new other", creates: 2}, {args: "apply", creates: 3}, {args: "workspace select default", creates: 3},
		}},
		{"X11_more_instances_and_one_forgotten", "", []command{
			{write: instances("1"), args: "apply", creates: 1}, {write: instances("2"), args: "apply -target=agent_job.test[1]", creates: 2},
			{write: instances("4"), args: "apply", creates: 4},
			{args: "state rm agent_job.test[1]", creates: 4}, {args: "apply", creates: 4, adopts: true},
		}},
		{"X13_removed_block", noRefresh, []command{
			{write: plain, args: "apply", creates: 1}, {args: "apply", creates: 1}, {write: removed, args: "apply", creates: 1},
			{write: plain, args: "apply", creates: 1, adopts: true},
		}},
		// The run blocks have their own state: they start, change and destroy their own
		// job, beside the one of the configuration's state.
		{"X11_terraform_test", "", []command{
			{write: tested, args: "apply", creates: 1}, {args: "plan -detailed-exitcode", creates: 1},
			{args: "test -no-color", creates: 2, messages: 1}, {args: "test -no-color", creates: 3, messages: 2},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if i%3 > 0 && os.Getenv("EXPLORE") == "" {
				t.Skip("only in CI (EXPLORE=more)")
			}
			t.Parallel()
			w := newWorkingDir(t, "")
			w.args = test.args
			w.ordinary(test.commands)
		})
	}
}

// ordinary plays the commands. None says a word of the journal, unless it adopts.
func (w *workingDir) ordinary(commands []command) {
	w.t.Helper()
	// A slow response, so that requests at once are pending at once.
	w.sim.Inject(simulator.Fault{Kind: simulator.KindCreate, Times: -1, Delay: 300 * time.Millisecond})
	w.writeFile("main.tftest.hcl", createAndUpdate)
	done := command{args: "plan -detailed-exitcode"} // fails unless there is nothing to do
	done.creates, done.messages = commands[len(commands)-1].creates, commands[len(commands)-1].messages
	for _, c := range append(commands, done) {
		if c.write != "" {
			w.write(c.write)
		}
		output := w.run(c.args)
		said := regexp.MustCompile("Agent job adopted|adopt|earlier run|ournal").FindString(output)
		if said != map[bool]string{true: "Agent job adopted"}[c.adopts] {
			w.t.Errorf("%s says %q", c.args, said)
		}
		if got := w.sim.Counts(); got.Create != c.creates || got.Message != c.messages {
			w.t.Errorf("after %s the service has read %+v, want %d creates and %d messages", c.args, got, c.creates, c.messages)
		}
	}
}
