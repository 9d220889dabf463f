// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// instance is a job in the state file.
type instance struct {
	ID, Status string
	Tainted    bool
}

const stateFile = "terraform.tfstate"

// stateText is the state as it is stored; empty: there is none.
func (w *workingDir) stateText() []byte {
	text, _ := os.ReadFile(filepath.Join(w.dir, stateFile))
	return text
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

// What a command says of earlier runs. Only with -json does a CLI show each of
// several warnings that have the same summary.
const (
	createAdopted  = "Agent job adopted"
	messageFound   = "Message of an earlier run counts as sent"
	createUnknown  = "Outcome of agent job create unknown"
	messageUnknown = "Outcome of message to agent job unknown"
)

// details are those of the diagnostics in the output of "-json" that have one of the summaries. A plan warns of an unknown create, and
// its apply fails with the same summary: only that counts.
func details(output string, summaries ...string) (found []string) {
	for line := range strings.Lines(output) {
		var message struct {
			Diagnostic struct{ Severity, Summary, Detail string }
		}
		d := &message.Diagnostic
		if json.Unmarshal([]byte(line), &message) == nil && slices.Contains(summaries, d.Summary) && (d.Summary != createUnknown || d.Severity == "error") {
			found = append(found, d.Detail)
		}
	}
	return found
}

func count(output string, summaries ...string) int { return len(details(output, summaries...)) }

// forget decides about the unknown creates that an apply has reported: the next
// commands send them again.
func (w *workingDir) forget(output string) {
	w.t.Helper()
	var ids []string
	for _, detail := range details(output, createUnknown) {
		ids = append(ids, regexp.MustCompile(`AGENT_JOURNAL_FORGET=(\w+)`).FindStringSubmatch(detail)[1])
	}
	w.env = append(w.env, "AGENT_JOURNAL_FORGET="+strings.Join(ids, ","))
}
