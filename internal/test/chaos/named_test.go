// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// newNamed is a working directory whose journal is in a named folder.
func newNamed(t *testing.T, config string) *workingDir {
	t.Helper()
	w := newWorkingDir(t, quick, config)
	w.keepJournal(namedFolder)
	return w
}

// The entries of a clean run stay until a plan sees the state. Red without: Seen
// in Read (with -refresh-only nothing else sees it), Seen in ModifyPlan (without a
// refresh, of a planned destroy too).
func TestX11_a_plan_clears_the_named_folder(t *testing.T) {
	commands := []string{"plan", "plan -refresh=false", "plan -destroy -refresh=false", "plan -refresh-only"}
	for _, args := range everyNth(t, envRounds, 3, commands) {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			w := newNamed(t, oneJob)
			w.runQuietly("apply")
			if len(w.entries()) == 0 {
				t.Error("the journal is empty, so the search for prompt and key proves nothing")
			}
			w.runQuietly(args)
			w.assertJournalEmpty()
			w.posts(1, 0)
		})
	}
}

// Red without: the entries that stay after a clean run; announce.
func TestX13_named_folder_without_a_plan(t *testing.T) {
	for name, lose := range map[string]func(*workingDir){
		"state rm":   func(w *workingDir) { w.run("state rm agent_job.test") },
		"state lost": func(w *workingDir) { w.putBack(nil, false) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newNamed(t, use("test", "write"))
			w.runQuietly("apply")
			id := w.onlyInstance().ID
			lose(w)
			output := strings.Join(strings.Fields(w.run("apply")), " ") // unwrapped
			harness.Contains(t, output, id+" of an earlier run will be taken over", "Agent job of an earlier run taken over")
			w.posts(1, 0)
			w.assertEachJobOnce()
			w.runQuietly("plan -detailed-exitcode")
			w.assertJournalEmpty()
		})
	}
}

// Without a refresh, Terraform plans the replacement of a tainted object as if
// the object did not exist. Red without: UpgradeResourceState of the server: the
// replacement takes over the tainted job, and the plan says so.
func TestX11_tainted_without_refresh_in_the_named_folder(t *testing.T) {
	first, plain := "lifecycle { create_before_destroy = true }", use("test", "write")
	created := use("test", "write", first)
	for _, config := range everyNth(t, envRounds, 2, []string{created, plain, strings.Replace(created, "prompt", "prompt_wo", 1)}) {
		t.Run(config, func(t *testing.T) {
			t.Parallel()
			w := newNamed(t, config)
			w.runQuietly("apply")
			w.run("taint agent_job.test")
			w.runQuietly("apply", "-refresh=false")
			w.posts(2, 0)
			w.runQuietly("plan -detailed-exitcode")
			w.assertJournalEmpty()
		})
	}
}
