// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"errors"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// imports imports a job, as "terraform import" does.
func (m *Matrix) imports(id string) []*tfprotov6.Diagnostic {
	m.Helper()
	m.cli.Forget()
	return m.note(m.cli.ImportState(m.ctx, id))
}

const (
	readFailed   = "ERROR: Failed to read agent job"
	importFailed = "ERROR: Failed to import agent job"
	jobNotFound  = "WARNING: Agent job not found"
)

// readRows are answers to a refresh and to an import that do not give the job.
func readRows() []Row {
	missing := faultserver.Answer(404, `{"error":"job not found"}`)
	rows := []Row{
		// Red without: 404 in Read as a reason to keep the state; said twice without markMissing.
		{name: "P09_404_in_read", Test: func(m *Matrix) {
			m.created(Job1())
			m.unchanged(func() {
				m.Always(faultserver.Get, missing)
				m.cli.Identity = nil // as in the state of an old CLI
				m.wantDiags(m.refresh(), jobNotFound)
				m.wantWords("a wrong key, project or base URL is answered in the same way", "-replace=ADDRESS")
				m.OK(m.connect())
				m.OK(m.refresh())
				m.OK(m.Run(Job1()))
				m.WantPosts(1, 0)
				m.Always(faultserver.Get, nil)
				m.OK(m.refresh())
				m.Always(faultserver.Get, missing)
				m.wantDiags(m.refresh(), jobNotFound)
			})
			m.WantState("completed")
		}},
		// Red without: the same, for an import.
		{name: "P09_404_in_import", Test: func(m *Matrix) {
			m.wantDiags(m.imports("proj_1/job_nobody_knows"), importFailed)
			m.wantWords("Job job_nobody_knows in project proj_1 could not be looked up, so nothing was imported.", "404 Not Found", "Check base_url, project_id and the key")
			id := m.Sim.Create(harness.Project, "by hand").ID
			m.OK(m.imports("proj_1/" + id))
			m.wantAttr("id", id)
			m.WantPosts(0, 0)
		}},
	}
	// A refresh gives up after a minute, whatever the resource's timeouts, and says so.
	// Red without: ErrUnavailable in hint; the cause in withReadTimeout.
	for name, word := range map[string]string{"no_connection": "No connection to the service: connection refused (GET http://", "no_answer": "No answer within a minute (GET http://"} {
		rows = append(rows, Row{name: "P06_" + name + "_in_read", clock: true, Provider: attrs{"request_timeout": "2m"}, Test: func(m *Matrix) {
			m.created(Job1())
			m.OK(m.connect())
			if name == "no_connection" {
				m.FailDials(errors.New("connection refused"))
			}
			m.Always(faultserver.Get, faultserver.Stall)
			m.unchanged(func() { m.wantDiags(m.refresh(), readFailed) })
			m.wantWords(word, "Check base_url and the network")
			m.WantPosts(1, 0)
		}})
	}
	const page, elsewhere = "the answer is a web page", "Something other than the agent service answered"
	for _, c := range []struct {
		name       string
		play       faultserver.Play
		word, hint string
	}{
		// Red without: isWebPage in classifyGet (a 404 would be taken for the service's word).
		{"P09_html_404", faultserver.Answer(404, "<!doctype html><p>Not here", "Content-Type: text/html"), page, elsewhere},
		{"P09_html_200", faultserver.Answer(200, "<html>Sign in", "Content-Type: text/html"), page, elsewhere},
		{"P09_html_404_as_json", faultserver.Answer(404, "<html>Not here"), page, elsewhere},
		// Red without: ErrWrongJob in classifyGet.
		{"P11_another_id", shows(attrs{"id": "job_other", "status": "completed", "prLink": "https://example.com/pull/7"}), "the answer is the record of another job", ""},
	} {
		rows = append(rows, Row{name: c.name + "_in_read", Test: func(m *Matrix) {
			id := m.created(Job1())
			m.Script(faultserver.Get, c.play)
			m.unchanged(func() { m.wantDiags(m.refresh(), readFailed) })
			m.wantWords("Job "+id+" in project proj_1. The state keeps it as it was last seen.", c.word, c.hint)
			m.wantEnd("completed", 1, 0)
			m.OK(m.refresh())
		}}, Row{name: c.name + "_in_the_wait", clock: true, Test: func(m *Matrix) {
			m.Script(faultserver.Get, c.play)
			m.kept(m.Run(Job1()), c.word)
			m.wantAttr("pr_link", nil)
			m.resumed(Job1())
		}})
	}
	return rows
}
