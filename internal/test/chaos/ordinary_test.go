// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"fmt"
	"path/filepath"
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
	name    string
	args    []string // of every plan, apply and destroy
	named   bool     // the journal is in a named folder
	planned bool     // a plan comes before every command
}

var (
	inDefault = []setup{
		{name: "default folder"},
		{name: "default folder, no refresh", args: []string{"-refresh=false"}},
	}
	inNamed = []setup{
		{name: "named folder", named: true},
		{name: "named folder, no refresh", named: true, args: []string{"-refresh=false"}},
	}
	// afterPlan is what makes a named folder as unsurprising as the default one.
	afterPlan = []setup{{name: "named folder, after a plan", named: true, planned: true}}
)

// ordinary runs the commands in each mode. A named folder keeps its entries
// until a plan has seen the state; the default one is gone after every command.
func ordinary(t *testing.T, modes []setup, commands ...command) {
	t.Helper()
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, simulator.Script{Duration: 300 * time.Millisecond}, "")
			folder := filepath.Join(w.dir, ".terraform", "agent")
			if m.named {
				folder = filepath.Join(t.TempDir(), "entries")
				w.env = []string{"AGENT_JOURNAL_URL=" + folder}
			}
			for i, c := range commands {
				if m.planned && i > 0 {
					w.unsurprised("plan")
					w.noEntries(folder)
				}
				if jobs := w.sim.Jobs(); len(jobs) > 0 {
					c.write = strings.ReplaceAll(c.write, "JOB", jobs[0].ID)
					c.args = strings.ReplaceAll(c.args, "JOB", jobs[0].ID)
				}
				if c.write != "" {
					w.write(c.write)
				}
				w.unsurprised(c.args, m.args...)
				w.posts(c.creates, c.messages)
				if !m.named {
					w.noEntries(folder)
				}
			}
			w.unsurprised("plan -detailed-exitcode", m.args...) // fails unless there is nothing to do
			w.noEntries(folder)
		})
	}
}

// run runs a command of the CLI.
func (w *world) run(args string, more ...string) (output string, ok bool) {
	w.t.Helper()
	words := strings.Fields(args)
	switch words[0] {
	case "apply", "destroy":
		words = slices.Insert(words, 1, "-auto-approve", "-no-color", "-input=false")
		if !strings.HasSuffix(args, " saved") { // a saved plan has its own mode
			words = slices.Insert(words, 1, more...)
		}
	case "plan":
		words = slices.Insert(words, 1, "-no-color", "-input=false")
		words = slices.Insert(words, 1, more...)
	}
	p := w.start(words...)
	output = p.wait()
	return output, p.ok()
}

// unsurprised runs a command that must succeed and say nothing of the journal.
func (w *world) unsurprised(args string, more ...string) {
	w.t.Helper()
	output, ok := w.run(args, more...)
	if !ok {
		w.t.Fatalf("%s failed:\n%s", args, output)
	}
	for _, surprise := range []string{"taken over", "earlier run", "earlier request", "Journal", "journal"} {
		if strings.Contains(output, surprise) {
			w.t.Errorf("%s says %q:\n%s", args, surprise, output)
		}
	}
}

// entriesIn lists the entries of a journal's folder, and the locks of those who write there.
func entriesIn(folder string) []string {
	files, _ := filepath.Glob(filepath.Join(folder, "*"))
	return files
}

func (w *world) noEntries(folder string) {
	w.t.Helper()
	if left := entriesIn(folder); len(left) > 0 {
		w.t.Errorf("the journal holds %v", left)
	}
}

func needsVersion(t *testing.T, least string) {
	t.Helper()
	if cli.Version.LessThan(version.Must(version.NewVersion(least))) {
		t.Skipf("needs %s or later, this is %s", least, cli)
	}
}

// use is a configuration of agent_job.NAME with more arguments.
func use(name, prompt string, arguments ...string) string {
	return fmt.Sprintf("resource \"agent_job\" %q {\n  prompt = %q\n  %s\n}\n", name, prompt, strings.Join(arguments, "\n  "))
}

// Red without: the removal of answered entries when the process ends (default
// folder), Seen in Read and ModifyPlan (named folder).
func TestX11_a_new_job_each_time(t *testing.T) {
	const replaceFirst = "lifecycle { create_before_destroy = true }"
	everywhere := slices.Concat(inDefault, afterPlan)
	for _, test := range []struct {
		name     string
		commands []command
	}{
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
		{"two workspaces", []command{
			{use("test", "write"), "apply", 1, 0},
			{"", "workspace new other", 1, 0},
			{"", "apply", 2, 0},
			{"", "workspace select default", 2, 0},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ordinary(t, everywhere, test.commands...)
		})
	}
}

// What keeps its job sends nothing.
func TestX11_the_same_job(t *testing.T) {
	needsVersion(t, "1.5.0") // import blocks
	everywhere := slices.Concat(inDefault[:1], afterPlan)
	imported := use("test", "write") + "import {\n  to = agent_job.test\n  id = \"" + project + "/JOB\"\n}\n"
	for _, test := range []struct {
		name     string
		commands []command
	}{
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
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ordinary(t, everywhere, test.commands...)
		})
	}
}

// Red without: the removal at the end in each of the two processes.
func TestX11_two_aliases(t *testing.T) {
	const alias = `
provider "agent" {
  alias = "other"
  poll  = { min_interval = "50ms", max_interval = "200ms" }
}
`
	both := alias + use("one", "write") + use("two", "write", "provider = agent.other", "count = var.n")
	ordinary(t, slices.Concat(inDefault[:1], afterPlan),
		command{both + "variable \"n\" {\n  default = 1\n}\n", "apply", 2, 0},
		command{"", "apply -replace=agent_job.two[0]", 3, 0},
		command{both + "variable \"n\" {\n  default = 2\n}\n", "apply", 4, 0},
	)
}

// Red without: Seen, which removes earlier messages to the job (named folder),
// and the removal at the end (default folder).
func TestX12_A_B_A_B(t *testing.T) {
	ordinary(t, slices.Concat(inDefault, inNamed),
		command{use("test", "A"), "apply", 1, 0},
		command{use("test", "B"), "apply", 1, 1},
		command{use("test", "A"), "apply", 1, 2},
		command{use("test", "B"), "apply", 1, 3},
	)
}

// Planning to forget a job shows the state, so a removed block needs no other plan.
// Red without: the removal at the end (default folder), Seen in Read and ModifyPlan
// (named folder), UpgradeResourceState of the server (removed, named folder).
func TestX13_forgotten_by_the_state(t *testing.T) {
	needsVersion(t, "1.7.0") // removed blocks
	everywhere := slices.Concat(inDefault, afterPlan)
	t.Run("state rm", func(t *testing.T) {
		t.Parallel()
		ordinary(t, everywhere,
			command{use("test", "write"), "apply", 1, 0},
			command{"", "state rm agent_job.test", 1, 0},
			command{"", "apply", 2, 0},
		)
	})
	t.Run("removed", func(t *testing.T) {
		t.Parallel()
		ordinary(t, slices.Concat(inDefault[:1], inNamed),
			command{use("test", "write"), "apply", 1, 0},
			command{removed, "apply", 1, 0},
			command{use("test", "write"), "apply", 2, 0},
		)
	})
}
