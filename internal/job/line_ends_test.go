// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// Git makes the line ends of heredocs and of files, and each checkout may make others. They start no job and send
// no message, neither from the state nor from the journal, and the plan is empty.
//
// Red without: ReplaceAll in promptText; promptText in saved and in recordedPrompt; the prompt in setValues.
func TestLineEnds_I02(t *testing.T) {
	type step struct {
		prompt            attrs
		isLost            bool // the state, and the one from before comes back
		isEmpty           bool // the plan
		says              []string
		creates, messages int // so far
	}
	const (
		followUp  = "WARNING: Follow-up message to agent job"
		announced = " of an earlier run will be taken over"
		taken     = " of an earlier run taken over"
	)
	for _, name := range []string{"prompt", "prompt_wo"} {
		of := func(text string) attrs { return attrs{name: text} }
		for change, steps := range map[string][]step{
			"to LF":      {{prompt: of("a\r\n\r\nb"), creates: 1}, {prompt: of("a\n\nb"), isEmpty: true, creates: 1}},
			"to CRLF":    {{prompt: of("a\n\nb"), creates: 1}, {prompt: of("a\r\n\r\nb"), isEmpty: true, creates: 1}},
			"CRLF twice": {{prompt: of("a\r\r\nb"), creates: 1}, {prompt: of("a\r\r\nb"), isEmpty: true, creates: 1}},
			"CR alone":   {{prompt: of("a\nb"), creates: 1}, {prompt: of("a\rb"), says: []string{followUp}, creates: 1, messages: 1}},
			"of a lost create": {
				{prompt: of("a\r\nb"), isLost: true, creates: 1},
				{prompt: of("a\nb"), says: []string{announced, taken}, creates: 1},
			},
			"of a lost message": {
				{prompt: of("a"), creates: 1},
				{prompt: of("a\nb"), isLost: true, says: []string{followUp}, creates: 1, messages: 1},
				{prompt: of("a\r\nb"), says: []string{announced, taken}, creates: 1, messages: 1},
			},
			"and attribute": {
				{prompt: of("a\r\nb"), creates: 1},
				{prompt: attrs{"prompt": "a\nb"}, creates: 1},
				{prompt: attrs{"prompt_wo": "a\r\nb"}, creates: 1},
				{prompt: of("a\nb"), creates: 1},
			},
		} {
			t.Run(name+", "+change, func(t *testing.T) {
				s := harness.NewService(t, harness.Always(simulator.Script{Duration: time.Hour}))
				config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": t.TempDir()}})
				c := fakecli.New(t, config)
				for run, step := range steps {
					before, job := *c, fakecli.With(step.prompt, attrs{"wait": attrs{"enabled": false}})
					diags := apply(t, c, cli.Run(fmt.Sprint("run", run)), config, job)
					harness.Contains(t, fakecli.Text(diags), step.says...)
					if len(diags) != len(step.says) {
						t.Errorf("run %d: %s", run, fakecli.Text(diags))
					}
					s.Sent(t, step.creates, step.messages)
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

// The service gets one text, whoever sends it.
func TestLineEnds_I02_sent(t *testing.T) {
	eachAction(t, simulator.Script{}, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
		c.Invoke(t.Context(), a.name, fakecli.With(a.config, attrs{"prompt": "a\r\nb\rc\n"}))
		prompts := s.OnlyJob(t).Prompts
		if diff := cmp.Diff("a\nb\rc\n", prompts[len(prompts)-1]); diff != "" {
			t.Errorf("prompt that was sent (-want +got):\n%s", diff)
		}
	})
}
