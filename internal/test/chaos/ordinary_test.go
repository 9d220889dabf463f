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

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// command is one command of the CLI in the course of ordinary use.
type command struct {
	write    string // the configuration to put in place before; empty: unchanged
	args     string // JOB stands for the id of the service's first job
	creates  int    // that the service has read after it, since the start
	messages int
}

// mode is how ordinary use goes.
type mode struct {
	name    string
	args    []string // of every plan, apply and destroy
	named   bool     // the journal is in a named folder
	planned bool     // a plan comes before every command
}

var (
	inDefault = []mode{
		{name: "default folder"},
		{name: "default folder, no refresh", args: []string{"-refresh=false"}},
	}
	inNamed = []mode{
		{name: "named folder", named: true},
		{name: "named folder, no refresh", named: true, args: []string{"-refresh=false"}},
	}
	// afterPlan is what makes a named folder as unsurprising as the default one.
	afterPlan = []mode{{name: "named folder, after a plan", named: true, planned: true}}
)

// ordinary runs the commands in each mode. A named folder keeps its entries
// until a plan has seen the state; the default one is gone after every command.
func ordinary(t *testing.T, modes []mode, commands ...command) {
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
			for _, c := range commands {
				if m.planned {
					w.unsurprised("plan")
					w.noEntries(folder)
				}
				if c.write != "" {
					w.write(c.write)
				}
				if strings.Contains(c.args, "JOB") {
					c.args = strings.ReplaceAll(c.args, "JOB", w.sim.Jobs()[0].ID)
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
		words = slices.Insert(words, 1, more...)
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
			{use("test", "write", "count = 3"), "apply -target=agent_job.test[1]", 2, 0},
			{"", "apply -target=agent_job.test[2]", 3, 0},
		}},
		{"two workspaces", []command{
			{use("test", "write"), "apply", 1, 0},
			{"", "workspace new other", 1, 0},
			{"", "apply", 2, 0},
			{"", "workspace select default", 2, 0},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			ordinary(t, everywhere, test.commands...)
		})
	}
}
