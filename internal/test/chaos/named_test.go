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

const removed = "removed {\n  from = agent_job.test\n  lifecycle {\n    destroy = false\n  }\n}\n"

// newNamed is a world whose journal is in a named folder.
func newNamed(t *testing.T, config string) (w *world, folder string) {
	t.Helper()
	w = newWorld(t, simulator.Script{Duration: 300 * time.Millisecond}, config)
	folder = filepath.Join(t.TempDir(), "entries")
	w.env = []string{"AGENT_JOURNAL_URL=" + folder}
	return w, folder
}

// must runs a command that must succeed.
func (w *world) must(args string) (output string) {
	w.t.Helper()
	output, ok := w.run(args)
	if !ok {
		w.t.Fatalf("%s failed:\n%s", args, output)
	}
	return output
}

// noPrompt searches the journal for the prompt and the key.
func (w *world) noPrompt(folder, prompt string) {
	w.t.Helper()
	files := entriesIn(folder)
	if len(files) == 0 {
		w.t.Error("the journal is empty, so the search proves nothing")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, secret := range []string{prompt, canaryKey} {
			if strings.Contains(string(text), secret) {
				w.t.Errorf("%s holds %q", file, secret)
			}
		}
	}
}

// The entries of a clean run stay until a plan sees the state. Red without: Seen
// in Read (with -refresh-only nothing else sees it), Seen in ModifyPlan (without a
// refresh, of a planned destroy too).
func TestX11_a_plan_clears_the_named_folder(t *testing.T) {
	for _, args := range []string{"plan", "plan -refresh=false", "plan -destroy -refresh=false", "plan -refresh-only"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			w, folder := newNamed(t, use("test", "canary-prompt-41b7"))
			w.unsurprised("apply")
			w.noPrompt(folder, "canary-prompt-41b7")
			w.unsurprised(args)
			w.noEntries(folder)
			w.posts(1, 0)
		})
	}
}

// Red without: the entries that stay after a clean run; announceCreate.
func TestX13_named_folder_without_a_plan(t *testing.T) {
	for _, test := range []struct{ name, config, command string }{
		{"state rm", use("test", "write"), "state rm agent_job.test"},
		{"state lost", use("test", "write"), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w, folder := newNamed(t, test.config)
			w.unsurprised("apply")
			id := w.onlyInstance().ID
			if test.command == "" {
				w.loseState()
			} else {
				w.must(test.command)
			}
			output := strings.Join(strings.Fields(w.must("apply")), " ") // unwrapped
			harness.Contains(t, output, id+" of an earlier run will be taken over", "Agent job of an earlier run taken over")
			w.posts(1, 0)
			w.assertEachJobOnce()
			w.unsurprised("plan -detailed-exitcode")
			w.noEntries(folder)
		})
	}
}

// Without a refresh, Terraform plans the replacement of a tainted object as if
// the object did not exist. Red without: UpgradeResourceState of the server: the
// replacement takes over the tainted job, and the plan says so.
func TestX11_tainted_without_refresh_in_the_named_folder(t *testing.T) {
	for name, order := range map[string]string{"destroyed first": "", "created first": "lifecycle { create_before_destroy = true }"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, folder := newNamed(t, use("test", "write", order))
			w.unsurprised("apply")
			w.must("taint agent_job.test")
			w.unsurprised("apply", "-refresh=false")
			w.posts(2, 0)
			w.unsurprised("plan -detailed-exitcode")
			w.noEntries(folder)
		})
	}
}

func (w *world) loseState() {
	w.t.Helper()
	if err := os.Remove(filepath.Join(w.dir, "terraform.tfstate")); err != nil {
		w.t.Fatal(err)
	}
}
