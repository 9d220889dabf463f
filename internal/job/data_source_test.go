// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

func TestDataSource(t *testing.T) {
	endless, fails := simulator.Script{Duration: time.Hour}, simulator.Script{Duration: 100 * time.Millisecond, Status: "failed"}
	waits := attrs{"wait": attrs{"enabled": true}}
	warns := attrs{"wait": attrs{"enabled": true, "on_failure": "warn", "on_timeout": "warn"}}
	soon := attrs{"timeouts": attrs{"read": "300ms"}}
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
		"read once while active":    {endless, nil, nil, "active", nil},
		"own project":               {endless, attrs{"project_id": harness.Project}, nil, "active", nil},
		"wait for the end":          {simulator.Script{Duration: 100 * time.Millisecond}, waits, nil, "completed", nil},
		"wait is off by default":    {endless, attrs{"wait": attrs{"on_failure": "error"}}, nil, "active", nil},
		"odd link":                  {simulator.Script{Extra: map[string]any{"prLink": "javascript:alert(1)"}}, nil, nil, "completed", []string{"WARNING: Invalid pull request link", "ID"}},
		"failed, read once":         {simulator.Script{Status: "failed"}, nil, nil, "failed", nil},
		"failed, waited for":        {fails, waits, nil, nil, []string{"ERROR: Agent job failed", "ID", "on_failure = \"warn\" in the wait block"}},
		"failed, on_failure = warn": {fails, warns, nil, "failed", []string{"WARNING: Agent job failed"}},
		"timeout":                   {endless, fakecli.With(waits, soon), nil, nil, []string{"ERROR: Agent job still running", "ID", "The next plan or apply waits again and sends nothing."}},
		"on_timeout = warn":         {endless, fakecli.With(warns, soon), nil, "active", []string{"WARNING: Agent job still running"}},
		"timeout without a record":  {endless, fakecli.With(warns, soon), fault(503, -1, ""), nil, []string{"ERROR: Agent job still running", "503"}},
		"unknown job":               {endless, nil, gone, nil, []string{"ERROR: Agent job not found", "job ID in project proj_1.", "project_id"}},
		"unknown job, waited for":   {endless, warns, gone, nil, []string{"ERROR: Agent job not found", "ID"}},
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

func TestDataSource_interrupted(t *testing.T) {
	harness.Bubble(t, harness.Always(simulator.Script{Duration: time.Hour}), func(t *testing.T, s *harness.Service, c *fakecli.CLI) {
		id := s.Create(harness.Project, "write").ID
		done := make(chan []*tfprotov6.Diagnostic, 1)
		go func() {
			_, diags := c.Data(t.Context(), attrs{"id": id, "wait": attrs{"enabled": true, "on_timeout": "warn"}})
			done <- diags
		}()
		time.Sleep(2 * time.Minute) // longer than a read without a wait takes
		if len(done) > 0 || s.Counts().Get == 0 {
			t.Fatalf("%d looks at the job, ended: %t", s.Counts().Get, len(done) > 0)
		}
		start := time.Now()
		c.Stop()
		diags := <-done
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("stopped after %s", took)
		}
		harness.Contains(t, fakecli.Text(diags), "ERROR: Agent job still running", id, "interrupted")
	})
}

// Resources and actions of the same run leave their mark: a new job may be stored
// late, and the end from before a message does not count.
func TestDataSource_afterOwnChanges(t *testing.T) {
	script := func(_ string, turn int) simulator.Script {
		if turn == 0 {
			return simulator.Script{Duration: 10 * time.Second}
		}
		return simulator.Script{Duration: 20 * time.Second, Stale: 5 * time.Second, Status: "archived"}
	}
	noWait := attrs{"wait": attrs{"enabled": false}}
	harness.Bubble(t, script, func(t *testing.T, s *harness.Service, c *fakecli.CLI) {
		apply := func(prompt string) []*tfprotov6.Diagnostic {
			config := fakecli.With(noWait, attrs{"prompt": prompt})
			return append(c.Plan(t.Context(), config), c.Apply(t.Context(), config)...)
		}
		invoke := func(name string, config attrs) []*tfprotov6.Diagnostic {
			_, diags := c.Invoke(t.Context(), name, fakecli.With(fakecli.With(noWait, attrs{"prompt": "write"}), config))
			return diags
		}
		var id string
		for _, step := range []struct {
			do     func() []*tfprotov6.Diagnostic
			status string
		}{
			{func() []*tfprotov6.Diagnostic { return apply("write") }, "completed"},
			{func() []*tfprotov6.Diagnostic { return apply("write more") }, "archived"},
			{func() []*tfprotov6.Diagnostic { return invoke("agent_start_job", nil) }, "completed"},
			{func() []*tfprotov6.Diagnostic { return invoke("agent_send_message", attrs{"job_id": id}) }, "archived"},
		} {
			before := s.Counts().Get
			if diags := step.do(); fakecli.Failed(diags) || s.Counts().Get > before {
				t.Errorf("%d GETs, %s", s.Counts().Get-before, fakecli.Text(diags))
			}
			jobs := s.Jobs()
			id = jobs[len(jobs)-1].ID
			if step.status == "completed" {
				s.Inject(storedLate)
			}
			state, diags := c.Data(t.Context(), attrs{"id": id, "wait": attrs{"enabled": true}})
			if status := c.Attribute(state, "status"); status != step.status {
				t.Errorf("status %v, want %s: %s", status, step.status, fakecli.Text(diags))
			}
		}
		s.Sent(t, 2, 2)
	})
}
