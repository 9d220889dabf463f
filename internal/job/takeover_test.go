// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// Who can write to the journal does not control the terminal.
//
// Red without: either escape.Printable in takeover.go.
func TestTakeOver_idFromJournalIsEscaped(t *testing.T) {
	s := harness.NewService(t, nil)
	folder := filepath.Join(t.TempDir(), "journal")
	config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": folder}})
	c := fakecli.New(t, config)
	state, private := c.State, c.Private
	job := attrs{"prompt": "A", "wait": attrs{"enabled": false}}
	apply(t, c, "first", config, job)
	entries, _ := filepath.Glob(filepath.Join(folder, "*.json"))
	if len(entries) != 1 {
		t.Fatalf("entries %q, want one", entries)
	}
	text, err := os.ReadFile(entries[0])
	if err == nil {
		err = os.WriteFile(entries[0], bytes.ReplaceAll(text, []byte(`"job":"`), []byte(`"job":"\u001b[31m`)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.State, c.Private = state, private
	got := fakecli.Text(apply(t, c, "second", config, job))
	harness.Contains(t, got, `started job \u001b[31m`)
	if strings.Contains(got, "\x1b") {
		t.Errorf("not escaped: %q", got)
	}
	s.Sent(t, 1, 0)
}

// A message that the service refused shows nothing about an earlier one whose
// state was lost: the journal still has that.
//
// Red without: sendOrTakeOver keeping the entry of a refused message out of the
// private state.
func TestRefusedMessageDoesNotForgetEarlierOne(t *testing.T) {
	t.Parallel() // it sleeps
	s := harness.NewService(t, nil)
	config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": filepath.Join(t.TempDir(), "journal")}})
	c := fakecli.New(t, config)
	run := func(name journal.Run, prompt string) string {
		t.Helper()
		return fakecli.Text(apply(t, c, name, config, attrs{"prompt": prompt, "wait": attrs{"enabled": false}}))
	}
	run("first", "A")
	state, private := c.State, c.Private
	run("second", "B")
	time.Sleep(2100 * time.Millisecond) // C must be later than B by more than the journal's clockError
	c.State, c.Private = state, private
	s.Inject(simulator.Fault{Kind: simulator.KindMessage, Status: 409})
	harness.Contains(t, run("third", "C"), "Failed to send message to agent job")
	s.Sent(t, 1, 2)
	harness.Contains(t, run("fourth", "B"), "taken over", "Message of an earlier run taken over")
	s.Sent(t, 1, 2)
}

// Found by chaos: the effect of a message that was reported as unknown was taken
// for that of the next one, which had not arrived.
func TestUnconfirmedMessageProvesNothingOfTheNext(t *testing.T) {
	s := harness.NewService(t, func(_ string, turn int) simulator.Script {
		return simulator.Script{Duration: []time.Duration{50 * time.Millisecond, time.Hour}[turn]}
	})
	c := fakecli.New(t, s.Attrs())
	c.Run(t.Context(), attrs{"prompt": "write"})
	// A has its effect late, so that it is not seen in time; its answer is lost.
	s.Inject(simulator.Fault{Kind: simulator.KindMessage, Status: 500, AfterEffect: true}, simulator.Fault{Kind: simulator.KindMessage, Status: 500}, storedLate)
	// B does not arrive at all, while the job is active because of A.
	for _, prompt := range []string{"A", "B"} {
		c.Plan(t.Context(), attrs{"prompt": prompt})
		harness.Contains(t, fakecli.Text(c.Apply(t.Context(), attrs{"prompt": prompt})), "Outcome of message to agent job unknown")
	}
	s.Sent(t, 1, 2)
}
