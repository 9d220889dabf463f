// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// What a command says of earlier runs. Only with -json does a CLI show each of
// several warnings that have the same summary.
const (
	createAnnounced  = "Agent job of an earlier run will be taken over"
	messageAnnounced = "Message of an earlier run will be taken over"
	createTakenOver  = "Agent job of an earlier run taken over"
	messageTakenOver = "Message of an earlier run found"
	createUnknown    = "Outcome of an earlier create unknown"
	messageUnknown   = "Outcome of message to agent job unknown"
)

// details are those of the diagnostics that have one of the summaries.
func details(output string, summaries ...string) (found []string) {
	for line := range strings.Lines(output) {
		var message struct {
			Diagnostic struct{ Summary, Detail string }
		}
		if json.Unmarshal([]byte(line), &message) == nil && slices.Contains(summaries, message.Diagnostic.Summary) {
			found = append(found, message.Diagnostic.Detail)
		}
	}
	return found
}

func count(output string, summaries ...string) int { return len(details(output, summaries...)) }

// planned runs a plan that shows each diagnostic.
func (w *world) planned() (output string, ok bool) {
	w.t.Helper()
	p := w.start("plan", "-json", "-input=false")
	output = p.wait()
	return output, p.ok()
}

// appliedJSON runs an apply that shows each diagnostic.
func (w *world) appliedJSON() (output string, ok bool) {
	w.t.Helper()
	p := w.startApply("-json")
	output = p.wait()
	return output, p.ok()
}

// sent is how many POSTs the service has read.
func (w *world) sent() int {
	counts := w.sim.Counts()
	return counts.Create + counts.Message
}

// putBack brings back a state from before; wiped, it comes to a new disk, where
// only the configuration is.
func (w *world) putBack(state []byte, wiped bool) {
	w.t.Helper()
	if w.remote != nil {
		w.t.Fatal("the backend has kept the state")
	}
	if wiped {
		config, err := os.ReadFile(filepath.Join(w.dir, "main.tf"))
		if err != nil {
			w.t.Fatal(err)
		}
		w.dir = w.t.TempDir()
		if err := os.WriteFile(filepath.Join(w.dir, "main.tf"), config, 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	path := filepath.Join(w.dir, "terraform.tfstate")
	_ = os.Remove(path + ".backup")
	var err error
	if len(state) == 0 {
		err = os.RemoveAll(path)
	} else {
		err = os.WriteFile(path, state, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}
