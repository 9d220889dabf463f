// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

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
			diags := m.Run(Job1())
			m.wantDiags(diags, "WARNING: Pull request link left out")
			shown := map[string]string{"control": "u001b[2J", "newline": "u000a1", "bidirectional": "u202e1"}[name]
			if shown == "" {
				shown = link
			}
			m.wantWords(diags, shown, "not a plain http or https URL")
			m.WantState("completed")
			if got := m.cli.Get("pr_link"); got != nil {
				m.Errorf("pr_link: %q", got)
			}
			m.WantPosts(1, 0)
		}})
	}
	longest := "https://example.com/" + strings.Repeat("a", 2048-len("https://example.com/"))
	for link, want := range map[string]any{longest: longest, longest + "a": nil} {
		rows = append(rows, Row{name: fmt.Sprintf("P03_link_of_%d", len(link)), script: extra(attrs{"prLink": link}), Test: func(m *Matrix) {
			m.Run(Job1())
			if got := m.cli.Get("pr_link"); got != want {
				m.Errorf("pr_link: %v", got)
			}
		}})
	}
	// Red without: the lenient optionalString (a field of an odd form as an error), and without
	// plain strings for times.
	type shown struct{ Link, Source, Model, Created, Archived any }
	for _, c := range []struct {
		name   string
		fields attrs
		want   shown
	}{
		{"no_files_changed", attrs{"prLink": nil, "createdAt": "2026-01-02T03:04:05Z", "source": nil, "model": nil}, shown{Created: "2026-01-02T03:04:05Z"}},
		{"nulls", attrs{"prLink": nil, "source": nil, "model": nil, "createdAt": nil, "archivedAt": nil}, shown{}},
		{"missing", attrs{"prLink": Omit{}, "source": Omit{}, "model": Omit{}, "createdAt": Omit{}, "archivedAt": Omit{}}, shown{}},
		{"times_of_an_odd_form", attrs{"prLink": nil, "source": nil, "model": nil, "createdAt": "2026-01-02T03:04:05", "archivedAt": "2026-W01-5"},
			shown{Created: "2026-01-02T03:04:05", Archived: "2026-W01-5"}},
		{"other_types", attrs{"prLink": 1, "source": "main", "model": []string{"m"}, "createdAt": 1767323045, "archivedAt": false}, shown{}},
		{"unknown_fields", attrs{"prLink": nil, "source": nil, "model": "m", "createdAt": nil, "mood": attrs{"of": "the day"}, "ID": "job_0", "Status": "failed"},
			shown{Model: "m"}},
	} {
		rows = append(rows, Row{name: "P05_" + c.name, script: extra(c.fields), Test: func(m *Matrix) {
			m.OK(m.Run(Job1()))
			m.WantState("completed")
			m.WantPosts(1, 0)
			got := shown{
				Link: m.cli.Get("pr_link"), Source: m.cli.Get("source"), Model: m.cli.Get("model"),
				Created: m.cli.Get("created_at"), Archived: m.cli.Get("archived_at"),
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				m.Errorf("state (-want +got):\n%s", diff)
			}
			m.OK(m.Run(Job1()))
			if !m.cli.Empty() {
				m.Error("the next plan is not empty")
			}
			m.WantPosts(1, 0)
		}})
	}
	// answered creates a job without a wait, with fields laid over the answer.
	answered := func(name string, fields attrs, test func(*Matrix, []*tfprotov6.Diagnostic)) Row {
		return Row{name: name, clock: true, Test: func(m *Matrix) {
			m.Script(faultserver.Create, func(x *faultserver.Exchange) {
				id := m.Sim.Create(harness.Project, "Add a quickstart").ID
				faultserver.Answer(201, JobJSON(fakecli.With(attrs{"id": id}, fields)))(x)
			})
			test(m, m.Run(fakecli.With(Job1(), attrs{"wait": attrs{"enabled": false}})))
		}}
	}
	other := shows(attrs{"id": "job_other", "status": "completed", "prLink": "https://example.com/pull/7"})
	return append(rows,
		// Red without: apply leaving created_at alone, and active in place of no status.
		Row{name: "P05_created_at_of_another_form_later", clock: true, Test: func(m *Matrix) {
			m.created(Job1())
			created := m.cli.Get("created_at")
			m.Script(faultserver.Get, shows(attrs{"status": "completed", "createdAt": "2026-01-02"}))
			m.OK(m.refresh())
			if got := m.cli.Get("created_at"); got != created {
				m.Errorf("created_at: %v, want %v", got, created)
			}
		}},
		answered("P02_create_answered_without_a_status", attrs{"status": Omit{}}, func(m *Matrix, diags []*tfprotov6.Diagnostic) {
			m.OK(diags)
			m.WantState("active")
		}),
		// Red without: created_at as unknown in markComputedUnknown.
		answered("P05_create_answered_without_created_at", attrs{"createdAt": nil}, func(m *Matrix, diags []*tfprotov6.Diagnostic) {
			m.OK(diags)
			m.wantDiags(m.plan(Job1()), "WARNING: Agent job is still running")
			m.OK(m.apply(Job1()))
			if m.cli.Get("created_at") == nil {
				m.Error("created_at is still null")
			}
		}),
		// Red without: the warnings of apply in Create, and in Read.
		answered("P03_create_answered_with_an_odd_link", attrs{"prLink": "/pull/1"}, func(m *Matrix, diags []*tfprotov6.Diagnostic) {
			m.wantDiags(diags, "WARNING: Pull request link left out")
			m.Script(faultserver.Get, shows(attrs{"prLink": "/pull/1"}))
			m.wantDiags(m.refresh(), "WARNING: Pull request link left out")
		}),
		// Red without: ErrWrongJob in classifyGet.
		Row{name: "P11_another_id_in_the_wait", clock: true, Test: func(m *Matrix) {
			m.Script(faultserver.Get, shows(nil), other)
			m.kept(m.Run(Job1()), "the answer is the record of another job: job_other")
			if got := m.cli.Get("pr_link"); got != nil {
				m.Errorf("pr_link of another job: %v", got)
			}
			m.resumed(Job1())
		}},
		Row{name: "P11_another_id_in_read", Test: func(m *Matrix) {
			m.created(Job1())
			before := m.cli.State
			m.Script(faultserver.Get, other)
			diags := m.refresh()
			m.wantDiags(diags, "ERROR: Failed to read agent job")
			m.wantWords(diags, "the answer is the record of another job: job_other", "The state keeps it as it was last seen")
			if diff := cmp.Diff(before.String(), m.cli.State.String()); diff != "" {
				m.Errorf("the state was changed:\n%s", diff)
			}
			m.OK(m.refresh())
		}},
	)
}
