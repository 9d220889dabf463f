// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-version"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// command is one command of the CLI in the course of ordinary use.
type command struct {
	write    string // the configuration to put in place before; empty: unchanged
	args     string // in both, JOB stands for the id of the service's first job
	creates  int    // that the service has read after it, since the start
	messages int
}

// setup is how ordinary use goes.
type setup struct {
	name  string
	args  []string // of every plan, apply and destroy
	store store
	plan  string // comes before every command; empty: none
}

var (
	inDefault = []setup{
		{name: "default folder", store: defaultFolder},
		{name: "default folder, no refresh", store: defaultFolder, args: []string{"-refresh=false"}},
	}
	inNamed = []setup{
		{name: "named folder", store: namedFolder},
		{name: "named folder, no refresh", store: namedFolder, args: []string{"-refresh=false"}},
	}
	// afterPlan is what makes a named folder as unsurprising as the default one.
	// Red without: Seen in Read (with -refresh-only nothing else sees the state), Seen in
	// ModifyPlan (without a refresh, of a planned destroy too).
	afterPlan = []setup{
		{name: "named folder, after a plan", store: namedFolder, plan: "plan"},
		{name: "named folder, after a plan without refresh", store: namedFolder, plan: "plan -refresh=false"},
		{name: "named folder, after a plan to destroy", store: namedFolder, plan: "plan -destroy -refresh=false"},
		{name: "named folder, after a plan to refresh", store: namedFolder, plan: "plan -refresh-only"},
	}
)

// useCase is a part of ordinary use.
type useCase struct {
	name     string
	commands []command
}

// ordinary runs every nth combination of setups and use cases. A named folder
// keeps its entries until a plan or a test has seen the state; the default one is
// empty after every command.
func ordinary(t *testing.T, nth int, setups []setup, useCases ...useCase) {
	t.Helper()
	t.Parallel()
	type cell struct {
		useCase
		setup setup
	}
	var cells []cell
	for _, c := range useCases {
		for _, s := range setups {
			cells = append(cells, cell{c, s})
		}
	}
	for _, c := range everyNth(t, envRounds, nth, cells) {
		t.Run(c.name+", "+c.setup.name, func(t *testing.T) {
			t.Parallel()
			w := newWorkingDir(t, quick, "")
			w.keepJournal(c.setup.store)
			w.ordinary(c.setup, c.commands)
		})
	}
}

func (w *workingDir) ordinary(s setup, commands []command) {
	w.t.Helper()
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
		w.runQuietly(c.args, s.args...)
		w.posts(c.creates, c.messages)
		if word, _, _ := strings.Cut(c.args, " "); s.store == defaultFolder || word == "plan" || word == "test" {
			w.assertJournalEmpty()
		}
		if i == 0 && s.store == namedFolder && c.creates > 0 && len(w.entries()) == 0 {
			w.t.Error("the journal is empty, so the search for prompt and key proves nothing")
		}
	}
	w.runQuietly("plan -detailed-exitcode", s.args...) // fails unless there is nothing to do
	w.assertJournalEmpty()
}

func needsVersion(t *testing.T, least string) {
	t.Helper()
	if cli.Version.LessThan(version.Must(version.NewVersion(least))) {
		t.Skipf("needs %s or later, this is %s", least, cli)
	}
}

// Red without: the removal of answered entries when the process ends (default
// folder), Seen in Read and ModifyPlan (named folder).
func TestX11_a_new_job_each_time(t *testing.T) {
	const replaceFirst = "lifecycle { create_before_destroy = true }"
	ordinary(t, 11, slices.Concat(inDefault, afterPlan), []useCase{
		{"replace", []command{
			{use("test", "write"), "apply", 1, 0},
			{"", "apply -replace=agent_job.test", 2, 0},
		}},
		{"taint", []command{
			{use("test", "write"), "apply", 1, 0},
			{"", "taint agent_job.test", 1, 0},
			{"", "apply", 2, 0},
		}},
		{"taint, created before destroyed", []command{
			{use("test", "write", replaceFirst), "apply", 1, 0},
			{"", "taint agent_job.test", 1, 0},
			{"", "apply", 2, 0},
		}},
		{"changed triggers", []command{
			{use("test", "write", `triggers = { week = "1" }`), "apply", 1, 0},
			{use("test", "write", `triggers = { week = "2" }`), "apply", 2, 0},
			{use("test", "write", `triggers = { week = "1" }`), "apply", 3, 0},
		}},
		{"destroy and apply", []command{
			{use("test", "write"), "apply", 1, 0},
			{"", "destroy", 1, 0},
			{"", "apply", 2, 0},
		}},
		{"more instances", []command{
			{use("test", "write", "count = 1"), "apply", 1, 0},
			{use("test", "write", "count = 3"), "apply", 3, 0},
		}},
		{"more instances, one by one", []command{
			{use("test", "write", "count = 1"), "apply", 1, 0},
			{use("test", "write", "count = 2"), "apply -target=agent_job.test[1]", 2, 0},
			{use("test", "write", "count = 3"), "apply -target=agent_job.test[2]", 3, 0},
		}},
		{"equal prompts under count, one of them forgotten", []command{
			{use("test", "write", "count = 3"), "apply", 3, 0},
			{"", "state rm agent_job.test[1]", 3, 0},
			{"", "apply", 4, 0},
		}},
		{"two workspaces", []command{
			{use("test", "write"), "apply", 1, 0},
			{"", "workspace new other", 1, 0},
			{"", "apply", 2, 0},
			{"", "workspace select default", 2, 0},
		}},
	}...)
}

