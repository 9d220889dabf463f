// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"strings"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// otherAlias is a second provider process of a run.
const otherAlias = `
provider "agent" {
  alias = "other"
  poll {
    min_interval = "50ms"
    max_interval = "200ms"
  }
}
`

// Two runs of one state that read it before either writes it start one job for each name, and the later one adopts it. (X07)
func TestTwoRuns_withoutLock(t *testing.T) {
	t.Parallel()
	config := otherAlias + use("test", canaryPrompt, "count = 2") + use("alias", canaryPrompt, "count = 2", "provider = agent.other") +
		use("other", canaryPrompt+" other")
	for store, gap := range map[string]time.Duration{"folder": 0, "bucket": 50 * time.Millisecond} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			w := newWorkingDir(t, simulator.Script{Duration: 300 * time.Millisecond}, config)
			if store == "bucket" {
				w.useBucket()
			}
			first := w.start("apply -lock=false")
			time.Sleep(gap)
			second := w.start("apply -lock=false")
			for _, p := range []*process{first, second} {
				// Terraform empties a local state before it writes it: without a lock, the other run may read it then.
				if output := p.wait(); !p.ok() && !strings.Contains(output, "Unsupported state file format") {
					t.Errorf("an apply fails:\n%s", output)
				}
			}
			w.posts(5, 0)
		})
	}
}
