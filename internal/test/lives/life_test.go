// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !race

package lives

import "testing"

// TestLife plays lives that have shown a bug, as their shortest form was printed.
func TestLife(t *testing.T) {
	t.Setenv("TF_DATA_DIR", "")
	for name, l := range map[string]life{
		"an accepted message was sent again as a new job":               {named, []turn{{}, {config: config{Prompt: "B"}, Goes: failed, Killed: true}, {config: config{Prompt: "B"}}}},
		"an unknown message was sent again as a new job":                {named, []turn{{Goes: outlasts}, {config: config{Prompt: "B"}, Post: lost, Goes: failed}, {config: config{Prompt: "B"}}}},
		"a job that failed later was replaced":                          {named, []turn{{Goes: outlasts}, {Meanwhile: failed}}},
		"a destroy forgot a message":                                    {named, []turn{{}, {config: config{Prompt: "B"}, Killed: true}, {Does: replace, Killed: true}, {config: config{Prompt: "B"}}}},
		"no plan named the job of a killed -replace":                    {named, []turn{{}, {Does: replace, Killed: true}, {}}},
		"an unrelated import unblocked an unknown create":               {named, []turn{{Post: notArrived}, {Does: importJob}, {}, {Does: refresh}, {Does: stateRm}, {}}},
		"the default folder forgot when a run ended":                    {byDefault, []turn{{}, {Does: stateRm}, {}}},
		"ignore_changes and a move to prompt_wo counted as two prompts": {named, []turn{{Goes: outlasts}, {config: config{WriteOnly: true}, Ignored: true}}},
		"a repetition was taken for the message before a message that was taken over": {named, []turn{
			{}, {config: config{Prompt: "B"}, Killed: true}, {config: config{Prompt: "C"}, Goes: archived, Killed: true}, {config: config{Prompt: "C"}}, {config: config{Prompt: "B"}},
		}},
		"a message was sent again after an earlier one was taken over": {named, []turn{
			{}, {config: config{Prompt: "C"}, Killed: true}, {config: config{Prompt: "B"}, Killed: true}, {config: config{Prompt: "C"}}, {config: config{Prompt: "B"}},
		}},
		"no plan named the job of a killed -replace with a new prompt": {named, []turn{{}, {config: config{Prompt: "B"}, Does: replace, Killed: true}, {config: config{Prompt: "B"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if b := playLife(t, l, map[string]int{}); b != nil {
				t.Error(b.report(l))
			}
		})
	}
}
