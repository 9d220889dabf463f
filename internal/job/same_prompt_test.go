// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// What an editor, a checkout or a heredoc changes and nobody sees starts no job and sends no message, neither
// from the state nor from the journal, and the plan is empty.
//
// Red without: comparedPrompt in request, promptHash, saved, lastPrompt and setValues. The edits: TestCanonical.
func TestSamePrompt_I02(t *testing.T) {
	type step struct {
		prompt            attrs
		isLost            bool // the state, and the one from before comes back
		isEmpty           bool // the plan
		says              []string
		creates, messages int // so far
	}
	for _, name := range []string{"prompt", "prompt_wo"} {
		of := func(text string) attrs { return attrs{name: text} }
		for change, steps := range map[string][]step{
			"to LF":      {{prompt: of("a\r\n\r\nb"), creates: 1}, {prompt: of("a\n\nb"), isEmpty: true, creates: 1}},
			"to heredoc": {{prompt: of("a\nb"), creates: 1}, {prompt: of("a\nb\n"), isEmpty: true, creates: 1}},
			"of a lost create": {
				{prompt: of("a\r\nb"), isLost: true, creates: 1},
				{prompt: of("\ufeffa \nb\n"), says: []string{adopted}, creates: 1},
			},
			"of a lost message": {
				{prompt: of("a"), creates: 1},
				{prompt: of("a\nb"), isLost: true, creates: 1, messages: 1},
				{prompt: of("\ufeffa \r\nb\n"), says: []string{countsAsSent}, creates: 1, messages: 1},
			},
			"and attribute": {
				{prompt: of("a\r\nb"), creates: 1},
				{prompt: attrs{"prompt": "a\nb\n"}, creates: 1},
				{prompt: attrs{"prompt_wo": "a \nb"}, creates: 1},
				{prompt: of("\ufeffa\nb"), creates: 1},
			},
			"and triggers": {
				{prompt: of("a"), creates: 1},
				{prompt: fakecli.With(of("a\n"), attrs{"triggers": attrs{}}), says: []string{"Active", "Active"}, creates: 2},
			},
		} {
			t.Run(name+", "+change, func(t *testing.T) {
				s := harness.NewService(t, harness.Always(simulator.Script{Duration: time.Hour}))
				config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": t.TempDir() + stateName}})
				c := fakecli.New(t, config)
				for run, step := range steps {
					before, created, job := *c, s.Counts().Create, fakecli.With(step.prompt, attrs{"wait": attrs{"enabled": false}})
					diags := apply(t, c, cli.Run(fmt.Sprint("run", run)), config, job)
					harness.Contains(t, fakecli.Text(diags), step.says...)
					if len(diags) != len(step.says) {
						t.Errorf("run %d: %s", run, fakecli.Text(diags))
					}
					s.Sent(t, step.creates, step.messages)
					if jobs := s.Jobs(); s.Counts().Create != created {
						want := strings.ReplaceAll(step.prompt[name].(string), "\r\n", "\n")
						if diff := cmp.Diff(want, jobs[len(jobs)-1].Prompts[0]); diff != "" {
							t.Errorf("run %d: prompt that was sent (-want +got):\n%s", run, diff)
						}
					}
					if inState, given := c.Get("prompt"), step.prompt["prompt"]; (inState == nil) != (given == nil) {
						t.Errorf("run %d: the prompt in the state is %q, want %q", run, inState, given)
					}
					if step.isEmpty && !c.Planned.Equal(before.State) {
						t.Errorf("run %d: the plan changes %s to %s", run, before.State, c.Planned)
					}
					if step.isLost {
						*c = before
					}
				}
			})
		}
	}
}

// The service gets what was written, but for CRLF, whoever sends it.
func TestSamePrompt_I02_sent(t *testing.T) {
	eachAction(t, simulator.Script{}, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
		c.Invoke(t.Context(), a.name, fakecli.With(a.config, attrs{"prompt": "\ufeffa \r\nb\rc\n"}))
		prompts := s.OnlyJob(t).Prompts
		if diff := cmp.Diff("\ufeffa \nb\rc\n", prompts[len(prompts)-1]); diff != "" {
			t.Errorf("prompt that was sent (-want +got):\n%s", diff)
		}
	})
}
