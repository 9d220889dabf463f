// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-version"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// setup is how ordinary use goes.
type setup struct {
	store store
	plan  string // comes before every command; empty: none
	args  string // of every plan, apply and destroy
}

const noRefresh = "-refresh=false"

var (
	inDefault = []setup{{store: defaultFolder}, {store: defaultFolder, args: noRefresh}}
	inNamed   = []setup{{store: namedFolder}, {store: namedFolder, args: noRefresh}}
	// afterPlan removes from the journal what the state shows.
	// Red without: Seen in Read (with -refresh-only nothing else sees the state), Seen in
	// ModifyPlan (without a refresh, of a planned destroy too).
	afterPlan = []setup{
		{store: namedFolder, plan: "plan"},
		{store: namedFolder, plan: "plan " + noRefresh},
		{store: namedFolder, plan: "plan -destroy " + noRefresh},
		{store: namedFolder, plan: "plan -refresh-only"},
	}
)

// command is one command of the CLI in the course of ordinary use.
type command struct {
	write    string // the configuration to put in place before; empty: unchanged
	args     string // in both, JOB stands for the id of the service's first job
	creates  int    // that the service has read after it, since the start
	messages int
}

// otherAlias is a second provider process of a run.
const otherAlias = `
provider "agent" {
  alias = "other"
  poll {
    min_interval = "50ms"
    max_interval = "200ms"
  }
}
`

const createAndUpdate = `
run "create" {}
run "update" {
  variables {
    prompt = "write more"
  }
}
`

// Exactly the jobs and messages that the configuration asks for. A journal keeps its
// entries until a plan or a test has read the state.
//
// Red without: pruneJournal in Read and ModifyPlan; Destroyed; the run in ofOthers.
// UpgradeResourceState of the server: without a refresh, Terraform plans the
// replacement of a tainted object as if the object did not exist, and forgets one
// without reading it.
func TestOrdinaryUse(t *testing.T) {
	t.Parallel()
	const (
		moved    = "moved {\n  from = agent_job.test\n  to   = agent_job.new\n}\n"
		imported = "import {\n  to = agent_job.test\n  id = \"" + project + "/JOB\"\n}\n"
		removed  = "removed {\n  from = agent_job.test\n  lifecycle {\n    destroy = false\n  }\n}\n"
		variable = "variable \"n\" {\n  default = 1\n}\n"
		tested   = "variable \"prompt\" {\n  default = \"write\"\n}\nresource \"agent_job\" \"test\" {\n  prompt = var.prompt\n}\n"
	)
	plain, first := use("test", "write"), use("test", "write", "lifecycle { create_before_destroy = true }")
	week := func(n string) string { return use("test", "write", `triggers = { week = "`+n+`" }`) }
	instances := func(n string) string { return use("test", "write", "count = "+n) }
	aliases := otherAlias + use("one", "write") + use("two", "write", "provider = agent.other", "count = var.n")
	inTurn := otherAlias + use("one", "write") + use("two", "write", "provider = agent.other", "depends_on = [agent_job.one]")
	replacing := func(config string) []command {
		return []command{{config, "apply", 1, 0}, {"", "apply -replace=agent_job.test", 2, 0}, {"", "taint agent_job.test", 2, 0}, {"", "apply", 3, 0}}
	}
	anyWay, plainly := slices.Concat(inDefault, afterPlan), slices.Concat(inDefault[:1], afterPlan[:1])
	type cell struct {
		name     string
		setup    setup
		commands []command
	}
	var cells []cell
	for _, c := range []struct {
		name     string
		setups   []setup
		commands []command
	}{
		{"X11_replace_and_taint", slices.Concat(anyWay, inNamed), replacing(plain)},
		{"X11_replace_and_taint_prompt_wo", inNamed, replacing(strings.Replace(first, "prompt", "prompt_wo", 1))},
		{"X11_replace_and_taint_created_before_destroyed", slices.Concat(inNamed, anyWay), replacing(first)},
		{"X11_changed_triggers", anyWay, []command{
			{week("1"), "apply", 1, 0}, {week("2"), "apply", 2, 0}, {week("1"), "apply", 3, 0},
		}},
		{"X11_destroy_and_apply_and_two_workspaces", afterPlan, []command{
			{plain, "apply", 1, 0}, {"", "destroy", 1, 0}, {"", "apply", 2, 0},
			{"", "workspace new other", 2, 0}, {"", "apply", 3, 0}, {"", "workspace select default", 3, 0},
		}},
		{"X11_more_instances_and_one_forgotten", afterPlan, []command{
			{instances("1"), "apply", 1, 0}, {instances("2"), "apply -target=agent_job.test[1]", 2, 0}, {instances("4"), "apply", 4, 0},
			{"", "state rm agent_job.test[1]", 4, 0}, {"", "apply", 5, 0},
		}},
		{"X11_moved_and_imported", plainly, []command{
			{plain, "apply", 1, 0}, {use("new", "write") + moved, "apply", 1, 0},
			{"", "state rm agent_job.new", 1, 0}, {plain, "import agent_job.test " + project + "/JOB", 1, 0}, {"", "apply", 1, 0},
			{"", "state rm agent_job.test", 1, 0}, {plain + imported + use("new", "write"), "apply", 2, 0},
		}},
		{"X11_saved_plans", plainly, []command{
			{plain, "plan -out=saved", 0, 0}, {"", "apply saved", 1, 0},
			{use("test", "write more"), "plan -out=saved", 1, 0}, {"", "apply saved", 1, 1},
			{"", "plan -destroy -out=saved", 1, 1}, {"", "apply saved", 1, 1}, {"", "apply", 2, 1},
		}},
		// A later change of one of them is named to the other, which does not see its state.
		{"X11_two_aliases_at_once", plainly, []command{{aliases + variable, "apply", 2, 0}}},
		{"X11_two_aliases_in_turn", plainly, []command{{inTurn, "apply", 2, 0}}},
		// The run blocks have their own state: they start, change and destroy their own
		// job, beside the one of the configuration's state.
		{"X11_terraform_test", []setup{inDefault[0], inNamed[0]}, []command{
			{tested, "apply", 1, 0}, {"", "plan -detailed-exitcode", 1, 0}, {"", "test -no-color", 2, 1}, {"", "test -no-color", 3, 2},
		}},
		{"X13_removed_block", afterPlan[:1], []command{
			{plain, "apply", 1, 0}, {"", "apply", 1, 0}, {removed, "apply", 1, 0}, {plain, "apply", 2, 0},
		}},
	} {
		for _, s := range c.setups {
			cells = append(cells, cell{c.name, s, c.commands})
		}
	}
	for _, c := range everyNth(t, 11, inMakeChaos, cells) {
		t.Run(fmt.Sprint(c.name, c.setup), func(t *testing.T) {
			if strings.Contains(c.name, "prompt_wo") {
				needsWriteOnly(t)
			}
			t.Parallel()
			w := newWorkingDir(t, quick, "")
			w.keepJournal(c.setup.store)
			w.ordinary(c.setup, c.commands)
		})
	}
}

