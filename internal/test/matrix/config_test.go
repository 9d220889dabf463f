// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"fmt"
	"sync"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// configRows are settings that work, and their defaults.
func configRows() []Row {
	rows := []Row{
		// Red without: the look at the attribute in orEnv; and without the parts of the User-Agent.
		{name: "I06_attributes_over_environment", clock: true, Test: func(m *Matrix) {
			m.Setenv("AGENT_BASE_URL", "http://agent.invalid")
			m.Setenv("AGENT_ADMIN_KEY", "mint_other")
			m.Setenv("AGENT_PROJECT_ID", "proj_other")
			m.OK(m.connect())
			m.created(Job1())
			m.wantAttr("project_id", harness.Project)
			for _, r := range m.Sim.Requests() {
				if got := r.Header.Get("User-Agent"); got != "terraform-provider-agent/test (+terraform 1.16.0)" {
					m.Errorf("User-Agent: %q", got)
				}
			}
		}},
		// Red without: the default intervals.
		{name: "I06_default_intervals", clock: true, script: harness.Always(simulator.Script{Duration: 10 * time.Minute}), Test: func(m *Matrix) {
			start := time.Now()
			m.created(Job1())
			polls := m.times(isGet(m.id()))
			for name, c := range map[string]struct{ pause, mean time.Duration }{
				"first": {polls[0].Sub(start), 1600 * time.Millisecond}, "second": {polls[1].Sub(polls[0]), 800 * time.Millisecond},
				"last": {polls[len(polls)-1].Sub(polls[len(polls)-2]), 10 * time.Second},
			} {
				if c.pause < c.mean*9/10 || c.pause > c.mean*11/10 {
					m.Errorf("%s pause: %s, want about %s", name, c.pause, c.mean)
				}
			}
		}},
	}
	for _, c := range []struct {
		config attrs
		want   time.Duration // of 200 polls; a tenth of a second's may go at once
	}{
		{nil, 1900 * time.Millisecond},
		{attrs{"poll": attrs{"max_per_second": 10}}, 19900 * time.Millisecond},
	} {
		// Red without: the default of max_per_second, and without max_per_second.
		rows = append(rows, Row{name: fmt.Sprintf("I06_200_polls_in_%s", c.want), clock: true, Provider: c.config, script: harness.Always(simulator.Script{}), Test: func(m *Matrix) {
			id := m.Sim.Create(harness.Project, "by hand").ID
			start := time.Now()
			var all sync.WaitGroup
			for range 200 {
				all.Go(func() {
					if _, diags := m.cli.Data(m.ctx, attrs{"id": id, "wait": attrs{"enabled": true}}); len(diags) > 0 {
						m.Error(fakecli.Text(diags)) // not m.OK, which is for one goroutine
					}
				})
			}
			all.Wait()
			m.wantTook(start, c.want-time.Millisecond/2, c.want+time.Millisecond/2)
			m.wantGets(200)
		}})
	}
	for name, journal := range map[string]any{"default": nil, "empty": attrs{}, "enabled": attrs{"enabled": true}, "disabled": attrs{"enabled": false}} {
		// Red without: each half of the look at journal.enabled.
		rows = append(rows, Row{name: "I06_journal_" + name, clock: true, Provider: attrs{"journal": journal}, Test: func(m *Matrix) {
			m.nextRun()
			m.OK(m.Run(Job1()))
			m.wantEntries(map[bool]int{true: 1}[name != "disabled"])
			m.wantNoOrphans()
		}})
	}
	return rows
}
