// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// recordRows are odd records of a job that goes well.
func recordRows() []Row {
	return []Row{
		// Red without: the lenient Key.text (a field of an odd form as an error), plain strings for times,
		// and printable in set.
		{name: "P05_odd_forms", script: harness.Always(simulator.Script{Duration: 30 * time.Millisecond, Extra: attrs{
			"prLink": nil, "source": simulator.Omit{}, "model": strings.Repeat("m", 600), "createdAt": "2026-01-02T03:04:05\n\x1b[31m", "archivedAt": "2026-W01-5",
		}}), Test: func(m *Matrix) {
			m.created(Job1())
			for name, want := range (attrs{
				"pr_link": nil, "source": nil, "model": strings.Repeat("m", 511) + "…", "created_at": `2026-01-02T03:04:05\u000a\u001b[31m`, "archived_at": "2026-W01-5",
			}) {
				m.wantAttr(name, want)
			}
			m.OK(m.Run(Job1()))
			if !m.cli.Empty() {
				m.Error("the next plan is not empty")
			}
			m.WantPosts(1, 0)
		}},
		// Red without: active in place of no status.
		{name: "P02_create_answered_without_a_status", clock: true, Test: func(m *Matrix) {
			m.Script(faultserver.Create, m.createdAs(attrs{"status": simulator.Omit{}}))
			m.OK(m.Run(noWait()))
			m.WantState("active")
		}},
		// A wait keeps what was planned. Red without: planned and keepPlanned.
		{name: "P05_create_answered_without_created_at", clock: true, Test: func(m *Matrix) {
			m.Script(faultserver.Create, m.createdAs(attrs{"createdAt": nil}))
			m.OK(m.Run(noWait()))
			m.OK(m.plan(Job1()))
			m.OK(m.apply(Job1()))
			m.OK(m.refresh())
			if m.cli.Get("created_at") == nil {
				m.Error("created_at is still null")
			}
		}},
		// Red without: the warnings of apply in Create, in Read, and after a wait.
		{name: "P03_create_answered_with_an_odd_link", clock: true, Test: func(m *Matrix) {
			m.Script(faultserver.Create, m.createdAs(attrs{"prLink": "/pull/1"}))
			m.wantDiags(m.Run(noWait()), linkLeftOut)
			m.Script(faultserver.Get, shows(attrs{"prLink": "/pull/1"}))
			m.wantDiags(m.refresh(), linkLeftOut)
			m.OK(m.plan(Job1()))
			m.Script(faultserver.Get, shows(attrs{"status": "completed", "prLink": "/pull/1"}))
			m.wantDiags(m.apply(Job1()), linkLeftOut)
		}},
	}
}

const linkLeftOut = "WARNING: Invalid pull request link"

// createdAs creates a job, and answers with fields laid over its record.
func (m *Matrix) createdAs(fields attrs) faultserver.Play {
	return func(x *faultserver.Exchange) {
		id := m.Sim.Create(harness.Project, "Add a quickstart").ID
		faultserver.Answer(201, JobJSON(fakecli.With(attrs{"id": id}, fields)))(x)
	}
}

// imports imports a job by its id or its identity.
func (m *Matrix) imports(by any) []*tfprotov6.Diagnostic {
	m.Helper()
	m.cli.Forget()
	return m.note(m.cli.ImportState(m.ctx, by))
}

const (
	readFailed   = "ERROR: Failed to read agent job"
	importFailed = "ERROR: Failed to import agent job"
	jobNotFound  = "WARNING: Agent job not found"
)

// readRows are answers to a refresh and to an import that do not give the job.
func readRows() []Row {
	missing := faultserver.Answer(404, `{"error":"job not found"}`)
	return []Row{
		// Red without: 404 in Read as a reason to keep the state; 410 in ErrNotFound.
		{name: "P09_404_in_read", clock: true, Test: func(m *Matrix) {
			m.created(Job1())
			m.unchanged(func() {
				m.Always(faultserver.Get, missing)
				m.cli.Identity = nil // as in the state of an old CLI
				m.wantDiags(m.refresh(), jobNotFound)
				m.wantWords("Check base_url, project_id and the key", "The service responded with 404 Not Found", "-replace=ADDRESS")
				m.OK(m.connect())
				for range 2 { // in each plan, until the job is replaced or removed
					m.wantDiags(m.Run(Job1()), jobNotFound)
				}
				m.Always(faultserver.Get, faultserver.Answer(410, `{"error":"job is gone"}`))
				m.wantDiags(m.Run(Job1()), jobNotFound)
				m.WantPosts(1, 0)
				m.Always(faultserver.Get, nil)
				m.OK(m.Run(Job1()))
			})
			m.WantState("completed")
		}},
		// Red without: the same, for an import.
		{name: "P09_404_in_import", clock: true, Test: func(m *Matrix) {
			m.wantDiags(m.imports("proj_1/job_nobody_knows"), importFailed)
			m.wantWords("Job job_nobody_knows in project proj_1 could not be read, so nothing was imported.", "404 Not Found", "Check base_url, project_id and the key")
			id := m.Sim.Create(harness.Project, "manual").ID
			m.OK(m.imports("proj_1/" + id))
			m.wantAttr("id", id)
			m.WantPosts(0, 0)
		}},
	}
}
