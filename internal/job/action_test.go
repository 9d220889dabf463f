// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// storedLate is what GET says of a job that the service has not stored yet.
var storedLate = simulator.Fault{Kind: simulator.KindGet, Status: 404, Body: `{"error":"not found"}`}

// actionCase is one of the two actions, ready to be invoked.
type actionCase struct {
	name   string
	config attrs
	kind   simulator.Kind
	jobID  string // the one that the message is for; empty for a start
}

// eachAction runs a test with each action in a bubble of its own, where jobs go
// as script says. The job that gets a message has ended before.
func eachAction(t *testing.T, script simulator.Script, test func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase)) {
	t.Helper()
	t.Run("start", func(t *testing.T) {
		harness.Bubble(t, harness.Always(script), func(t *testing.T, s *harness.Service, c *fakecli.CLI) {
			test(t, s, c, actionCase{"agent_start_job", attrs{"prompt": "write"}, simulator.KindCreate, ""})
		})
	})
	t.Run("message", func(t *testing.T) {
		harness.Bubble(t, harness.Always(script), func(t *testing.T, s *harness.Service, c *fakecli.CLI) {
			id := ended(s)
			test(t, s, c, actionCase{"agent_send_message", attrs{"prompt": "write", "job_id": id}, simulator.KindMessage, id})
		})
	})
}

// sentOnce asserts that the action's prompt has reached the service once.
func (a actionCase) sentOnce(t *testing.T, s *harness.Service) {
	t.Helper()
	if a.jobID == "" {
		s.Sent(t, 1, 0)
	} else {
		s.Sent(t, 0, 1)
	}
}

// Each row runs with both actions; ID is the job's.
func TestAction_ends(t *testing.T) {
	const link = "https://github.com/example/docs/pull/77"
	fails := func(link any) simulator.Script {
		return simulator.Script{Duration: 100 * time.Millisecond, Status: "failed", Extra: map[string]any{"prLink": link}}
	}
	endless, soon := simulator.Script{Duration: time.Hour}, attrs{"timeouts": attrs{"invoke": "300ms"}}
	warn := attrs{"wait": attrs{"on_failure": "warn"}}
	for name, test := range map[string]struct {
		script simulator.Script
		config attrs
		end    string   // of the line of progress after the first; empty: no line
		says   []string // what the diagnostics hold; none: there are none
	}{
		"the end from before a message": {
			simulator.Script{Duration: 900 * time.Millisecond, Stale: 400 * time.Millisecond, Status: "archived"}, nil,
			"archived (1s elapsed). Pull request: https://github.com/example/docs/pull/1", nil,
		},
		"odd link": {
			simulator.Script{Duration: 200 * time.Millisecond, Extra: map[string]any{"prLink": "javascript:alert(1)"}}, nil,
			"completed (0s elapsed). The service shows no pull request.", []string{"WARNING: Invalid pull request link"},
		},
		"A03 failed": {
			fails(nil), nil, "failed (0s elapsed). The service shows no pull request.",
			[]string{"ERROR: Agent job failed", "Job ID in project proj_1 accepted its prompt and then failed", "The service shows no pull request."},
		},
		"A03 failed with a link": {fails(link), nil, "failed (0s elapsed). Pull request: " + link, []string{"ERROR: Agent job failed", link}},
		"A03 on_failure = warn":  {fails(link), warn, "failed (0s elapsed). Pull request: " + link, []string{"WARNING: Agent job failed"}},
		"timeout": {
			endless, soon, "",
			[]string{"ERROR: Agent job still running", "job ID in project proj_1", "use the data source agent_job", "Running the action again sends the prompt again."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachAction(t, test.script, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
				want := []string{"Message sent to job ID in project proj_1."}
				if a.jobID == "" {
					want = []string{"Job ID started in project proj_1."}
					s.Inject(storedLate)
				}
				if test.end != "" {
					want = append(want, "Job ID finished with the status "+test.end)
				}
				progress, diags := c.Invoke(t.Context(), a.name, fakecli.With(a.config, test.config))
				id := s.OnlyJob(t).ID
				if diff := cmp.Diff(strings.ReplaceAll(strings.Join(want, "\n"), "ID", id), strings.Join(progress, "\n")); diff != "" {
					t.Errorf("progress (-want +got):\n%s", diff)
				}
				if len(diags) != min(len(test.says), 1) {
					t.Fatal(fakecli.Text(diags))
				}
				for _, words := range test.says {
					harness.Contains(t, fakecli.Text(diags), strings.ReplaceAll(words, "ID", id))
				}
				if len(diags) > 0 && diags[0].Attribute != nil {
					t.Errorf("it points at %s, which an action does not have", diags[0].Attribute)
				}
				a.sentOnce(t, s)
			})
		})
	}
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
			says:   []string{"ERROR: Outcome of ", "Running the action again sends it again."},
			create: "no response shows whether a job was started", message: "sent to job ID in project proj_1, and nothing shows whether it arrived", sends: true,
		},
		"refused": {
			before: func(s *harness.Service, _ *fakecli.CLI, a actionCase) {
				s.Inject(simulator.Fault{Kind: a.kind, Status: 404, Body: `{"error":"no such thing"}`})
			},
			says:   []string{"no such thing", "Once that is fixed, run the action again", "project_id"},
			create: "ERROR: Agent job not created: The service refused the prompt for project proj_1,", message: "ERROR: Message to agent job not accepted: The service refused the prompt for job ID in project proj_1,", sends: true,
		},
		// The CLI stops the provider once, and an action may begin after that.
		"after a stop": {
			before: func(_ *harness.Service, c *fakecli.CLI, _ actionCase) { c.Stop() },
			says:   []string{"The prompt was not sent to ", "interrupted"},
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
				harness.Contains(t, fakecli.Text(diags), append(test.says, says)...)
				if test.sends {
					a.sentOnce(t, s)
				} else {
					s.Sent(t, 0, 0)
				}
			})
		})
	}
}

