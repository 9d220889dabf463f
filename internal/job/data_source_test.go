// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

func TestDataSource(t *testing.T) {
	short, endless := simulator.Script{Duration: 100 * time.Millisecond}, simulator.Script{Duration: time.Hour}
	fails := simulator.Script{Duration: 100 * time.Millisecond, Status: "failed"}
	waits := attrs{"enabled": true}
	for name, test := range map[string]struct {
		script  simulator.Script
		config  attrs // besides the id
		prepare func(s *harness.Service, id string)
		status  any      // of the record; nil: the read fails
		says    []string // what the diagnostics hold; none: there are none
	}{
		"read once while active": {script: endless, status: "active"},
		"own project":            {script: endless, config: attrs{"project_id": harness.Project}, status: "active"},
		"wait for the end":       {script: short, config: attrs{"wait": waits}, status: "completed"},
		"wait is off by default": {script: endless, config: attrs{"wait": attrs{"on_failure": "error"}}, status: "active"},
		"odd link": {
			script: simulator.Script{Extra: map[string]any{"prLink": "javascript:alert(1)"}}, status: "completed",
			says: []string{"WARNING: Invalid pull request link", "ID"},
		},
		"failed, read once":         {script: simulator.Script{Status: "failed"}, status: "failed"},
		"failed, waited for":        {script: fails, config: attrs{"wait": waits}, says: []string{"ERROR: Agent job failed", "ID", "wait.on_failure"}},
		"failed, on_failure = warn": {script: fails, config: attrs{"wait": attrs{"enabled": true, "on_failure": "warn"}}, status: "failed", says: []string{"WARNING: Agent job failed"}},
		"timeout": {
			script: endless, config: attrs{"wait": waits, "timeouts": attrs{"read": "300ms"}},
			says: []string{"ERROR: Agent job still running", "ID", "The next plan or apply waits again."},
		},
		"timeout, on_timeout = warn": {
			script: endless, config: attrs{"wait": attrs{"enabled": true, "on_timeout": "warn"}, "timeouts": attrs{"read": "300ms"}}, status: "active",
			says: []string{"WARNING: Agent job still running"},
		},
		"timeout without an answer is an error": {
			script: endless, config: attrs{"wait": attrs{"enabled": true, "on_timeout": "warn"}, "timeouts": attrs{"read": "300ms"}},
			prepare: func(s *harness.Service, _ string) { s.Inject(simulator.Fault{Status: 503, Times: -1}) },
			says:    []string{"ERROR: Agent job still running", "503"},
		},
		"unknown job": {
			prepare: func(s *harness.Service, id string) { s.Forget(id) },
			says:    []string{"ERROR: Agent job not found", "job ID in project proj_1.", "project_id"},
		},
		"unknown job, waited for": {
			config:  attrs{"wait": attrs{"enabled": true, "on_timeout": "warn"}},
			prepare: func(s *harness.Service, id string) { s.Forget(id) },
			says:    []string{"ERROR: Agent job not found", "ID"},
		},
		"key refused": {
			prepare: func(s *harness.Service, _ string) {
				s.Inject(simulator.Fault{Status: 403, Body: `{"error":"no scope"}`})
			},
			says: []string{"ERROR: Failed to read agent job", "Job ID in project proj_1 could not be read.", "no scope", "admin_key"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			harness.Bubble(t, harness.Always(test.script), func(t *testing.T, s *harness.Service, c *fakecli.CLI) {
				id := s.Create(harness.Project, "write").ID
				if test.prepare != nil {
					test.prepare(s, id)
				}
				config := attrs{"id": id}
				maps.Copy(config, test.config)
				state, diags := c.Data(t.Context(), config)
				if fakecli.Failed(diags) != (test.status == nil) || len(diags) > 0 != (len(test.says) > 0) {
					t.Fatalf("diagnostics: %s", fakecli.Text(diags))
				}
				for _, words := range test.says {
					harness.Contains(t, fakecli.Text(diags), strings.ReplaceAll(words, "ID", id))
				}
				if got := c.Attribute(state, "status"); got != test.status {
					t.Errorf("status %v, want %v", got, test.status)
				}
				if test.status != nil && c.Attribute(state, "project_id") != harness.Project {
					t.Errorf("project_id is %v", c.Attribute(state, "project_id"))
				}
				s.Sent(t, 0, 0)
			})
		})
	}
}

func TestDataSource_noProject(t *testing.T) {
	t.Setenv("AGENT_PROJECT_ID", "")
	config := harness.NewService(t, nil).Attrs()
	delete(config, "project_id")
	_, diags := fakecli.New(t, config).Data(t.Context(), attrs{"id": "job_1"})
	fakecli.WantPath(t, diags, tftypes.NewAttributePath().WithAttributeName("project_id"))
}

func TestDataSourceInterrupted(t *testing.T) {
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

// A message of the same run leaves its mark: the former end does not count.
func TestDataSourceWaitsForWhatTheRunHasDone(t *testing.T) {
	harness.Bubble(t, func(_ string, turn int) simulator.Script {
		if turn == 0 {
			return simulator.Script{Duration: 10 * time.Second}
		}
		return simulator.Script{Duration: 20 * time.Second, Stale: 5 * time.Second, Status: "archived"}
	}, dataSourceAfterOwnChanges)
}

func dataSourceAfterOwnChanges(t *testing.T, s *harness.Service, c *fakecli.CLI) {
	noWait, waits := attrs{"enabled": false}, attrs{"enabled": true}
	if diags := c.Run(t.Context(), attrs{"prompt": "write", "wait": noWait}); fakecli.Failed(diags) {
		t.Fatal(fakecli.Text(diags))
	}
	config := attrs{"id": c.Get("id"), "wait": waits}
	// The service may store a job late.
	s.Inject(simulator.Fault{Kind: simulator.KindGet, Status: 404, Body: `{"error":"not found"}`})
	if state, diags := c.Data(t.Context(), config); c.Attribute(state, "status") != "completed" {
		t.Fatalf("after the create: %v %s", c.Attribute(state, "status"), fakecli.Text(diags))
	}
	if diags := c.Run(t.Context(), attrs{"prompt": "write more", "wait": noWait}); fakecli.Failed(diags) {
		t.Fatal(fakecli.Text(diags))
	}
	if state, diags := c.Data(t.Context(), config); c.Attribute(state, "status") != "archived" {
		t.Errorf("after the message: %v %s", c.Attribute(state, "status"), fakecli.Text(diags))
	}
	s.Sent(t, 1, 1)
}
