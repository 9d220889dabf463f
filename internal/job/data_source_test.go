// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"strings"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

func TestDataSource(t *testing.T) {
	endless := simulator.Script{Duration: time.Hour}
	fault := func(status, times int, body string) func(*harness.Service, string) {
		return func(s *harness.Service, _ string) {
			s.Inject(simulator.Fault{Status: status, Times: times, Body: body})
		}
	}
	gone := func(s *harness.Service, id string) { s.Forget(id) }
	for name, test := range map[string]struct {
		script  simulator.Script
		config  attrs // besides the id
		prepare func(s *harness.Service, id string)
		status  any      // of the record; nil: the read fails
		says    []string // what the diagnostics hold; none: there are none
	}{
		"read once while active": {endless, nil, nil, "active", nil},
		"own project":            {endless, attrs{"project_id": harness.Project}, nil, "active", nil},
		"odd link":               {simulator.Script{Extra: map[string]any{"prLink": "javascript:alert(1)"}}, nil, nil, "completed", []string{"WARNING: Invalid pull request link", "ID"}},
		"failed, read once":      {simulator.Script{Status: "failed"}, nil, nil, "failed", nil},
		"unknown job":            {endless, nil, gone, nil, []string{"ERROR: Agent job not found", "job ID in project proj_1.", "project_id"}},
		"key refused": {
			endless, nil, fault(403, 1, `{"error":"no scope"}`), nil,
			[]string{"ERROR: Failed to read agent job", "Job ID in project proj_1 could not be read.", "no scope", "admin_key"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			harness.Bubble(t, harness.Always(test.script), func(t *testing.T, s *harness.Service, c *fakecli.CLI) {
				id := s.Create(harness.Project, "write").ID
				if test.prepare != nil {
					test.prepare(s, id)
				}
				state, diags := c.Data(t.Context(), fakecli.With(attrs{"id": id}, test.config))
				if fakecli.Failed(diags) != (test.status == nil) || len(diags) > 0 != (len(test.says) > 0) {
					t.Fatalf("diagnostics: %s", fakecli.Text(diags))
				}
				for _, words := range test.says {
					harness.Contains(t, fakecli.Text(diags), strings.ReplaceAll(words, "ID", id))
				}
				if got := c.Attribute(state, "status"); got != test.status || got != nil && c.Attribute(state, "project_id") != harness.Project {
					t.Errorf("status %v, want %v, in %s", got, test.status, state)
				}
				s.Sent(t, 0, 0)
			})
		})
	}
}

func TestDataSource_noProject(t *testing.T) {
	t.Setenv("AGENT_PROJECT_ID", "")
	config := fakecli.With(harness.NewService(t, nil).Attrs(), attrs{"project_id": nil})
	_, diags := fakecli.New(t, config).Data(t.Context(), attrs{"id": "job_1"})
	fakecli.WantPath(t, diags, "project_id")
}
