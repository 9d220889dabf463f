// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"errors"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// imports brings a job in, as "terraform import" does.
func (m *Matrix) imports(id string) []*tfprotov6.Diagnostic {
	m.Helper()
	m.forget()
	resp, err := m.cli.Server.ImportResourceState(m.ctx, &tfprotov6.ImportResourceStateRequest{TypeName: "agent_job", ID: id})
	if err != nil {
		m.Fatal(err)
	}
	if fakecli.Failed(resp.Diagnostics) {
		return m.note(resp.Diagnostics)
	}
	imported := resp.ImportedResources[0]
	m.cli.State, m.cli.Private, m.cli.Identity = m.cli.Decode(imported.State), imported.Private, imported.Identity
	return m.note(append(resp.Diagnostics, m.cli.Refresh(m.ctx)...))
}

// readRows are answers to a refresh and to an import that do not give the job.
func readRows() []Row {
	const readFailed, notFound = "ERROR: Failed to read agent job", "WARNING: Agent job not found"
	missing := faultserver.Answer(404, `{"error":"job not found"}`)
	page := faultserver.Answer(404, "<!doctype html><p>Not here", "Content-Type: text/html")
	unchanged := func(m *Matrix, step func()) {
		m.Helper()
		before := m.cli.State.String()
		step()
		if diff := cmp.Diff(before, m.cli.State.String()); diff != "" {
			m.Errorf("the state was changed (-before +after):\n%s", diff)
		}
	}
	rows := []Row{
		// Red without: 404 in Read as a reason to keep the state; said twice without markMissing.
		{name: "P09_404_in_read", Test: func(m *Matrix) {
			m.created(Job1())
			unchanged(m, func() {
				m.Always(faultserver.Get, missing)
				m.cli.Identity = nil // as in the state of an old CLI
				diags := m.refresh()
				m.wantDiags(diags, notFound)
				m.wantWords(diags, "a wrong key, project or base URL is answered in the same way", "-replace=ADDRESS")
				m.OK(m.connect())
				m.OK(m.refresh())
				m.OK(m.Run(Job1()))
				m.WantPosts(1, 0)
				m.Always(faultserver.Get, nil)
				m.OK(m.refresh())
				m.Always(faultserver.Get, missing)
				m.wantDiags(m.refresh(), notFound)
			})
			m.WantState("completed")
		}},
		// Red without: the same, for an import.
		{name: "P09_404_in_import", Test: func(m *Matrix) {
			diags := m.imports("proj_1/job_nobody_knows")
			m.wantDiags(diags, "ERROR: Failed to import agent job")
			m.wantWords(diags, "Job job_nobody_knows in project proj_1 could not be looked up, so nothing was imported.", "404 Not Found", "Check base_url, project_id and the key")
			m.WantPosts(0, 0)
		}},
		{name: "P09_import_of_a_job_that_is_there", Test: func(m *Matrix) {
			id := m.Sim.Create(harness.Project, "by hand").ID
			m.OK(m.imports("proj_1/" + id))
			if got := m.cli.Get("id"); got != id {
				m.Errorf("id %v, want %s", got, id)
			}
			m.WantPosts(0, 0)
		}},
	}
	// A refresh gives up after a minute, whatever the resource's timeouts, and says so.
	// Red without: ErrUnavailable in hint; the cause in withReadTimeout.
	for name, test := range map[string]struct {
		fail func(m *Matrix)
		word string
	}{
		"no_connection": {func(m *Matrix) { m.FailDials(errors.New("connection refused")) }, "No connection to the service: connection refused (GET http://"},
		"no_answer": {func(m *Matrix) {
			m.Always(faultserver.Get, faultserver.Stall)
		}, "No answer within a minute (GET http://"},
	} {
		rows = append(rows, Row{name: "P06_" + name + "_in_read", clock: true, Provider: attrs{"request_timeout": "2m"}, Test: func(m *Matrix) {
			m.created(Job1())
			m.OK(m.connect())
			test.fail(m)
			unchanged(m, func() {
				diags := m.refresh()
				m.wantDiags(diags, readFailed)
				m.wantWords(diags, test.word, "Check base_url and the network")
			})
			m.WantPosts(1, 0)
		}})
	}
	// Red without: isWebPage in classifyGet (a 404 would be taken for the service's word).
	for name, play := range map[string]faultserver.Play{
		"html_404": page, "html_200": faultserver.Answer(200, "<html>Sign in", "Content-Type: text/html"),
		"html_404_as_json": faultserver.Answer(404, "<html>Not here"),
	} {
		rows = append(rows, Row{name: "P09_" + name + "_in_read", Test: func(m *Matrix) {
			id := m.created(Job1())
			m.Always(faultserver.Get, play)
			unchanged(m, func() {
				diags := m.refresh()
				m.wantDiags(diags, readFailed)
				m.wantWords(diags, "Job "+id+" in project proj_1. The state keeps it as it was last seen.", "the answer is a web page", "Something other than the agent service answered")
			})
			m.WantState("completed")
			m.WantPosts(1, 0)
		}}, Row{name: "P09_" + name + "_in_the_wait", clock: true, Test: func(m *Matrix) {
			m.Script(faultserver.Get, play)
			m.kept(m.Run(Job1()), "the answer is a web page")
			m.resumed(Job1())
		}})
	}
	return rows
}
