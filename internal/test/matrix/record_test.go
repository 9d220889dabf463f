// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"fmt"
	"strings"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// recordRows are odd records of a job that goes well.
func recordRows() []Row {
	extra := func(fields attrs) func(string, int) simulator.Script {
		for name, field := range fields {
			if _, out := field.(Omit); out {
				fields[name] = simulator.Omit{}
			}
		}
		return harness.Always(simulator.Script{Duration: 30 * time.Millisecond, Extra: fields})
	}
	var rows []Row
	// Red without: webLink in jobModel.apply.
	for name, link := range map[string]string{
		"script": "javascript:alert(1)", "other_scheme": "ftp://example.com/1", "relative": "/pull/1", "no_host": "https:///pull/1",
		"control": "https://example.com/\x1b[2J", "newline": "https://example.com/\n1", "space": "https://example.com/ 1",
		"bidirectional": "https://example.com/\u202e1", "empty": "",
	} {
		rows = append(rows, Row{name: "P03_link_" + name, script: extra(attrs{"prLink": link}), Test: func(m *Matrix) {
			m.wantDiags(m.Run(Job1()), linkLeftOut)
			shown := map[string]string{"control": "u001b[2J", "newline": "u000a1", "bidirectional": "u202e1"}[name]
			if shown == "" {
				shown = link
			}
			m.wantWords(shown, "not a plain http or https URL")
			m.wantEnd("completed", 1, 0)
			m.wantAttr("pr_link", nil)
		}})
	}
	longest := "https://example.com/" + strings.Repeat("a", 2048-len("https://example.com/"))
	for link, want := range map[string]any{longest: longest, longest + "a": nil} {
		rows = append(rows, Row{name: fmt.Sprintf("P03_link_of_%d", len(link)), script: extra(attrs{"prLink": link}), Test: func(m *Matrix) {
			m.Run(Job1())
			m.wantAttr("pr_link", want)
		}})
	}
	// Red without: the lenient optionalString (a field of an odd form as an error), and without
	// plain strings for times.
	for _, c := range []struct {
		name         string
		fields, want attrs
	}{
		{"no_files_changed", attrs{"prLink": nil, "createdAt": "2026-01-02T03:04:05Z", "source": nil, "model": nil}, attrs{"created_at": "2026-01-02T03:04:05Z"}},
		{"nulls", attrs{"prLink": nil, "source": nil, "model": nil, "createdAt": nil, "archivedAt": nil}, nil},
		{"missing", attrs{"prLink": Omit{}, "source": Omit{}, "model": Omit{}, "createdAt": Omit{}, "archivedAt": Omit{}}, nil},
		{"times_of_an_odd_form", attrs{"prLink": nil, "source": nil, "model": nil, "createdAt": "2026-01-02T03:04:05", "archivedAt": "2026-W01-5"},
			attrs{"created_at": "2026-01-02T03:04:05", "archived_at": "2026-W01-5"}},
		{"other_types", attrs{"prLink": 1, "source": "main", "model": []string{"m"}, "createdAt": 1767323045, "archivedAt": false}, nil},
		{"unknown_fields", attrs{"prLink": nil, "source": nil, "model": "m", "createdAt": nil, "mood": attrs{"of": "the day"}, "ID": "job_0", "Status": "failed"},
			attrs{"model": "m"}},
	} {
		rows = append(rows, Row{name: "P05_" + c.name, script: extra(c.fields), Test: func(m *Matrix) {
			m.OK(m.Run(Job1()))
			m.wantEnd("completed", 1, 0)
			for _, name := range []string{"pr_link", "source", "model", "created_at", "archived_at"} {
				m.wantAttr(name, c.want[name])
			}
			m.OK(m.Run(Job1()))
			if !m.cli.Empty() {
				m.Error("the next plan is not empty")
			}
			m.WantPosts(1, 0)
		}})
	}
	return append(rows,
		// Red without: apply leaving created_at alone.
		Row{name: "P05_created_at_of_another_form_later", clock: true, Test: func(m *Matrix) {
			m.created(Job1())
			created := m.cli.Get("created_at")
			m.Script(faultserver.Get, shows(attrs{"status": "completed", "createdAt": "2026-01-02"}))
			m.OK(m.refresh())
			m.wantAttr("created_at", created)
		}},
		// Red without: active in place of no status.
		Row{name: "P02_create_answered_without_a_status", clock: true, Test: func(m *Matrix) {
			m.Script(faultserver.Create, m.createdAs(201, attrs{"status": Omit{}}))
			m.OK(m.Run(noWait()))
			m.WantState("active")
		}},
		// Red without: created_at as unknown in forgetWhatMayChange.
		Row{name: "P05_create_answered_without_created_at", clock: true, Test: func(m *Matrix) {
			m.Script(faultserver.Create, m.createdAs(201, attrs{"createdAt": nil}))
			m.OK(m.Run(noWait()))
			m.wantDiags(m.plan(Job1()), stillRunning)
			m.OK(m.apply(Job1()))
			if m.cli.Get("created_at") == nil {
				m.Error("created_at is still null")
			}
		}},
		// Red without: the warnings of apply in Create, and in Read.
		Row{name: "P03_create_answered_with_an_odd_link", clock: true, Test: func(m *Matrix) {
			m.Script(faultserver.Create, m.createdAs(201, attrs{"prLink": "/pull/1"}))
			m.wantDiags(m.Run(noWait()), linkLeftOut)
			m.Script(faultserver.Get, shows(attrs{"prLink": "/pull/1"}))
			m.wantDiags(m.refresh(), linkLeftOut)
		}},
	)
}

const linkLeftOut = "WARNING: Pull request link left out"

// createdAs creates a job, and answers with a status and fields laid over its record.
func (m *Matrix) createdAs(status int, fields attrs) faultserver.Play {
	return func(x *faultserver.Exchange) {
		id := m.Sim.Create(harness.Project, "Add a quickstart").ID
		faultserver.Answer(status, JobJSON(fakecli.With(attrs{"id": id}, fields)))(x)
	}
}