// The wait ends before the job could be read.
func TestAction_neverRead(t *testing.T) {
	for status, summary := range map[int]string{401: "ERROR: Agent job still running", 404: "ERROR: Agent job not found"} {
		eachAction(t, simulator.Script{}, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
			s.Wire.Always(faultserver.Get, faultserver.Answer(status, ""))
			_, diags := c.Invoke(t.Context(), a.name, a.config)
			harness.Contains(t, fakecli.Text(diags), summary, s.OnlyJob(t).ID, fmt.Sprint(status), "Running the action again sends the prompt again.")
			a.sentOnce(t, s)
		})
	}
}

// A write-only prompt is sent like any other, and checked like any other. Red without:
// ValidateActionConfig of the plugin's server, ConfigValidators.
func TestAction_promptWO(t *testing.T) {
	for name, test := range map[string]struct {
		config attrs
		says   string
	}{
		"alone":   {attrs{"prompt": nil, "prompt_wo": "write"}, ""},
		"empty":   {attrs{"prompt": nil, "prompt_wo": " "}, "ERROR: Invalid prompt: The prompt is empty"},
		"neither": {attrs{"prompt": nil}, "Missing Attribute Configuration"},
		"both":    {attrs{"prompt_wo": "write"}, "Invalid Attribute Combination"},
	} {
		t.Run(name, func(t *testing.T) {
			eachAction(t, simulator.Script{}, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
				config := fakecli.With(a.config, test.config)
				if test.says != "" {
					wanted, diags := c.PlanAction(t.Context(), a.name, config)
					harness.Contains(t, fakecli.Text(diags), test.says)
					_, diags = c.InvokeUnplanned(t.Context(), a.name, wanted) // as if it had not been known
					harness.Contains(t, fakecli.Text(diags), "ERROR: Invalid prompt")
					s.Sent(t, 0, 0)
					return
				}
				_, diags := c.Invoke(t.Context(), a.name, config)
				if len(diags) > 0 {
					t.Error(fakecli.Text(diags))
				}
				a.sentOnce(t, s)
				if prompts := s.OnlyJob(t).Prompts; prompts[len(prompts)-1] != "write" {
					t.Errorf("prompts %q", prompts)
				}
			})
		})
	}
}

// Ctrl-C while the response is due: the provider stops within five seconds, and the
// action says that the outcome is unknown. Red without: WithGrace.
func TestAction_A04_stoppedWhileSending(t *testing.T) {
	eachAction(t, simulator.Script{}, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
		s.Inject(simulator.Fault{Kind: a.kind, AfterEffect: true, Delay: 20 * time.Second})
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		start := time.Now()
		_, diags := c.Invoke(ctx, a.name, a.config)
		if took := time.Since(start); took != 6*time.Second {
			t.Errorf("the action ended after %v, want 5s after Ctrl-C", took)
		}
		harness.Contains(t, fakecli.Text(diags), "ERROR: Outcome of ", "interrupted", "Running the action again sends it again.")
		a.sentOnce(t, s)
	})
}

// A status that the API does not document, then Ctrl-C in the wait.
func TestAction_A02_interrupted(t *testing.T) {
	eachAction(t, simulator.Script{Duration: time.Hour}, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
		var progress []string
		done := make(chan []*tfprotov6.Diagnostic)
		go func() {
			var diags []*tfprotov6.Diagnostic
			progress, diags = c.Invoke(t.Context(), a.name, a.config)
			done <- diags
		}()
		time.Sleep(time.Second)
		id := s.OnlyJob(t).ID
		s.SetStatus(id, "que\x1bued")
		time.Sleep(time.Second)
		start := time.Now()
		c.Stop()
		diags := <-done
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("stopped after %s", took)
		}
		if len(progress) != 2 || !strings.Contains(progress[0], id) || progress[1] != "Job "+id+` is que\u001bued (1s elapsed).` {
			t.Errorf("progress: %q", progress)
		}
		harness.Contains(t, fakecli.Text(diags), "ERROR: Agent job still running", id, "interrupted", "The state does not contain this job.")
		a.sentOnce(t, s)
	})
}

func TestAction_configuration(t *testing.T) {
	t.Setenv("AGENT_PROJECT_ID", "")
	eachAction(t, simulator.Script{}, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
		invoke := func(configured, arguments attrs) []*tfprotov6.Diagnostic {
			c.ConnectTo(t.Context(), provider.New("test", provider.Options{Dial: s.Wire.Dial}), fakecli.With(s.Attrs(), configured))
			_, diags := c.Invoke(t.Context(), a.name, fakecli.With(a.config, arguments))
			return diags
		}
		harness.Contains(t, fakecli.Text(invoke(attrs{"admin_key": unknown{}}, nil)), "ERROR: Agent provider not configured")
		fakecli.WantPath(t, invoke(attrs{"project_id": nil}, nil), "project_id")
		s.Sent(t, 0, 0)
		if diags := invoke(attrs{"project_id": nil}, attrs{"project_id": harness.Project}); len(diags) > 0 {
			t.Error(fakecli.Text(diags))
		}
		a.sentOnce(t, s)
	})
}