func (w *workingDir) ordinary(s setup, commands []command) {
	w.t.Helper()
	w.args = s.args
	// A slow response, so that requests at once are pending at once.
	w.sim.Inject(simulator.Fault{Kind: simulator.KindCreate, Times: -1, Delay: 300 * time.Millisecond})
	w.writeFile("main.tftest.hcl", createAndUpdate)
	for i, c := range commands {
		if s.plan != "" && i > 0 {
			w.runQuietly(s.plan)
			w.assertJournalEmpty()
		}
		if jobs := w.sim.Jobs(); len(jobs) > 0 {
			c.write = strings.ReplaceAll(c.write, "JOB", jobs[0].ID)
			c.args = strings.ReplaceAll(c.args, "JOB", jobs[0].ID)
		}
		if c.write != "" {
			w.write(c.write)
		}
		w.runQuietly(c.args)
		w.posts(c.creates, c.messages)
		if word, _, _ := strings.Cut(c.args, " "); word == "plan" || word == "test" {
			w.assertJournalEmpty()
		}
		if i == 0 && c.creates > 0 && len(w.entries()) == 0 {
			w.t.Error("the journal is empty, so the search for prompt and key proves nothing")
		}
	}
	w.runQuietly("plan -detailed-exitcode") // fails unless there is nothing to do
	w.assertJournalEmpty()
}

// needsWriteOnly skips a test on a CLI without write-only and ephemeral values.
func needsWriteOnly(t *testing.T) {
	t.Helper()
	if cli.Version.LessThan(version.Must(version.NewVersion("1.11.0"))) {
		t.Skipf("needs 1.11 or later, this is %s", cli)
	}
}
