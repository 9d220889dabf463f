// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	jobID  string // the one that the message is for; empty for a start
}

// eachAction runs a test with each action in a bubble of its own, where jobs go
// as script says. The job that gets a message has ended before. The prompt must reach the
// service once.
func eachAction(t *testing.T, script simulator.Script, test func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase)) {
	t.Helper()
	t.Run("start", func(t *testing.T) {
		harness.Bubble(t, harness.Always(script), func(t *testing.T, s *harness.Service, c *fakecli.CLI) {
			test(t, s, c, actionCase{"agent_start_job", attrs{"prompt": "write"}, ""})
			s.Sent(t, 1, 0)
		})
	})
	t.Run("message", func(t *testing.T) {
		harness.Bubble(t, harness.Always(script), func(t *testing.T, s *harness.Service, c *fakecli.CLI) {
			id := ended(s)
			test(t, s, c, actionCase{"agent_send_message", attrs{"prompt": "write", "job_id": id}, id})
			s.Sent(t, 0, 1)
		})
	})
}

// Each row runs with both actions; ID is the job's.
func TestAction_ends(t *testing.T) {
	const link, repeats = "https://github.com/example/docs/pull/77", "Running the action again sends the prompt again."
	fails := simulator.Script{Duration: 100 * time.Millisecond, Status: "failed", Extra: map[string]any{"prLink": link}}
	endless := simulator.Script{Duration: time.Hour}
	for name, test := range map[string]struct {
		script simulator.Script
		config attrs
		poll   int      // status of each response to a GET; 0: the record
		end    string   // of the line of progress after the first; empty: no line
		says   []string // what the diagnostic holds; none: there is none
	}{
		"the end from before a message": {
			script: simulator.Script{Duration: 900 * time.Millisecond, Stale: 400 * time.Millisecond, Status: "archived"},
			end:    "archived (1s elapsed). The service shows no pull request.",
			says:   []string{"ERROR: Agent job archived", "before any run saw it complete", "run the action again."},
		},
		"archived, with a link": {
			script: simulator.Script{Status: "archived", Duration: time.Second, Extra: attrs{"prLink": link}},
			end:    "archived (1s elapsed). Pull request: " + link, says: []string{"WARNING: Agent job archived"},
		},
		"odd link": {
			script: simulator.Script{Duration: 200 * time.Millisecond, Extra: map[string]any{"prLink": "javascript:alert(1)"}},
			end:    "completed (0s elapsed). The service shows no pull request.",
			says:   []string{"WARNING: Invalid pull request link"},
		},
		"A03 failed": {
			script: fails, end: "failed (0s elapsed). Pull request: " + link,
			says: []string{"ERROR: Agent job failed", "Job ID in project proj_1 accepted its prompt and then failed", link},
		},
		"A03 on_failure = warn": {
			script: fails, config: attrs{"wait": attrs{"on_failure": "warn"}}, end: "failed (0s elapsed). Pull request: " + link,
			says: []string{"WARNING: Agent job failed"},
		},
		"timeout": {
			script: endless, config: attrs{"timeouts": attrs{"invoke": "300ms"}},
			says: []string{"ERROR: Agent job still running", "job ID in project proj_1", "use the data source agent_job", repeats},
		},
		"key rejected": {poll: 401, says: []string{"ERROR: Agent job still running", "job ID in project proj_1", "401"}},
		"never found":  {poll: 404, says: []string{"ERROR: Agent job not found", "job ID in project proj_1", "404", repeats}},
	} {
		t.Run(name, func(t *testing.T) {
			eachAction(t, test.script, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
				want := []string{"Message sent to job ID in project proj_1."}
				if a.jobID == "" {
					want = []string{"Job ID started in project proj_1."}
					s.Inject(simulator.Fault{Kind: simulator.KindGet, Status: 404}) // it is not stored yet
				}
				if test.end != "" {
					want = append(want, "Job ID finished with the status "+test.end)
				}
				if test.poll != 0 {
					s.Wire.Break(http.MethodGet, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(test.poll) })
				}
				progress, diags := c.Invoke(t.Context(), a.name, fakecli.With(a.config, test.config))
				id := s.OnlyJob(t).ID
				roughly := strings.NewReplacer("ID", id, "(1s", "(0s") // how soon a 404 is read again is random
				if diff := cmp.Diff(roughly.Replace(strings.Join(want, "\n")), roughly.Replace(strings.Join(progress, "\n"))); diff != "" {
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
			})
		})
	}
}

// The job is done before the first poll.
func TestAction_M02_notSeenActive(t *testing.T) {
	harness.Bubble(t, harness.Always(simulator.Script{}), func(t *testing.T, s *harness.Service, c *fakecli.CLI) {
		id := ended(s)
		_, diags := c.Invoke(t.Context(), "agent_send_message", attrs{"prompt": "write", "job_id": id})
		harness.Contains(t, fakecli.Text(diags), "WARNING: Agent job not seen active: Job "+id+" in project proj_1 accepted the message.")
	})
}