// What keeps its job sends nothing.
func TestX11_the_same_job(t *testing.T) {
	needsVersion(t, "1.5.0") // import blocks
	imported := use("test", "write") + "import {\n  to = agent_job.test\n  id = \"" + project + "/JOB\"\n}\n"
	ordinary(t, 5, slices.Concat(inDefault[:1], afterPlan[:1]), []useCase{
		{"moved", []command{
			{use("test", "write"), "apply", 1, 0},
			{use("new", "write") + "moved {\n  from = agent_job.test\n  to   = agent_job.new\n}\n", "apply", 1, 0},
		}},
		{"import command", []command{
			{use("test", "write"), "apply", 1, 0},
			{"", "state rm agent_job.test", 1, 0},
			{"", "import agent_job.test " + project + "/JOB", 1, 0},
			{"", "apply", 1, 0},
		}},
		{"import block, beside a new job with an equal prompt", []command{
			{use("test", "write"), "apply", 1, 0},
			{"", "state rm agent_job.test", 1, 0},
			{imported + use("new", "write"), "apply", 2, 0},
		}},
		{"saved plans", []command{
			{use("test", "write"), "plan -out=saved", 0, 0},
			{"", "apply saved", 1, 0},
			{use("test", "write more"), "plan -out=saved", 1, 0},
			{"", "apply saved", 1, 1},
			{"", "plan -destroy -out=saved", 1, 1},
			{"", "apply saved", 1, 1},
			{"", "apply", 2, 1},
		}},
	}...)
}

// otherAlias is a second provider process of a run.
const otherAlias = `
provider "agent" {
  alias = "other"
  poll  = { min_interval = "50ms", max_interval = "200ms" }
}
`

// Red without: the removal at the end in each of the two processes; the owner
// compared in wanted.
func TestX11_two_aliases(t *testing.T) {
	both := otherAlias + use("one", "write") + use("two", "write", "provider = agent.other", "count = var.n")
	ordinary(t, 2, slices.Concat(inDefault[:1], afterPlan[:1]), useCase{"at once", []command{
		{both + "variable \"n\" {\n  default = 1\n}\n", "apply", 2, 0},
		{"", "apply -replace=agent_job.two[0]", 3, 0},
		{both + "variable \"n\" {\n  default = 2\n}\n", "apply", 4, 0},
	}}, useCase{"in turn", []command{
		{otherAlias + use("one", "write") + use("two", "write", "provider = agent.other", "depends_on = [agent_job.one]"), "apply", 2, 0},
	}})
}

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
	ordinary(t, 1, []setup{inNamed[0], inDefault[0]}, useCase{"test", []command{
		{withVariable, "apply", 1, 0},
		{"", "plan -detailed-exitcode", 1, 0},
		{"", "test -no-color", 2, 1},
		{"", "test -no-color", 3, 2},
	}})
}

// Without a refresh, Terraform plans the replacement of a tainted object as if
// the object did not exist. Red without: UpgradeResourceState of the server: the
// replacement takes over the tainted job, and the plan says so.
func TestX11_tainted_without_refresh_in_the_named_folder(t *testing.T) {
	plain := use("test", "write")
	replaced := use("test", "write", "lifecycle { create_before_destroy = true }")
	var useCases []useCase
	for _, config := range []string{replaced, plain, strings.Replace(replaced, "prompt", "prompt_wo", 1)} {
		useCases = append(useCases, useCase{config, []command{
			{config, "apply", 1, 0},
			{"", "taint agent_job.test", 1, 0},
			{"", "apply", 2, 0},
		}})
	}
	ordinary(t, 2, inNamed[1:], useCases...)
}

// Planning to forget a job shows the state, so a removed block needs no other plan.
// Red without: the removal at the end (default folder), Seen in Read and ModifyPlan
// and UpgradeResourceState of the server (named folder).
func TestX13_forgotten_by_the_state(t *testing.T) {
	needsVersion(t, "1.7.0")
	const removed = "removed {\n  from = agent_job.test\n  lifecycle {\n    destroy = false\n  }\n}\n"
	ordinary(t, 2, slices.Concat(inNamed, inDefault[:1]), useCase{"removed", []command{
		{use("test", "write"), "apply", 1, 0},
		{removed, "apply", 1, 0},
		{use("test", "write"), "apply", 2, 0},
	}})
}
