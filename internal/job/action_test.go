// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/provider"
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

// start invokes the action and returns after its first line of progress.
func (a actionCase) start(t *testing.T, c *fakecli.CLI) (*fakecli.Lines, <-chan []*tfprotov6.Diagnostic) {
	t.Helper()
	progress, done := &fakecli.Lines{Seen: make(chan struct{})}, make(chan []*tfprotov6.Diagnostic)
	go func() { done <- c.InvokeInto(t.Context(), progress, a.name, a.config) }()
	<-progress.Seen
	return progress, done
}

// Each row runs with both actions; ID is the job's.
func TestAction_ends(t *testing.T) {
	const link = "https://github.com/example/docs/pull/77"
	fails := func(link any) simulator.Script {
		return simulator.Script{Duration: 100 * time.Millisecond, Status: "failed", Extra: map[string]any{"prLink": link}}
	}
	endless, warn := simulator.Script{Duration: time.Hour}, attrs{"wait": attrs{"on_failure": "warn", "on_timeout": "warn"}}
	soon := attrs{"timeouts": attrs{"invoke": "300ms"}}
	for name, test := range map[string]struct {
		script simulator.Script
		config attrs
		end    string   // the line of progress after the first; empty: none
		says   []string // what the diagnostics hold; none: there are none
	}{
		"completed": {
			script: simulator.Script{Duration: 200 * time.Millisecond},
			end:    "Job ID finished with the status completed (0s elapsed). Pull request: https://github.com/example/docs/pull/1",
		},
		"the end from before a message": {
			script: simulator.Script{Duration: 900 * time.Millisecond, Stale: 400 * time.Millisecond, Status: "archived"},
			end:    "Job ID finished with the status archived (1s elapsed). Pull request: https://github.com/example/docs/pull/1",
		},
		"odd link": {
			script: simulator.Script{Duration: 200 * time.Millisecond, Extra: map[string]any{"prLink": "javascript:alert(1)"}},
			end:    "Job ID finished with the status completed (0s elapsed). It opened no pull request.", says: []string{"WARNING: Invalid pull request link"},
		},
		"A03 failed": {
			script: fails(nil), end: "Job ID finished with the status failed (0s elapsed). It opened no pull request.",
			says: []string{"ERROR: Agent job failed", "Job ID in project proj_1 failed", "It opened no pull request."},
		},
		"A03 failed with a link": {
			script: fails(link), end: "Job ID finished with the status failed (0s elapsed). Pull request: " + link, says: []string{"ERROR: Agent job failed", link},
		},
		"A03 failed, on_failure = warn": {
			script: fails(link), config: warn, end: "Job ID finished with the status failed (0s elapsed). Pull request: " + link, says: []string{"WARNING: Agent job failed"},
		},
		"timeout": {
			script: endless, config: soon,
			says: []string{"ERROR: Agent job still running", "job ID in project proj_1", "use the data source agent_job", "Running the action again sends the prompt again."},
		},
		"timeout, on_timeout = warn": {script: endless, config: fakecli.With(soon, warn), says: []string{"WARNING: Agent job still running"}},
	} {
		t.Run(name, func(t *testing.T) {
			eachAction(t, test.script, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
				start := "Message sent to job ID in project proj_1."
				if a.jobID == "" { // the service may store a job late
					start = "Job ID started in project proj_1."
					s.Inject(simulator.Fault{Kind: simulator.KindGet, Status: 404, Body: `{"error":"not found"}`})
				}
				progress, diags := c.Invoke(t.Context(), a.name, fakecli.With(a.config, test.config))
				withID := func(text string) string { return strings.ReplaceAll(text, "ID", s.OnlyJob(t).ID) }
				want := []string{withID(start)}
				if test.end != "" {
					want = append(want, withID(test.end))
				}
				if diff := cmp.Diff(want, progress); diff != "" {
					t.Errorf("progress (-want +got):\n%s", diff)
				}
				if len(diags) != min(len(test.says), 1) {
					t.Fatal(fakecli.Text(diags))
				}
				for _, words := range test.says {
					harness.Contains(t, fakecli.Text(diags), withID(words))
				}
				if len(diags) > 0 && diags[0].Attribute != nil {
					t.Errorf("it points at %s, which an action does not have", diags[0].Attribute)
				}
				a.sentOnce(t, s)
			})
		})
	}
}

