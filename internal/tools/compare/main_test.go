// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package main

import (
	"io"
	"os/exec"
	"sync"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// What needs no CLI: cells of curl, where what the service has in the end is counted, not what a run says; and a
// pipeline that ends at once, which must not count as one that was killed.
func TestPlay(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip(err)
	}
	t.Chdir("../../..")
	t.Setenv("AGENT_ADMIN_KEY", "not the simulator's")
	curl := tool{name: "curl", file: "curl.sh", command: []string{"bash", "curl.sh"}}
	broken := tool{name: "broken", file: "curl.sh", command: []string{"false"}}
	stored := tool{name: "stored", file: "stored.sh", command: []string{"bash", "stored.sh"}}
	want := map[string][2]string{ // of curl and stored
		"504, job started":                          {"3", "1, error"}, // curl repeats it, and the next run starts a third
		"runner killed":                             {"2", "1"},
		"the job fails, the pipeline runs again":    {"2", "1, error"},
		"504, job started, then the prompt changes": {"3", "1, error"},
	}
	var cells sync.WaitGroup // all at once, because most of the time they wait
	for _, f := range faults() {
		for i, outcome := range want[f.name] {
			if outcome == "" {
				continue
			}
			cells.Go(func() {
				if got, err := play(t.Context(), []tool{curl, stored}[i], f, io.Discard); got != outcome || err != nil {
					t.Errorf("%s: %s (%v), want %s", f.name, got, err, outcome)
				}
			})
		}
		if got, err := play(t.Context(), broken, f, io.Discard); (err != nil) != (f.signal != 0) || err == nil && got != "0, error" {
			t.Errorf("%s, ends at once: %q, %v", f.name, got, err)
		}
	}
	cells.Wait()
}

func TestDescribe(t *testing.T) {
	jobs := []simulator.Job{{Prompts: []string{"a"}}, {Prompts: []string{"a", "b", "c"}}}
	if got := describe(jobs, true); got != "2+2" {
		t.Errorf("%q: one job got two messages", got)
	}
}
