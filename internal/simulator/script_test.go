// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package simulator_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

func TestParsePrompt(t *testing.T) {
	tests := map[string]simulator.Script{
		"Add a quickstart":                   {Duration: 2 * time.Second},
		"a [simulate: 30s] b":                {Duration: 30 * time.Second},
		"[simulate: 1m30s, failed]":          {Duration: 90 * time.Second, Status: "failed"},
		"[simulate:archived,0s]":             {Status: "archived"},
		"[simulate: active ]":                {Duration: 2 * time.Second, Status: "active"},
		"[simulate: completed]":              {Duration: 2 * time.Second, Status: "completed"},
		"[simulate: no-pull-request]":        {Duration: 2 * time.Second, NoPullRequest: true},
		"[simulate: stale=5s]":               {Duration: 2 * time.Second, Stale: 5 * time.Second},
		"[simulate: stale=-5s, -1s, x, , 3]": {Duration: 2 * time.Second},
		"[simulate: 30s":                     {Duration: 2 * time.Second},
		"[simulate: 1s] [simulate: 9s]":      {Duration: time.Second},
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
