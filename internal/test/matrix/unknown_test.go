// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

const notConfigured = "ERROR: Agent provider not configured"

// unknownRows are values that are not known while Terraform plans.
func unknownRows() []Row {
	var rows []Row
	for name, more := range map[string]attrs{
		"admin_key": {"admin_key": unknown{}}, "base_url": {"base_url": unknown{}}, "project_id": {"project_id": unknown{}},
		"request_timeout": {"request_timeout": unknown{}}, "poll": {"poll": unknown{}}, "ca_certificates_pem": {"ca_certificates_pem": unknown{}},
		"max_new_jobs": {"max_new_jobs": unknown{}}, "max_messages": {"max_messages": unknown{}},
		"base_url, admin_key": {"base_url": unknown{}, "admin_key": unknown{}},
		"poll.min_interval":   {"poll": attrs{"min_interval": unknown{}, "max_interval": "10ms"}},
		"poll.max_interval":   {"poll": attrs{"min_interval": "20s", "max_interval": unknown{}}},
		"poll.max_per_second": {"poll": attrs{"max_per_second": unknown{}}},
	} {
		rows = append(rows, Row{name: "I06_" + name + "_unknown", Test: func(m *Matrix) {
			known, notKnown := m.config, "Not known yet: "+name+"."
			// Red without: conn.unknown in connect (a client with an empty key or address), and planProject for project_id.
			m.OK(m.configure(more))
			m.OK(m.plan(Job1()))
			want := any(harness.Project)
			if name == "project_id" {
				want = unknown{}
			}
			if got := m.cli.Attribute(m.cli.Planned, "project_id"); got != want {
				m.Errorf("planned project_id: %v, want %v", got, want)
			}
			// Red without: usable in Create.
			m.wantDiags(m.apply(Job1()), notConfigured)
			m.wantWords(notKnown)
			m.wantDiags(m.imports("proj_1/job_1"), importFailed)
			m.wantWords("must be known to look the job up. " + notKnown)
			// Red without: the same in the data source.
			m.wantDiags(m.readData(attrs{"id": "job_1", "project_id": harness.Project}), notConfigured)
			m.wantWords(name)
			m.wantDials(0)

			m.cli.Forget()
			m.config = known
			m.OK(m.connect())
			m.created(Job1())
			m.WantPosts(1, 0)

			// Red without: keepUnread in Read.
			requests := len(m.Requests())
			m.OK(m.configure(more))
			m.cli.Identity = nil // as in the state of an old CLI
			m.unchanged(func() { m.wantDiags(m.refresh(), "WARNING: Agent job not refreshed") })
			m.wantWords(notKnown)
			m.OK(m.plan(Job1()))
			if !m.cli.Empty() {
				m.Error("the plan is not empty")
			}
			m.wantDiags(m.plan(Job2()), messagePlanned)
			// Red without: usable in Update.
			m.wantDiags(m.apply(Job2()), notConfigured)
			m.wantWords(notKnown)
			if n := len(m.Requests()); n != requests {
				m.Errorf("%d calls", n-requests)
			}
		}})
	}
	for name, journal := range map[string]any{"block": unknown{}, "enabled": attrs{"enabled": unknown{}}, "url": attrs{"url": unknown{}}} {
		// Red without: each half of the look at unknown values in providerModel.journal.
		rows = append(rows, Row{name: "I06_journal_" + name + "_unknown", Test: func(m *Matrix) {
			m.config["journal"] = journal
			m.wantDiags(m.connect(), "ERROR: Journal not known")
			m.wantWords("journal.enabled and journal.url", "AGENT_JOURNAL_URL")
			m.wantDials(0)
		}})
	}
	return append(rows,
		// Red without: promptValidator passing over unknown values.
		Row{name: "I06_prompt_unknown_at_plan", Test: func(m *Matrix) {
			m.OK(m.note(m.cli.Validate(attrs{"prompt": unknown{}, "project_id": unknown{}})))
			m.OK(m.plan(attrs{"prompt": unknown{}}))
			m.OK(m.plan(attrs{"prompt": "write", "project_id": unknown{}}))
			m.wantDials(0)
		}},
		// Red without: a wait that is not known counting as its default, on.
		Row{name: "I06_wait_unknown_at_plan_of_an_active_job", Test: func(m *Matrix) {
			m.OK(m.Run(noWait()))
			for _, wait := range []any{unknown{}, attrs{"enabled": unknown{}}} {
				m.wantDiags(m.plan(fakecli.With(Job1(), attrs{"wait": wait})), stillRunning)
			}
		}},
		// Red without: the prompts themselves being compared in compare (a message would be sent).
		Row{name: "I06_prompt_unknown_at_plan_of_an_existing_job", Test: func(m *Matrix) {
			m.created(Job1())
			requests := len(m.Requests())
			m.wantDiags(m.plan(attrs{"prompt": unknown{}}), "WARNING: Prompt not known yet")
			if n := len(m.Requests()); n != requests {
				m.Errorf("%d calls", n-requests)
			}
			m.OK(m.Run(Job1()))
			m.WantPosts(1, 0)
		}},
	)
}
