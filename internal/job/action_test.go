// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// actionCase is one of the two actions, ready to be invoked.
type actionCase struct {
	name   string
	config attrs
	kind   simulator.Kind
	// jobID is the one that the message is for; empty for a start.
	jobID string
}

// eachAction runs a test with each action in a bubble of its own, where jobs go
// as script says. The job that gets a message has ended before.
func eachAction(t *testing.T, script simulator.Script, test func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase)) {
	t.Helper()
	scripts := func(prompt string, _ int) simulator.Script {
		if prompt == "before" {
			return simulator.Script{}
		}
		return script
	}
	for _, name := range []string{"agent_start_job", "agent_send_message"} {
		t.Run(name, func(t *testing.T) {
			harness.Bubble(t, scripts, func(t *testing.T, s *harness.Service, c *fakecli.CLI) {
				a := actionCase{name: name, config: attrs{"prompt": "write"}, kind: simulator.KindCreate}
				if name == "agent_send_message" {
					a.jobID, a.kind = s.Create(harness.Project, "before").ID, simulator.KindMessage
					a.config["id"] = a.jobID
				}
				test(t, s, c, a)
			})
		})
	}
}

// sentOnce asserts that the action's prompt has reached the service once.
func (a actionCase) sentOnce(t *testing.T, s *harness.Service) {
	t.Helper()
	if a.kind == simulator.KindCreate {
		s.Sent(t, 1, 0)
	} else {
		s.Sent(t, 0, 1)
	}
}

func TestActionWaits(t *testing.T) {
	eachAction(t, simulator.Script{Duration: 200 * time.Millisecond}, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
		if a.jobID == "" { // the service may store a job late
			s.Inject(simulator.Fault{Kind: simulator.KindGet, Status: 404, Body: `{"error":"not found"}`})
		}
		progress, diags := c.Invoke(t.Context(), a.name, a.config)
		if len(diags) > 0 {
			t.Fatal(fakecli.Text(diags))
		}
		job := s.OnlyJob(t)
		first := "Job " + job.ID + " started in project proj_1."
		if a.jobID != "" {
			first = "Message sent to job " + job.ID + " in project proj_1."
		}
		want := []string{first, "Job " + job.ID + " ended as completed (0s elapsed). Pull request: https://github.com/example/docs/pull/1"}
		if diff := cmp.Diff(want, progress); diff != "" {
			t.Errorf("progress (-want +got):\n%s", diff)
		}
		a.sentOnce(t, s)
	})
}

// A data source of the same run can wait instead, and knows what the action has done.
func TestActionWithoutWait(t *testing.T) {
	eachAction(t, simulator.Script{Duration: 900 * time.Millisecond, Stale: 400 * time.Millisecond, Status: "archived"}, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
		a.config["wait"] = attrs{"enabled": false}
		progress, diags := c.Invoke(t.Context(), a.name, a.config)
		if len(diags) > 0 || len(progress) != 1 {
			t.Errorf("progress %q, diagnostics %s", progress, fakecli.Text(diags))
		}
		if got := s.Counts().Get; got != 0 {
			t.Errorf("%d GETs", got)
		}
		if a.jobID == "" { // the service may store a job late
			s.Inject(simulator.Fault{Kind: simulator.KindGet, Status: 404, Body: `{"error":"not found"}`})
		}
		state, diags := c.Data(t.Context(), attrs{"id": s.OnlyJob(t).ID, "wait": attrs{"enabled": true}})
		if status := c.Attribute(state, "status"); status != "archived" {
			t.Errorf("status %v: %s", status, fakecli.Text(diags))
		}
		a.sentOnce(t, s)
	})
}

// The end from before a message does not count.
func TestActionMessageSeesStaleRecords(t *testing.T) {
	eachAction(t, simulator.Script{Duration: 900 * time.Millisecond, Stale: 400 * time.Millisecond, Status: "archived"},
		func(t *testing.T, _ *harness.Service, c *fakecli.CLI, a actionCase) {
			progress, diags := c.Invoke(t.Context(), a.name, a.config)
			if len(diags) > 0 {
				t.Fatal(fakecli.Text(diags))
			}
			for _, line := range progress {
				if strings.Contains(line, "completed") {
					t.Errorf("the former end was taken for the new one: %s", line)
				}
			}
			harness.Contains(t, progress[len(progress)-1], "ended as archived (1s elapsed)")
		})
}

func TestActionTellsOddLinks(t *testing.T) {
	eachAction(t, simulator.Script{Duration: 200 * time.Millisecond, Extra: map[string]any{"prLink": "javascript:alert(1)"}}, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
		progress, diags := c.Invoke(t.Context(), a.name, a.config)
		harness.Contains(t, fakecli.Text(diags), "WARNING: Pull request link left out")
		harness.Contains(t, progress[len(progress)-1], "It opened no pull request.")
		for _, d := range diags {
			if d.Attribute != nil {
				t.Errorf("a warning points at %s, which an action does not have", d.Attribute)
			}
		}
	})
}

