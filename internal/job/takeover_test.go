// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// What others say of an unknown outcome is shown where an entry keeps a wrapper such as
// Terragrunt from sending the request again because of these words, and nowhere else.
//
// Red without: Whole in unknownOutcome, the condition of it, ownWords.
func TestUnknownOutcome_wordsOfOthers(t *testing.T) {
	const words = "i/o timeout of tcp upstream"
	for _, kept := range []bool{true, false} {
		s := harness.NewService(t, nil)
		config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": t.TempDir(), "enabled": kept}})
		s.Inject(simulator.Fault{Kind: simulator.KindCreate, Status: 503, Body: `{"error":"` + words + `"}`})
		text := fakecli.Text(apply(t, fakecli.New(t, config), "run", config, attrs{"prompt": "write"}))
		if !strings.Contains(text, "Outcome of ") || strings.Contains(text, words) != kept {
			t.Errorf("journal %t: want the words %t: %s", kept, kept, text)
		}
	}
}

// An apply takes over what was sent for the same request only, sends a change, and after an
// import sends nothing: also with an argument that is added later. What is not sent counts for no limit.
//
// Red without: any argument in createKey, the prompt in messageKey, any condition of newPrompt and newTriggers.
func TestTakeOver_everyArgument(t *testing.T) {
	neverSent := []string{"wait", "timeouts"}
	values := map[string][3]any{ // the last one may be nil
		"prompt": {"A", "B", "C"}, "prompt_wo": {"A", "B", "C"}, "project_id": {"proj_1", "proj_2", "proj_3"},
		"triggers": {attrs{"v": "1"}, attrs{"v": "2"}, nil},
	}
	for _, attribute := range fakecli.Unconfigured(t).Schemas().ResourceSchemas["agent_job"].Block.Attributes {
		name := attribute.Name
		if !attribute.Optional && !attribute.Required || slices.Contains(neverSent, name) {
			continue
		}
		if _, known := values[name]; !known {
			t.Errorf("%s: give it three values here if requests may differ in it, or else add it to neverSent", name)
		}
		type step struct {
			value, posts int  // posts so far
			isLost       bool // the state, and the one from before comes back
		}
		for what, steps := range map[string][]step{
			"import":       {{0, 0, false}},
			"lost create":  {{0, 1, true}, {0, 1, true}, {1, 2, false}},
			"lost message": {{0, 1, false}, {1, 2, true}, {1, 2, true}, {2, 3, false}}, // or replacement
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				s := harness.NewService(t, nil)
				config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": t.TempDir()}})
				c := fakecli.New(t, config)
				if what == "import" {
					c.ImportState(t.Context(), harness.Project+"/"+ended(s))
				}
				for run, step := range steps {
					before, job := *c, attrs{"prompt": "write", "wait": attrs{"enabled": false}}
					if name == "prompt_wo" {
						delete(job, "prompt")
					}
					job[name] = values[name][step.value]
					provider, sent := config, s.Counts()
					if sent.Create+sent.Message == step.posts { // nothing is due that would count
						provider = fakecli.With(config, attrs{"max_new_jobs": 0, "max_messages": 0})
					}
					diags := apply(t, c, cli.Run(fmt.Sprint("run", run)), provider, job)
					if got := s.Counts(); got.Create+got.Message != step.posts || fakecli.Failed(diags) {
						t.Fatalf("run %d, %v: %d POSTs so far, want %d. Is %s in createKey or messageKey (journal.go), and, unless the job was imported, in compare (plan.go)?\n%s",
							run, job[name], got.Create+got.Message, step.posts, name, fakecli.Text(diags))
					}
					if step.isLost {
						*c = before
					}
				}
			})
		}
	}
}

// A message that the service refused shows nothing about an earlier one whose
// state was lost: the journal still has that.
//
// Red without: Send keeping the entry of a refused message out of the
// private state; red when a refused prompt is saved.
func TestRefusedMessage_M03_doesNotForgetEarlierOne(t *testing.T) {
	folder := t.TempDir()
	harness.Bubble(t, harness.Always(simulator.Script{}), func(t *testing.T, s *harness.Service, c *fakecli.CLI) {
		config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": folder}})
		run := func(name cli.Run, prompt string) string {
			options := provider.Options{Process: harness.Process(name), Dial: s.Wire.Dial}
			c.ConnectTo(t.Context(), provider.New("test", options), config)
			return fakecli.Text(c.Run(t.Context(), attrs{"prompt": prompt, "wait": attrs{"enabled": false}}))
		}
		run("first", "A")
		before := *c
		run("second", "B")
		time.Sleep(time.Minute) // C must be later than B by more than the journal's clockError
		*c = before
		s.Inject(simulator.Fault{Kind: simulator.KindMessage, Status: 409})
		harness.Contains(t, run("third", "C"), "Message to agent job not accepted", "The service responded with 409")
		s.Sent(t, 1, 2)
		if got := c.Get("prompt"); got != "A" {
			t.Errorf("the prompt in the state is %v", got)
		}
		harness.Contains(t, run("fourth", "B"), "taken over", "Message of an earlier run taken over")
		s.Sent(t, 1, 2)
	})
}
