// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"net/http"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// configure starts a provider with more laid over its configuration.
func (m *Matrix) configure(more attrs) []*tfprotov6.Diagnostic {
	m.Helper()
	m.config = fakecli.With(m.config, more)
	return m.connect()
}

// inputRows are odd prompts and settings.
func inputRows() []Row {
	return []Row{
		// Red without: ValidID in ImportState.
		{name: "I03_id_in_import", clock: true, Test: func(m *Matrix) {
			for _, id := range []string{"proj_1/a b", "a b/job_1", "/job_1", "job_1/", "a b"} {
				m.wantDiags(m.imports(id), importFailed)
				m.wantWords("PROJECT_ID/JOB_ID")
			}
		}},
		// Red without: the provider's project in ImportState, of an id and of an identity.
		{name: "I03_import_in_the_project_of_the_provider", clock: true, Test: func(m *Matrix) {
			id := m.created(Job1())
			for _, by := range []any{id, attrs{"id": id}, attrs{"id": id, "project_id": harness.Project}} {
				m.OK(m.imports(by))
				m.wantAttr("id", id)
				m.wantAttr("project_id", harness.Project)
			}
			for _, project := range []any{nil, unknown{}} {
				m.OK(m.configure(attrs{"project_id": project}))
				for _, by := range []any{id, attrs{"id": id}} {
					m.wantDiags(m.imports(by), importFailed)
					m.wantWords("the provider has no project_id", "Nothing was imported or sent.", "PROJECT_ID/JOB_ID")
				}
			}
		}},
		// Nobody should, but its place in the URL is no reason to log the key. Red without: keyMask in each call.
		{name: "I05_base_url_with_the_key", Test: func(m *Matrix) {
			behind := faultserver.New(m, http.StripPrefix("/"+harness.CanaryKey, m.Sim), faultserver.Options{})
			m.Setenv("AGENT_ADMIN_KEY", harness.CanaryKey)
			m.OK(m.configure(attrs{"base_url": behind.URL + "/" + harness.CanaryKey + "/", "admin_key": nil}))
			id := m.created(Job1())
			m.OK(m.Run(fakecli.With(noWait(), Job2())))
			m.OK(m.refresh())
			m.OK(m.readData(attrs{"id": id}))
			for action, config := range map[string]attrs{"agent_start_job": Job1(), "agent_send_message": fakecli.With(Job1(), attrs{"job_id": id})} {
				_, diags := m.cli.Invoke(m.ctx, action, fakecli.With(config, attrs{"wait": attrs{"enabled": false}}))
				m.OK(m.note(diags))
			}
			if !strings.Contains(m.logged(), "/***/v2/agent/proj_1/job") {
				m.Errorf("no URL in the log:\n%s", m.logged())
			}
		}},
	}
}
