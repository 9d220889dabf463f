// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package lives

import (
	"slices"
	"strings"
	"testing"
)

// breaches are the known differences between model and provider. TestBreaches asserts that
// each still occurs: whoever fixes one deletes its row. A random life ends where a row
// excuses it.
var breaches = []struct {
	name    string
	life    life // its last turn shows the breach
	excuses func(b *breach) bool
}{
	{
		"F2: an accepted message is sent again as a new job",
		life{named, []turn{{}, {config: config{Prompt: "B"}, Goes: failed, Killed: true}, {config: config{Prompt: "B"}}}},
		func(b *breach) bool {
			return b.expected.want == message && b.expected.left != nil && b.observed.replaces
		},
	},
	{
		"F3: an unknown message is sent again as a new job",
		life{named, []turn{{Goes: outlasts}, {config: config{Prompt: "B"}, Post: lost, Goes: failed}, {config: config{Prompt: "B"}}}},
		func(b *breach) bool { return failedLater(b) && b.state.unconfirmed },
	},
	{
		"a job that failed later is replaced",
		life{named, []turn{{Goes: outlasts}, {Meanwhile: failed}}},
		failedLater,
	},
	{
		"F4: a destroy forgets a message",
		life{named, []turn{{}, {config: config{Prompt: "B"}, Killed: true}, {Does: replace, Killed: true}, {config: config{Prompt: "B"}}}},
		func(b *breach) bool { return b.expected.left != nil && b.expected.left.destroyed },
	},
	{
		"F6: no plan names the job of a killed -replace",
		life{named, []turn{{}, {Does: replace, Killed: true}, {}}},
		func(b *breach) bool {
			return (b.expected.want != newJob || b.Does == replace) && slices.Equal(slices.Compact(b.wrong), []string{notNamed})
		},
	},
	{
		"F8: an unrelated import unblocks an unknown create",
		life{named, []turn{{Post: notArrived}, {Does: importJob}, {}, {Does: refresh}, {Does: stateRm}, {}}},
		func(b *breach) bool { return b.expected.left != nil && b.expected.left.imported },
	},
	{
		"the default folder forgets when a run ends",
		life{byDefault, []turn{{}, {Does: stateRm}, {}}},
		func(b *breach) bool {
			return b.journal == byDefault && slices.ContainsFunc(b.expected.lost, func(r *request) bool { return r.clean })
		},
	},
	{
		"L1: an unknown prompt_wo for a closed job is an inconsistent final plan",
		life{named, []turn{{}, {Meanwhile: archived, config: config{Prompt: "B", WriteOnly: true}, Unknown: true}}},
		func(b *breach) bool {
			return b.expected.want == rejected && strings.Contains(b.observed.all, inconsistent)
		},
	},
	{
		"L2: ignore_changes and a move to prompt_wo count as two prompts",
		life{named, []turn{{Goes: outlasts}, {config: config{WriteOnly: true}, Ignored: true}}},
		func(b *breach) bool {
			return b.Ignored && b.WriteOnly && strings.Contains(b.observed.all, "Both prompt and prompt_wo")
		},
	},
}

func failedLater(b *breach) bool {
	return (b.expected.want == nothing || b.expected.want == rejected) && b.observed.replaces
}

// known returns the name of the row that excuses a breach.
func (b *breach) known() string {
	for _, row := range breaches {
		if row.excuses(b) {
			return row.name
		}
	}
	return ""
}

func TestBreaches(t *testing.T) {
	t.Setenv("TF_DATA_DIR", "")
	for _, row := range breaches {
		t.Run(row.name, func(t *testing.T) {
			switch b := playLife(t, row.life, map[string]int{}); {
			case b == nil:
				t.Error("it does not occur any more: delete its row")
			case b.number != len(row.life.Turns) || !row.excuses(b):
				t.Error("another breach:", b.report(row.life))
			}
		})
	}
}