func TestActionTellsStatuses(t *testing.T) {
	eachAction(t, simulator.Script{Duration: time.Hour}, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
		progress := &fakecli.Lines{Seen: make(chan struct{})}
		done := make(chan []*tfprotov6.Diagnostic)
		go func() { done <- c.InvokeInto(t.Context(), progress, a.name, a.config) }()
		<-progress.Seen
		id := s.OnlyJob(t).ID
		s.SetStatus(id, "que\x1bued")
		for progress.Count() < 2 {
			time.Sleep(5 * time.Millisecond)
		}
		s.SetStatus(id, "completed")
		if diags := <-done; len(diags) > 0 {
			t.Error(fakecli.Text(diags))
		}
		if len(progress.All) != 3 || progress.All[1] != "Job "+id+` is que\u001bued (0s elapsed).` {
			t.Errorf("progress: %q", progress.All)
		}
	})
}

// A01: the outcome of the POST is unknown.
func TestActionA01UnknownOutcome(t *testing.T) {
	eachAction(t, simulator.Script{Duration: time.Hour}, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
		s.Wire.Script(faultserver.Kind(a.kind), faultserver.Effect(faultserver.EOF))
		progress, diags := c.Invoke(t.Context(), a.name, a.config)
		if len(progress) > 0 {
			t.Errorf("progress: %q", progress)
		}
		harness.Contains(t, fakecli.Text(diags), "ERROR: Failed to", "no answer tells its outcome", "It will not be sent again by itself.", "before you run the action again")
		if a.jobID == "" {
			harness.Contains(t, fakecli.Text(diags), "a job may have been started", harness.Project)
		} else {
			harness.Contains(t, fakecli.Text(diags), "sent to job "+a.jobID+" in project proj_1", "it may have arrived")
		}
		a.sentOnce(t, s)
	})
}

// A02: Ctrl-C in the wait.
func TestActionA02Interrupted(t *testing.T) {
	eachAction(t, simulator.Script{Duration: time.Hour}, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
		a.config["wait"] = attrs{"on_timeout": "warn"} // an interrupt is an error all the same
		progress := &fakecli.Lines{Seen: make(chan struct{})}
		done := make(chan []*tfprotov6.Diagnostic)
		go func() { done <- c.InvokeInto(t.Context(), progress, a.name, a.config) }()
		<-progress.Seen
		start := time.Now()
		c.Stop()
		diags := <-done
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("stopped after %s", took)
		}
		id := s.OnlyJob(t).ID
		harness.Contains(t, progress.All[0], id)
		harness.Contains(t, fakecli.Text(diags), "ERROR: Agent job still running", id, "interrupted", "Terraform keeps no record of it.")
		a.sentOnce(t, s)
	})
}

// The CLI stops the provider once: an action that begins after it sends nothing.
func TestActionAfterAStop(t *testing.T) {
	eachAction(t, simulator.Script{}, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
		before := s.Counts()
		c.Stop()
		_, diags := c.Invoke(t.Context(), a.name, a.config)
		harness.Contains(t, fakecli.Text(diags), "ERROR: Failed to", "Nothing was sent", "interrupted")
		if diff := cmp.Diff(before, s.Counts()); diff != "" {
			t.Errorf("requests (-before +after):\n%s", diff)
		}
	})
}

// A03: the job ends as failed.
func TestActionA03JobFails(t *testing.T) {
	const link = "https://github.com/example/docs/pull/77"
	for name, test := range map[string]struct {
		link any
		says string
	}{
		"with a link":    {link: link, says: link},
		"without a link": {says: "It opened no pull request."},
	} {
		t.Run(name, func(t *testing.T) {
			script := simulator.Script{Duration: 100 * time.Millisecond, Status: "failed", Extra: map[string]any{"prLink": test.link}}
			eachAction(t, script, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
				progress, diags := c.Invoke(t.Context(), a.name, a.config)
				id := s.OnlyJob(t).ID
				harness.Contains(t, progress[len(progress)-1], id, "ended as failed")
				harness.Contains(t, fakecli.Text(diags), "ERROR: Agent job failed", "Job "+id+" in project proj_1 ended as failed", test.says)
				a.sentOnce(t, s)

				a.config["wait"] = attrs{"on_failure": "warn"}
				if a.jobID != "" { // a failed job takes no message
					a.config["id"] = s.Create(harness.Project, "before").ID
				}
				_, diags = c.Invoke(t.Context(), a.name, a.config)
				harness.Contains(t, fakecli.Text(diags), "WARNING: Agent job failed")
				if fakecli.Failed(diags) {
					t.Error("on_failure = warn fails")
				}
			})
		})
	}
}
