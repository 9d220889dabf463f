// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package main

import (
	"io"
	"os/exec"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// What needs no CLI: two cells of curl, where what the service has in the end is counted, not what a run says; and a
// pipeline that ends at once, which must not count as one that was killed.
func TestPlay(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip(err)
	}
	t.Chdir("../../..")
	t.Setenv("AGENT_ADMIN_KEY", "not the simulator's")
	curl := tool{name: "curl", file: "curl.sh", command: []string{"bash", "curl.sh"}}
	broken := tool{name: "broken", file: "curl.sh", command: []string{"false"}}
	jobs := map[string]string{
		"504, job started": "3", // curl repeats it, and the next run starts a third
		"runner killed":    "2",
	}
	for _, f := range faults() {
		if want, ok := jobs[f.name]; ok {
			if got, err := play(t.Context(), curl, f, io.Discard); got != want || err != nil {
				t.Errorf("%s: %s (%v), want %s", f.name, got, err, want)
			}
		}
		if got, err := play(t.Context(), broken, f, io.Discard); (err != nil) != (f.signal != 0) || err == nil && got != "0, error" {
			t.Errorf("%s, ends at once: %q, %v", f.name, got, err)
		}
	}
}

func TestDescribe(t *testing.T) {
	jobs := []simulator.Job{{Prompts: []string{"a"}}, {Prompts: []string{"a", "b", "c"}}}
	if got := describe(jobs, true); got != "2+2" {
		t.Errorf("%q: one job got two messages", got)
	}
}