// A data source of the same run can wait instead, and knows what the action has done.
func TestAction_withoutWait(t *testing.T) {
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

// The outcome of the POST is an error; before the first line of progress.
func TestAction_notAccepted(t *testing.T) {
	for name, test := range map[string]struct {
		before          func(s *harness.Service, c *fakecli.CLI, a actionCase)
		says            []string
		create, message string // what one of them says
		sends           bool
	}{
		"A01 unknown outcome": {
			before: func(s *harness.Service, _ *fakecli.CLI, a actionCase) {
				s.Wire.Script(faultserver.Kind(a.kind), faultserver.Effect(faultserver.EOF))
			},
			says:   []string{"no response shows its outcome", "It is not sent again automatically.", "before you run the action again"},
			create: "a job may have been started", message: "sent to job ID in project proj_1, but", sends: true,
		},
		"refused": {
			before: func(s *harness.Service, _ *fakecli.CLI, a actionCase) {
				s.Inject(simulator.Fault{Kind: a.kind, Status: 404, Body: `{"error":"no such thing"}`})
			},
			says:   []string{"no such thing", "so the prompt had no effect", "project_id"},
			create: "refused the request to project proj_1,", message: "refused the request to job ID in project proj_1,", sends: true,
		},
		// The CLI stops the provider once, and an action may begin after that.
		"after a stop": {
			before: func(_ *harness.Service, c *fakecli.CLI, _ actionCase) { c.Stop() },
			says:   []string{"The request was not sent to ", "interrupted"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachAction(t, simulator.Script{}, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
				test.before(s, c, a)
				progress, diags := c.Invoke(t.Context(), a.name, a.config)
				if len(progress) > 0 {
					t.Errorf("progress: %q", progress)
				}
				says := test.create
				if a.jobID != "" {
					says = strings.ReplaceAll(test.message, "ID", a.jobID)
				}
				harness.Contains(t, fakecli.Text(diags), append(test.says, "ERROR: Failed to", says)...)
				if test.sends {
					a.sentOnce(t, s)
				} else {
					s.Sent(t, 0, 0)
				}
			})
		})
	}
}

func TestAction_statuses(t *testing.T) {
	eachAction(t, simulator.Script{Duration: time.Hour}, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
		progress, done := a.start(t, c)
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

// Ctrl-C in the wait.
func TestAction_A02_interrupted(t *testing.T) {
	eachAction(t, simulator.Script{Duration: time.Hour}, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
		a.config["wait"] = attrs{"on_timeout": "warn"} // an interrupt is an error all the same
		progress, done := a.start(t, c)
		start := time.Now()
		c.Stop()
		diags := <-done
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("stopped after %s", took)
		}
		id := s.OnlyJob(t).ID
		harness.Contains(t, progress.All[0], id)
		harness.Contains(t, fakecli.Text(diags), "ERROR: Agent job still running", id, "interrupted", "The state does not contain this job.")
		a.sentOnce(t, s)
	})
}

func TestAction_configuration(t *testing.T) {
	eachAction(t, simulator.Script{}, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
		invoke := func(configured, arguments attrs) []*tfprotov6.Diagnostic {
			c.ConnectTo(t.Context(), provider.New("test", provider.Options{Dial: s.Wire.Dial}), fakecli.With(s.Attrs(), configured))
			_, diags := c.Invoke(t.Context(), a.name, fakecli.With(a.config, arguments))
			return diags
		}
		harness.Contains(t, fakecli.Text(invoke(attrs{"admin_key": unknown{}}, nil)), "ERROR: Agent provider not configured", "Not known yet: admin_key.")

		t.Setenv("AGENT_PROJECT_ID", "")
		diags := invoke(attrs{"project_id": nil}, nil)
		fakecli.WantPath(t, diags, tftypes.NewAttributePath().WithAttributeName("project_id"))
		harness.Contains(t, fakecli.Text(diags), "AGENT_PROJECT_ID")
		s.Sent(t, 0, 0)

		if diags := invoke(attrs{"project_id": nil}, attrs{"project_id": harness.Project}); len(diags) > 0 {
			t.Error(fakecli.Text(diags))
		}
		a.sentOnce(t, s)
	})
}