// The outcome of the POST is an error; before the first line of progress. Ctrl-C comes after a second.
// Red without: WithGrace.
func TestAction_notAccepted(t *testing.T) {
	for name, test := range map[string]struct {
		play http.HandlerFunc
		took time.Duration
		says []string // TARGET is where the prompt goes
	}{
		"A01 unknown outcome": {
			faultserver.EOF, 0, []string{"ERROR: Outcome of ", "The prompt was sent to TARGET, and no", "Running the action again sends it again."},
		},
		"A04 no response within five seconds after Ctrl-C": {
			func(http.ResponseWriter, *http.Request) { time.Sleep(time.Minute) }, 6 * time.Second,
			[]string{"ERROR: Outcome of ", "interrupted", "Running the action again sends it again."},
		},
		"refused": {
			func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, `{"error":"no such thing"}`, http.StatusNotFound)
			}, 0,
			[]string{"The service refused the prompt for TARGET,", "no such thing", "Once that is fixed, run the action again", "project_id"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachAction(t, simulator.Script{}, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
				s.Wire.Break(http.MethodPost, test.play)
				ctx, stop := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, stop)
				start := time.Now()
				progress, diags := c.Invoke(ctx, a.name, a.config)
				if took := time.Since(start); took != test.took || len(progress) > 0 {
					t.Errorf("ended after %v, want %v; progress: %q", took, test.took, progress)
				}
				target := "project proj_1"
				if a.jobID != "" {
					target = "job " + a.jobID + " in " + target
				}
				for _, words := range test.says {
					harness.Contains(t, fakecli.Text(diags), strings.ReplaceAll(words, "TARGET", target))
				}
			})
		})
	}
}

// A write-only prompt is sent like any other, and checked like any other. Without a default project, the action needs
// one. Red without: ValidateActionConfig of the plugin's server, ConfigValidators, ModifyPlan.
func TestAction_arguments(t *testing.T) {
	t.Setenv("AGENT_PROJECT_ID", "")
	eachAction(t, simulator.Script{Duration: time.Second}, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
		c.ConnectTo(t.Context(), provider.New("test", provider.Options{Dial: s.Wire.Dial}), fakecli.With(s.Attrs(), attrs{"project_id": nil}))
		_, diags := c.PlanAction(t.Context(), a.name, a.config)
		fakecli.WantPath(t, diags, "project_id")
		a.config["project_id"] = harness.Project
		for says, test := range map[string]struct {
			config attrs
			late   string // what the action says of values that the plan did not know
		}{
			"ERROR: Invalid prompt: The prompt is empty": {attrs{"prompt": nil, "prompt_wo": " "}, "The prompt is empty"},
			"Missing Attribute Configuration":            {attrs{"prompt": nil}, "apply -invoke passes no ephemeral value."},
			"Invalid Attribute Combination":              {attrs{"prompt_wo": "write"}, "Both prompt and prompt_wo have a value"},
		} {
			wanted, diags := c.PlanAction(t.Context(), a.name, fakecli.With(a.config, test.config))
			harness.Contains(t, fakecli.Text(diags), says)
			_, diags = c.InvokeUnplanned(t.Context(), a.name, wanted)
			harness.Contains(t, fakecli.Text(diags), "ERROR: Invalid prompt: ", test.late, "sent to project "+harness.Project)
		}
		for _, id := range []any{"", nil, "a/b"} {
			if a.jobID != "" { // an id that the plan does not know, and that then is none, starts no job
				wanted, _ := c.PlanAction(t.Context(), a.name, fakecli.With(a.config, attrs{"job_id": id}))
				_, diags = c.InvokeUnplanned(t.Context(), a.name, wanted)
				fakecli.WantPath(t, diags, "job_id")
			}
		}
		s.Sent(t, 0, 0)
		_, diags = c.Invoke(t.Context(), a.name, fakecli.With(a.config, attrs{"prompt": nil, "prompt_wo": "\ufeffa \r\nb\rc\n"}))
		if prompts := s.OnlyJob(t).Prompts; len(diags) > 0 || prompts[len(prompts)-1] != "\ufeffa \nb\rc\n" { // as written, but for CRLF
			t.Errorf("prompts %q: %s", prompts, fakecli.Text(diags))
		}
	})
}

// A status that the API does not document, then Ctrl-C in the wait.
func TestAction_A02_interrupted(t *testing.T) {
	eachAction(t, simulator.Script{Duration: time.Hour}, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
		time.AfterFunc(time.Second, func() { s.SetStatus(s.Jobs()[0].ID, "que\x1bued") })
		time.AfterFunc(2*time.Second, c.Stop)
		start := time.Now()
		progress, diags := c.Invoke(t.Context(), a.name, a.config)
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("stopped after %s, want at most 2s after Ctrl-C", took)
		}
		id := s.OnlyJob(t).ID
		if len(progress) != 2 || !strings.Contains(progress[0], id) || progress[1] != "Job "+id+` is que\u001bued (1s elapsed).` {
			t.Errorf("progress: %q", progress)
		}
		harness.Contains(t, fakecli.Text(diags), "ERROR: Agent job still running", id, "interrupted", "An action stores no job in the state.")

		// The CLI stops the provider once, and an action may begin after that.
		progress, diags = c.Invoke(t.Context(), a.name, a.config)
		harness.Contains(t, fakecli.Text(diags), "The prompt was not sent to ", "interrupted")
		if len(progress) > 0 {
			t.Errorf("progress: %q", progress)
		}
	})
}
