// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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
	for _, enabled := range []bool{true, false} {
		s := harness.NewService(t, nil)
		config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": t.TempDir(), "enabled": enabled}})
		s.Inject(simulator.Fault{Kind: simulator.KindCreate, Status: 503, Body: `{"error":"` + words + `"}`})
		text := fakecli.Text(apply(t, fakecli.New(t, config), "run", config, attrs{"prompt": "write"}))
		if !strings.Contains(text, "Outcome of ") || strings.Contains(text, words) != enabled {
			t.Errorf("journal %t: want the words %t: %s", enabled, enabled, text)
		}
	}
}

// An apply takes over what was sent for the same request only, sends a change, and after an
// import sends nothing: also with an argument that is added later. What is not sent counts for no limit.
//
// Red without: any argument in requestKey, any condition of newPrompt and newTriggers.
func TestTakeOver_everyArgument(t *testing.T) {
	neverSent := []string{"wait", "timeouts", "name"} // a name: TestName
	values := map[string][3]any{                      // the last one may be nil
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
						t.Fatalf("run %d, %v: %d POSTs so far, want %d. Is %s in requestKey (journal.go), and, unless the job was imported, in compare (plan.go)?\n%s",
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

// A name finds a job whose prompt has changed (G5). Each life begins with a create whose state is lost.
//
// Red without: the name in requestKey and in the entry, IsEqual in takeOver, FindNamesakes.
func TestName(t *testing.T) {
	const (
		takesOver, otherPrompt = "WARNING: Agent job of an earlier run will be taken over", "Agent job of an earlier run has another prompt"
		namesake, sent         = "WARNING: Agent job of another run not in the state", "WARNING: Follow-up message to agent job"
		unknownCreate          = "ERROR: Outcome of agent job create unknown"
	)
	type step struct {
		planned, job      attrs // planned: nil is as applied
		forget            bool  // the entries that the journal has
		says              []string
		creates, messages int // so far
	}
	a, edited := attrs{"name": "docs", "prompt": "A"}, attrs{"name": "docs", "prompt": "B"}
	unnamed, derived := attrs{"prompt": "A"}, attrs{"name": "docs", "prompt": unknown{}}
	triggered := fakecli.With(a, attrs{"triggers": attrs{"v": "1"}})
	taken := []string{takesOver, "WARNING: Agent job of an earlier run taken over"}
	stopped := []string{"WARNING: " + otherPrompt, "ERROR: " + otherPrompt}
	for name, test := range map[string]struct {
		first  attrs
		noPost bool // its response is lost
		steps  []step
	}{
		"the same":                    {first: a, steps: []step{{job: a, says: taken, creates: 1}, {job: edited, says: []string{sent}, creates: 1, messages: 1}}},
		"edited, and undone":          {first: a, steps: []step{{job: edited, says: stopped, creates: 1}, {job: a, says: taken, creates: 1}}},
		"edited, and given up":        {first: a, steps: []step{{job: edited, forget: true, creates: 2}, {job: edited, creates: 2}}},
		"derived, and the same":       {first: a, steps: []step{{planned: derived, job: a, says: append([]string{takesOver}, taken...), creates: 1}}},
		"derived, and another":        {first: a, steps: []step{{planned: derived, job: edited, says: append([]string{takesOver}, stopped...), creates: 1}}},
		"other triggers":              {first: a, steps: []step{{job: triggered, says: []string{namesake}, creates: 2}, {job: triggered, creates: 2}}},
		"unanswered, edited":          {first: a, noPost: true, steps: []step{{job: edited, says: []string{"WARNING: Outcome of an earlier request unknown", unknownCreate}, creates: 1}}},
		"unanswered, other triggers":  {first: a, noPost: true, steps: []step{{job: triggered, says: []string{namesake}, creates: 2}}},
		"another name":                {first: a, steps: []step{{job: fakecli.With(a, attrs{"name": "other"}), creates: 2}}},
		"the name is added":           {first: unnamed, steps: []step{{job: a, says: []string{namesake}, creates: 2}}},
		"a job in the state, renamed": {first: a, steps: []step{{job: a, says: taken, creates: 1}, {job: fakecli.With(a, attrs{"name": "other"}), creates: 1}, {job: unnamed, creates: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			s, folder := harness.NewService(t, nil), t.TempDir()
			config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": folder}})
			c := fakecli.New(t, config)
			if test.noPost {
				s.Inject(simulator.Fault{Kind: simulator.KindCreate, Status: 500, AfterEffect: true})
			}
			apply(t, c, "lost", config, test.first)
			c.Forget()
			for i, step := range test.steps {
				settings := config
				if step.forget {
					files, _ := filepath.Glob(filepath.Join(folder, "*", "*.json"))
					t.Setenv("AGENT_JOURNAL_FORGET", files[0][len(files[0])-len("abcdefghijklmnop.json"):len(files[0])-len(".json")])
				}
				if step.planned == nil {
					step.planned = step.job
				}
				run := cli.Run(fmt.Sprint("run", i))
				planning := startRun(c, run, settings)
				diags := append(c.Refresh(t.Context()), c.Plan(t.Context(), step.planned)...)
				planning.Drain(t.Context())
				startRun(c, run, settings)
				diags = append(diags, c.Apply(t.Context(), step.job)...)
				var got []string
				for _, d := range diags {
					got = append(got, fmt.Sprintf("%s: %s", d.Severity, d.Summary))
				}
				if diff := cmp.Diff(step.says, got, cmpopts.EquateEmpty()); diff != "" || c.Tainted {
					t.Errorf("step %d, tainted %t (-want +got):\n%s%s", i, c.Tainted, diff, fakecli.Text(diags))
				}
				s.Sent(t, step.creates, step.messages)
			}
		})
	}
}

// The plan of an import whose prompt is ignored keeps the entry: no state has the job yet.
func TestTakeOver_afterAnImportThatWasNotApplied(t *testing.T) {
	s := harness.NewService(t, nil)
	config, job := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": t.TempDir()}}), attrs{"prompt": "write"}
	c := fakecli.New(t, config)
	apply(t, c, "lost", config, job)
	id := c.Get("id").(string)
	planning := startRun(c, "import", config)
	c.Ignored = []string{"prompt"}
	c.ImportState(t.Context(), harness.Project+"/"+id)
	c.Plan(t.Context(), job)
	planning.Drain(t.Context())
	c.Ignored = nil
	c.Forget()
	apply(t, c, "next", config, job)
	s.Sent(t, 1, 0)
}

// Two new resources of one run must not have one name in a project. A plan sees it if their prompts differ, because
// a host may plan one resource twice; an apply always.
func TestName_twice(t *testing.T) {
	s := harness.NewService(t, nil)
	c := fakecli.New(t, s.Attrs())
	named := func(prompt string) attrs { return attrs{"name": "docs", "prompt": prompt} }
	for i, test := range []struct {
		job   attrs
		plan  bool // only
		fails bool
	}{
		{job: named("A"), plan: true},
		{job: named("A")},
		{job: named("A"), fails: true},
		{job: named("B"), plan: true, fails: true},
		{job: attrs{"name": unknown{}, "prompt": "A"}, plan: true},
		{job: attrs{"name": unknown{}, "prompt": "B"}, plan: true},
		{job: fakecli.With(named("B"), attrs{"project_id": "proj_2"})},
		{job: attrs{"prompt": "A"}},
		{job: attrs{"prompt": "A"}},
	} {
		before := s.Counts()
		c.Forget()
		diags := c.Plan(t.Context(), test.job)
		if !test.plan {
			diags = append(diags, c.Apply(t.Context(), test.job)...)
		}
		isDuplicate := strings.Contains(fakecli.Text(diags), "Duplicate agent job name")
		if isDuplicate != test.fails || test.fails && s.Counts() != before {
			t.Errorf("%d: %s", i, fakecli.Text(diags))
		}
	}
	other := fakecli.New(t, s.Attrs())
	wantErrors(t, other.Run(t.Context(), named("A")))
	other.Destroy(t.Context()) // by a host that keeps its process
	wantErrors(t, other.Run(t.Context(), named("B")))
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
