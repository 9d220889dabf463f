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
	short := attrs{"create": "1s", "update": "1h"}
	for name, test := range map[string]struct {
		before, config attrs
		says           string
		status         any
	}{
		"create":  {nil, attrs{"prompt": "write"}, "ERROR: Agent job not created: The prompt was not sent to ", nil},
		"message": {attrs{"prompt": "write", "timeouts": short}, attrs{"prompt": "write more", "timeouts": short}, "ERROR: Message to agent job not accepted: The prompt was not sent to ", "active"},
		"wait":    {attrs{"prompt": "write", "timeouts": short}, attrs{"prompt": "write", "timeouts": short}, "WARNING: Agent job still running", "active"},
	} {
		t.Run(name, func(t *testing.T) {
			harness.Bubble(t, endless, func(t *testing.T, s *harness.Service, c *fakecli.CLI) {
				if test.before != nil {
					c.Plan(t.Context(), test.before)
					c.Apply(t.Context(), test.before)
				}
				before := s.Counts()
				c.Plan(t.Context(), test.config)
				c.Stop()
				harness.Contains(t, fakecli.Text(c.Apply(t.Context(), test.config)), test.says, "interrupted")
				if after := s.Counts(); after != before {
					t.Errorf("requests: %+v, then %+v", before, after)
				}
				if got := c.Get("status"); got != test.status || c.Tainted {
					t.Errorf("status %v, tainted %t; want %v, untainted", got, c.Tainted, test.status)
				}
			})
		})
	}
}
