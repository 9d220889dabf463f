// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"errors"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
)

// imports brings a job in, as "terraform import" does.
func (m *matrix) imports(id string) []*tfprotov6.Diagnostic {
	m.Helper()
	m.forget()
	resp, err := m.core.server.ImportResourceState(m.ctx, &tfprotov6.ImportResourceStateRequest{TypeName: "agent_job", ID: id})
	if err != nil {
		m.Fatal(err)
	}
	if failed(resp.Diagnostics) {
		return m.note(resp.Diagnostics)
	}
	imported := resp.ImportedResources[0]
	m.core.state, m.core.private, m.core.ident = m.core.decode(imported.State), imported.Private, imported.Identity
	return m.note(append(resp.Diagnostics, m.core.refresh(m.ctx)...))
}

// readRows are answers to a refresh and to an import that do not give the job.
func readRows() []row {
	const readFailed, notFound = "ERROR: Failed to read agent job", "WARNING: Agent job not found"
	missing := faultserver.Answer(404, `{"error":"job not found"}`)
	page := faultserver.Answer(404, "<!doctype html><p>Not here", "Content-Type: text/html")
	unchanged := func(m *matrix, step func()) {
		m.Helper()
		before := m.core.state.String()
		step()
		if diff := cmp.Diff(before, m.core.state.String()); diff != "" {
			m.Errorf("the state was changed (-before +after):\n%s", diff)
		}
	}
	rows := []row{
		// Red without: 404 in Read as a reason to keep the state; said twice without markMissing.
		{name: "P09_404_in_read", test: func(m *matrix) {
			m.created(job1())
			unchanged(m, func() {
				m.Always(faultserver.Get, missing)
				m.core.ident = nil // as in the state of an old CLI
				diags := m.refresh()
				m.wantDiags(diags, notFound)
				m.wantWords(diags, "a wrong key, project or base URL is answered in the same way", "-replace=ADDRESS")
				m.ok(m.connect())
				m.ok(m.refresh())
				m.ok(m.run(job1()))
				m.wantPosts(1, 0)
				m.Always(faultserver.Get, nil)
				m.ok(m.refresh())
				m.Always(faultserver.Get, missing)
				m.wantDiags(m.refresh(), notFound)
			})
			m.wantState("completed")
		}},
		// Red without: the same, for an import.
		{name: "P09_404_in_import", test: func(m *matrix) {
			diags := m.imports("proj_1/job_nobody_knows")
			m.wantDiags(diags, "ERROR: Failed to import agent job")
			m.wantWords(diags, "Job job_nobody_knows in project proj_1 could not be looked up, so nothing was imported.", "404 Not Found", "Check base_url, project_id and the key")
			m.wantPosts(0, 0)
		}},
		{name: "P09_import_of_a_job_that_is_there", test: func(m *matrix) {
			id := m.sim.Create(project, "by hand").ID
			m.ok(m.imports("proj_1/" + id))
			if got := m.core.get("id"); got != id {
				m.Errorf("id %v, want %s", got, id)
			}
			m.wantPosts(0, 0)
		}},
	}
	// A refresh gives up after a minute, whatever the resource's timeouts, and says so.
	// Red without: ErrUnavailable in hint; the cause in withReadTimeout.
	for name, test := range map[string]struct {
		fail func(m *matrix)
		word string
	}{
		"no_connection": {func(m *matrix) { m.FailDials(errors.New("connection refused")) }, "No connection to the service: connection refused (GET http://"},
		"no_answer": {func(m *matrix) {
			m.Always(faultserver.Get, faultserver.Stall)
		}, "No answer within a minute (GET http://"},
	} {
		rows = append(rows, row{name: "P06_" + name + "_in_read", clock: true, provider: attrs{"request_timeout": "2m"}, test: func(m *matrix) {
			m.created(job1())
			m.ok(m.connect())
			test.fail(m)
			unchanged(m, func() {
				diags := m.refresh()
				m.wantDiags(diags, readFailed)
				m.wantWords(diags, test.word, "Check base_url and the network")
			})
			m.wantPosts(1, 0)
		}})
	}
	// Red without: isWebPage in judgeGet (a 404 would be taken for the service's word).
	for name, play := range map[string]faultserver.Play{
		"html_404": page, "html_200": faultserver.Answer(200, "<html>Sign in", "Content-Type: text/html"),
		"html_404_as_json": faultserver.Answer(404, "<html>Not here"),
	} {
		rows = append(rows, row{name: "P09_" + name + "_in_read", test: func(m *matrix) {
			id := m.created(job1())
			m.Always(faultserver.Get, play)
			unchanged(m, func() {
				diags := m.refresh()
				m.wantDiags(diags, readFailed)
				m.wantWords(diags, "Job "+id+" in project proj_1. The state keeps it as it was last seen.", "the answer is a web page", "Something other than the agent service answered")
			})
			m.wantState("completed")
			m.wantPosts(1, 0)
		}}, row{name: "P09_" + name + "_in_the_wait", clock: true, test: func(m *matrix) {
			m.Script(faultserver.Get, play)
			m.kept(m.run(job1()), "the answer is a web page")
			m.resumed(job1())
		}})
	}
	return rows
}
