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

// Two cells that need no CLI: what the service has in the end is counted, not what a run says.
func TestPlay_curl(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip(err)
	}
	t.Chdir("../../..")
	t.Setenv("AGENT_ADMIN_KEY", "not the simulator's")
	script := tool{name: "curl", file: "curl.sh", command: []string{"bash", "curl.sh"}}
	for name, want := range map[string]string{
		"504, job started": "3", // curl repeats it, and the next run starts a third
		"runner killed":    "2",
	} {
		for _, f := range faults() {
			if f.name != name {
				continue
			}
			got, err := play(t.Context(), script, f, io.Discard)
			if got != want || err != nil {
				t.Errorf("%s: %s (%v), want %s", name, got, err, want)
			}
		}
	}
}

// A pipeline that is never killed must not count as one that was.
func TestPlay_endsBeforeTheSignal(t *testing.T) {
	t.Chdir("../../..")
	broken := tool{name: "broken", file: "curl.sh", command: []string{"false"}}
	for _, f := range faults() {
		if outcome, err := play(t.Context(), broken, f, io.Discard); (err != nil) != (f.signal != 0) || err == nil && outcome != "0, error" {
			t.Errorf("%s: %q, %v", f.name, outcome, err)
		}
	}
}

func TestDescribe(t *testing.T) {
	one, two := simulator.Job{Prompts: []string{"a"}}, simulator.Job{Prompts: []string{"a", "b", "c"}}
	for want, test := range map[string]struct {
		jobs []simulator.Job
		ok   bool
	}{
		"0, error": {nil, false},
		"1":        {[]simulator.Job{one}, true},
		"2+2":      {[]simulator.Job{one, two}, true},
	} {
		if got := describe(test.jobs, test.ok); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
