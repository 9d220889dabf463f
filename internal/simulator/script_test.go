// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

func TestParsePrompt(t *testing.T) {
	tests := map[string]simulator.Script{
		"Add a quickstart":            {Duration: 2 * time.Second},
		"a [simulate: 30s] b":         {Duration: 30 * time.Second},
		"[simulate: 1m30s, failed]":   {Duration: 90 * time.Second, Status: "failed"},
		"[simulate:archived,0s]":      {Status: "archived"},
		"[simulate: active ]":         {Duration: 2 * time.Second, Status: "active"},
		"[simulate: completed]":       {Duration: 2 * time.Second, Status: "completed"},
		"[simulate: no-pull-request]": {Duration: 2 * time.Second, NoPullRequest: true},
		"[simulate: stale=5s]":        {Duration: 2 * time.Second, Stale: 5 * time.Second},
	}
	for prompt, want := range tests {
		t.Run(prompt, func(t *testing.T) {
			if diff := cmp.Diff(want, simulator.ParsePrompt("proj", prompt, 0)); diff != "" {
				t.Errorf("script (-want +got):\n%s", diff)
			}
		})
	}
	kept := simulator.Script{Duration: time.Hour, Status: "failed"}.WithDirectives("[simulate: no-pull-request]")
	if diff := cmp.Diff(simulator.Script{Duration: time.Hour, Status: "failed", NoPullRequest: true}, kept); diff != "" {
		t.Errorf("directives on another script (-want +got):\n%s", diff)
	}
}

// A directive with a typo is refused, whatever the script, and nothing happens.
func TestUnknownDirectives(t *testing.T) {
	tests := map[string]string{ // to what the answer says
		"[simulate: 30]":                "the simulator does not know \"30\" in [simulate: …]",
		"[simulate: -1s]":               `does not know "-1s"`,
		"[simulate: stale=-5s]":         `does not know "stale=-5s"`,
		"[simulate: 1s, fail]":          `does not know "fail"`,
		"[simulate: 1s,]":               `does not know ""`,
		"[simulate:]":                   "it takes a duration such as 30s, completed, failed, archived, active, no-pull-request and stale=5s",
		"[simulate: 30s":                "takes one [simulate: …] in a prompt, closed by ]",
		"[simulate: 1s] [simulate: 9s]": "takes one [simulate: …] in a prompt, closed by ]",
	}
	for prompt, want := range tests {
		t.Run(prompt, func(t *testing.T) {
			s := simulator.New(simulator.Options{Limit: &simulator.Limit{Uses: 2, Per: time.Hour}})
			id := createID(t, s, "x")
			for name, got := range map[string]reply{"create": create(t, s, prompt), "message": message(t, s, id, prompt)} {
				text, _ := got.object(t)["error"].(string)
				if got.status != 400 || !strings.Contains(text, want) {
					t.Errorf("%s: %d, %s, want 400, %s", name, got.status, text, want)
				}
			}
			jobs := s.Jobs()
			if diff := cmp.Diff([]string{"x"}, jobs[0].Prompts); diff != "" || len(jobs) != 1 {
				t.Errorf("jobs %+v", jobs)
			}
			if got := message(t, s, id, "y").status; got != 200 {
				t.Errorf("what was refused has used up the limit: %d", got)
			}
			defer func() {
				if err, _ := recover().(error); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("Create panics with %v, want %s", err, want)
				}
			}()
			s.Create("proj", prompt)
		})
	}
}
