// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// Two runs that know nothing of each other's state send each request once: X07. Of two aliases with equal resources,
// one may take over what the other one has, so that fewer jobs are started.
func TestTwoRuns_withoutLock(t *testing.T) {
	t.Parallel()
	equal := otherAlias + use("equal", canaryPrompt, "count = 2") + use("alias", canaryPrompt, "count = 2", "provider = agent.other") +
		use("other", canaryPrompt+" other")
	for _, store := range everyNth(t, 2, inCI, []store{defaultFolder, namedFolder}) {
		for _, gap := range []time.Duration{0, 50 * time.Millisecond, 300 * time.Millisecond} {
			t.Run(gap.String(), func(t *testing.T) {
				t.Parallel()
				w := newWorkingDir(t, simulator.Script{Duration: 300 * time.Millisecond}, equal)
				w.keepJournal(store)
				first := w.start("apply -lock=false -state=first.tfstate")
				time.Sleep(gap)
				second := w.start("apply -lock=false -state=second.tfstate")
				for _, p := range []*process{first, second} {
					if output := p.wait(); !p.ok() {
						t.Errorf("an apply fails:\n%s", output)
					}
				}
				if n := w.sim.Counts().Create; n < 3 || n > 5 {
					t.Errorf("%d jobs were started, want 3 to 5", n)
				}
			})
		}
	}
}
