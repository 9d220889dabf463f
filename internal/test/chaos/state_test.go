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

// instance is a job in the state file.
type instance struct {
	ID, Status string
	Tainted    bool
}

// stateText is the state as it is stored; empty: there is none.
func (w *workingDir) stateText() []byte {
	if w.remote != nil {
		return w.remote.read()
	}
	text, _ := os.ReadFile(filepath.Join(w.dir, "terraform.tfstate"))
	return text
}

// stateTorn reports whether the CLI was ended in a write of its state. Until the
// first job is created, it is empty.
func (w *workingDir) stateTorn(hasJobs bool) bool {
	text := w.stateText()
	return !json.Valid(text) && (hasJobs || len(text) > 0)
}

// state returns the instances in the state; without one there are none.
func (w *workingDir) state() []instance {
	w.t.Helper()
	text := w.stateText()
	if len(text) == 0 {
		return nil
	}
	var file struct {
		Resources []struct {
			Instances []struct {
				Status     string
				Attributes struct{ ID, Status string }
			}
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		w.t.Fatal(err)
	}
	var all []instance
	for _, r := range file.Resources {
		for _, i := range r.Instances {
			all = append(all, instance{i.Attributes.ID, i.Attributes.Status, i.Status == "tainted"})
		}
	}
	return all
}

// onlyInstance is the one job in the state: kept, untainted.
func (w *workingDir) onlyInstance() instance {
	w.t.Helper()
	all := w.state()
	if len(all) != 1 || all[0].ID == "" || all[0].Tainted {
		w.t.Fatalf("the state holds %+v, want one untainted job", all)
	}
	return all[0]
}

// assertKept asserts that the state holds all three jobs, active and untainted,
// and that the output names them.
func (w *workingDir) assertKept(output string) {
	w.t.Helper()
	kept := w.state()
	for _, i := range kept {
		if i.Status != "active" || i.Tainted || !strings.Contains(output, i.ID) {
			w.t.Errorf("the state holds %+v, want it active, untainted and in the output", i)
		}
	}
	if len(kept) != 3 {
		w.t.Errorf("the state holds %d jobs, want 3", len(kept))
	}
}

// sent is how many POSTs the service has read.
func (w *workingDir) sent() int {
	counts := w.sim.Counts()
	return counts.Create + counts.Message
}

// posts asserts how many POSTs the service has read.
func (w *workingDir) posts(creates, messages int) {
	w.t.Helper()
	if got := w.sim.Counts(); got.Create != creates || got.Message != messages {
		w.t.Errorf("the service read %d creates and %d messages, want %d and %d", got.Create, got.Message, creates, messages)
	}
}

// assertEachJobOnce asserts that all jobs of the service are in the state, each once.
func (w *workingDir) assertEachJobOnce() {
	w.t.Helper()
	seen := map[string]int{}
	for _, i := range w.state() {
		seen[i.ID]++
		if i.Tainted {
			w.t.Errorf("%s is tainted", i.ID)
		}
	}
	for _, j := range w.sim.Jobs() {
		if seen[j.ID] != 1 {
			w.t.Errorf("job %s is in the state %d times", j.ID, seen[j.ID])
		}
		delete(seen, j.ID)
	}
	if len(seen) > 0 {
		w.t.Errorf("in the state, unknown to the service: %v", seen)
	}
	w.assertNothingToDo()
}

// putBack brings back a state from before; wiped, it comes to a new disk, where
// only the configuration is.
func (w *workingDir) putBack(state []byte, wiped bool) {
	w.t.Helper()
	if wiped {
		config, err := os.ReadFile(filepath.Join(w.dir, "main.tf"))
		if err != nil {
			w.t.Fatal(err)
		}
		w.dir = w.t.TempDir()
		w.writeFile("main.tf", string(config))
	}
	path := filepath.Join(w.dir, "terraform.tfstate")
	_ = os.Remove(path + ".backup")
	if len(state) > 0 {
		w.writeFile("terraform.tfstate", string(state))
	} else if err := os.RemoveAll(path); err != nil {
		w.t.Fatal(err)
	}
}

// What a command says of earlier runs. Only with -json does a CLI show each of
// several warnings that have the same summary.
const (
	createAnnounced  = "Agent job of an earlier run will be taken over"
	messageAnnounced = "Message of an earlier run will be taken over"
	unknownAnnounced = "Outcome of an earlier request unknown"
	createTakenOver  = "Agent job of an earlier run taken over"
	messageTakenOver = "Message of an earlier run taken over"
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
