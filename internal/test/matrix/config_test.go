// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
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
			var polls []time.Time
			for _, r := range m.Sim.Requests()[1:] {
				polls = append(polls, r.Time)
			}
			first, second, last := polls[0].Sub(start), polls[1].Sub(polls[0]), polls[len(polls)-1].Sub(polls[len(polls)-2])
			if first.Round(400*time.Millisecond) != 1600*time.Millisecond || second.Round(200*time.Millisecond) != 800*time.Millisecond || last.Round(2*time.Second) != 10*time.Second {
				m.Errorf("pauses of %s, %s and, after ten minutes, %s; want about 1.6s, 0.8s and 10s", first, second, last)
			}
		}},
	}
	// Red without: the default of max_per_second. Thirty polls more than may go at once take 1.2 s.
	return append(rows, Row{name: "I06_polls_per_second_default", clock: true, script: harness.Always(simulator.Script{}), Test: func(m *Matrix) {
		start := time.Now()
		var all sync.WaitGroup
		for range 130 {
			all.Go(func() {
				if _, diags := m.cli.Invoke(m.ctx, "agent_start_job", Job1()); len(diags) > 0 {
					m.Error(fakecli.Text(diags)) // not m.OK, which is for one goroutine
				}
			})
		}
		all.Wait()
		m.wantTook(start, 2640*time.Millisecond, 2960*time.Millisecond) // after the first pause
	}})
}

const notConfigured = "ERROR: Agent provider not configured"

// unknownRows are values that are not known while Terraform plans.
func unknownRows() []Row {
	rows := []Row{{name: "I06_unknown_settings", Test: func(m *Matrix) {
		known := m.config
		for _, more := range []attrs{
			{"admin_key": unknown{}}, {"base_url": unknown{}}, {"project_id": unknown{}}, {"poll": unknown{}},
			{"poll": attrs{"min_interval": unknown{}, "max_interval": "10ms"}}, {"max_new_jobs": unknown{}},
		} {
			// Red without: known in providerData (a client with an empty key or address), and projectOr for project_id.
			m.config = known
			m.cli.Forget()
			m.OK(m.configure(more))
			m.OK(m.plan(Job1()))
			want := any(harness.Project)
			if more["project_id"] != nil {
				want = unknown{}
			}
			if got := m.cli.Attribute(m.cli.Planned, "project_id"); got != want {
				m.Errorf("planned project_id: %v, want %v", got, want)
			}
			// Red without: usable in Create.
			m.wantDiags(m.apply(Job1()), notConfigured)
			m.wantWords("Apply the resources that its values come from first")
			m.wantDiags(m.imports("proj_1/job_1"), importFailed)
			m.wantWords("configuration is not known yet. Nothing was sent.")
			// Red without: the same in the data source.
			m.wantDiags(m.readData(attrs{"id": "job_1", "project_id": harness.Project}), notConfigured)
		}
		m.wantDials(0)
	}}, {name: "I06_unknown_settings_of_an_existing_job", Test: func(m *Matrix) {
		m.created(Job1())
		// Red without: keepUnrefreshed in Read.
		requests := len(m.Sim.Requests())
		m.OK(m.configure(attrs{"admin_key": unknown{}}))
		m.cli.Identity = nil // as in the state of an old CLI
		m.unchanged(func() { m.wantDiags(m.refresh(), "WARNING: Agent job not refreshed") })
		m.OK(m.plan(Job1()))
		if !m.cli.Empty() {
			m.Error("the plan is not empty")
		}
		m.OK(m.plan(Job2()))
		// Red without: usable in Update.
		m.wantDiags(m.apply(Job2()), notConfigured)
		if n := len(m.Sim.Requests()); n != requests {
			m.Errorf("%d calls", n-requests)
		}
	}}}
	// Red without: each half of the look at unknown values in providerModel.journal.
	rows = append(rows, Row{name: "I06_journal_unknown", Test: func(m *Matrix) {
		for _, journal := range []any{unknown{}, attrs{"enabled": unknown{}}, attrs{"url": unknown{}}, attrs{"forget": unknown{}}} {
			m.config["journal"] = journal
			m.wantDiags(m.connect(), "ERROR: Unknown journal settings")
			m.wantWords("journal.enabled, journal.url and journal.forget", "AGENT_JOURNAL_URL")
		}
		m.wantDials(0)
	}})
	// Red without: a wait that is not known counting as its default, on.
	return append(rows, Row{name: "I06_wait_unknown_at_plan_of_an_active_job", Test: func(m *Matrix) {
		m.OK(m.Run(noWait()))
		for _, wait := range []any{unknown{}, attrs{"enabled": unknown{}}} {
			m.OK(m.plan(fakecli.With(Job1(), attrs{"wait": wait})))
			if got := m.cli.Attribute(m.cli.Planned, "status"); got != (unknown{}) {
				m.Errorf("planned status: %v, want one that is not known", got)
			}
		}
	}})
}
