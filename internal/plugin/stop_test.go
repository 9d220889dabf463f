// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package plugin_test

import (
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// The CLI stops the provider once, and an apply that it has just begun may
// arrive after that: it sends nothing and does not wait.
func TestApplyAfterAStop(t *testing.T) {
	endless := harness.Always(simulator.Script{Duration: time.Hour})
	before := attrs{"prompt": "write", "timeouts": attrs{"create": "1s", "update": "1h"}}
	for name, test := range map[string]struct {
		config attrs
		says   string
	}{
		"message": {attrs{"prompt": "write more"}, "ERROR: Message to agent job not accepted: The prompt was not sent to "},
		"wait":    {nil, "WARNING: Agent job still running"},
	} {
		t.Run(name, func(t *testing.T) {
			harness.Bubble(t, endless, func(t *testing.T, s *harness.Service, c *fakecli.CLI) {
				c.Plan(t.Context(), before)
				c.Apply(t.Context(), before)
				requests := s.Counts()
				config := fakecli.With(before, test.config)
				c.Plan(t.Context(), config)
				c.Stop()
				harness.Contains(t, fakecli.Text(c.Apply(t.Context(), config)), test.says, "interrupted")
				if after := s.Counts(); after != requests {
					t.Errorf("requests: %+v, then %+v", requests, after)
				}
				if got := c.Get("status"); got != "active" || c.Tainted {
					t.Errorf("status %v, tainted %t; want active, untainted", got, c.Tainted)
				}
			})
		})
	}
}
