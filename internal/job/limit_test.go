// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

const (
	tooManyJobs     = "Too many new agent jobs"
	tooManyMessages = "Too many messages to agent jobs"
)

// wantErrors asserts the summaries of the errors.
func wantErrors(t *testing.T, diags []*tfprotov6.Diagnostic, want ...string) {
	t.Helper()
	var got []string
	for _, d := range diags {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			got = append(got, d.Summary)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors (-want +got):\n%s%s", diff, fakecli.Text(diags))
	}
}

// writing is a job that nothing waits for.
func writing(prompt, week string) attrs {
	return attrs{"prompt": prompt, "triggers": attrs{"week": week}, "wait": attrs{"enabled": false}}
}

// jobs returns n resources of one state, applied as writing("write", "1").
func jobs(t *testing.T, s *harness.Service, n int) (all []*fakecli.CLI) {
	t.Helper()
	for range n {
		c := fakecli.New(t, s.Attrs())
		if diags := c.Run(t.Context(), writing("write", "1")); len(diags) > 0 {
			t.Fatal(fakecli.Text(diags))
		}
		all = append(all, c)
	}
	return all
}

// The counting itself: TestLimits_Plan.
func TestPlanBeyondLimit(t *testing.T) {
	for name, test := range map[string]struct {
		limit   string
		config  attrs
		change  func(c *fakecli.CLI)
		summary string
	}{
		"new":      {"max_new_jobs", writing("write", "1"), (*fakecli.CLI).Forget, tooManyJobs},
		"replaced": {"max_new_jobs", writing("write", "2"), func(*fakecli.CLI) {}, tooManyJobs},
		"tainted":  {"max_new_jobs", writing("write", "1"), func(c *fakecli.CLI) { c.Tainted = true }, tooManyJobs},
		"messages": {"max_messages", writing("more", "1"), func(*fakecli.CLI) {}, tooManyMessages},
	} {
		t.Run(name, func(t *testing.T) {
			s := harness.NewService(t, harness.Always(simulator.Script{}))
			both := jobs(t, s, 2)
			limits := attrs{"max_new_jobs": 0, "max_messages": 0}
			limits[test.limit] = 1
			both[0].Connect(fakecli.With(s.Attrs(), limits))
			both[1].Server = both[0].Server
			for i, want := range [][]string{nil, {test.summary}} {
				wantErrors(t, both[i].Plan(t.Context(), writing("write", "1"))) // nothing to count
				test.change(both[i])
				plan := both[i].PlanMinimal // X18: twice, if there is a job
				if both[i].Tainted {
					plan = both[i].Plan // nothing tells two plans of one from those of two
				}
				diags := plan(t.Context(), test.config)
				wantErrors(t, diags, want...)
				if want != nil {
					harness.Contains(t, fakecli.Text(diags), test.limit+" = 1: the prompt for ", " 2 of this run. Sent until then with this provider configuration, including requests that failed: 0 new jobs and 0 messages.", "-refresh=false")
				}
			}
			s.Sent(t, 2, 0)
		})
	}
}

// A saved plan may have been made where no limit was set.
func TestApplyBeyondLimit(t *testing.T) {
	for summary, prepare := range map[string]func(*fakecli.CLI){tooManyJobs: (*fakecli.CLI).Forget, tooManyMessages: func(*fakecli.CLI) {}} {
		t.Run(summary, func(t *testing.T) {
			s := harness.NewService(t, harness.Always(simulator.Script{}))
			c := jobs(t, s, 1)[0]
			prepare(c)
			wantErrors(t, c.Plan(t.Context(), writing("more", "1")))
			folder := filepath.Join(t.TempDir(), "journal")
			process := harness.Process("apply")
			c.ConnectTo(t.Context(), provider.New("test", provider.Options{Process: process}),
				fakecli.With(s.Attrs(), attrs{"max_new_jobs": 0, "max_messages": 0, "journal": attrs{"url": folder}}))
			before := c.State
			diags := c.Apply(t.Context(), writing("more", "1"))
			wantErrors(t, diags, summary)
			harness.Contains(t, fakecli.Text(diags), " = 0: the prompt for ", " was not sent, because it would be ", " 1 of this run.")
			if strings.Contains(fakecli.Text(diags), "-refresh=false") || !c.State.Equal(before) || c.Tainted {
				t.Errorf("tainted %t, %s: %s", c.Tainted, c.State, fakecli.Text(diags))
			}
			s.Sent(t, 1, 0)
			if entries, _ := filepath.Glob(filepath.Join(folder, "*", "*.json")); len(entries) > 0 {
				t.Errorf("the journal has %q", entries)
			}
		})
	}
}

// Actions and resources share the count.
func TestActionBeyondLimit(t *testing.T) {
	eachAction(t, simulator.Script{}, func(t *testing.T, s *harness.Service, c *fakecli.CLI, a actionCase) {
		limits, summary := attrs{"max_new_jobs": 1}, tooManyJobs
		if a.jobID != "" {
			limits, summary = attrs{"max_messages": 1}, tooManyMessages
		}
		c.ConnectTo(t.Context(), provider.New("test", provider.Options{Dial: s.Wire.Dial}), fakecli.With(s.Attrs(), limits))
		_, diags := c.Invoke(t.Context(), a.name, a.config)
		wantErrors(t, diags)
		progress, diags := c.Invoke(t.Context(), a.name, a.config)
		wantErrors(t, diags, summary)
		if len(progress) > 0 {
			t.Errorf("progress: %q", progress)
		}
		if a.jobID == "" {
			wantErrors(t, c.Plan(t.Context(), attrs{"prompt": "write"}))
			diags = c.Apply(t.Context(), attrs{"prompt": "write"})
			wantErrors(t, diags, summary)
		}
		harness.Contains(t, fakecli.Text(diags), " = 1: the prompt for ", " was not sent, because it would be ", " 2 of this run.")
		a.sentOnce(t, s)
	})
}

// What an earlier run has sent is not sent again, so it does not count.
func TestTakeoverDoesNotCount(t *testing.T) {
	for name, test := range map[string]struct {
		config            attrs // what the lost run applied
		forget            bool
		creates, messages int
	}{
		"create":      {writing("write", "1"), true, 1, 0},
		"replacement": {writing("write", "2"), false, 2, 0},
		"message":     {writing("more", "1"), false, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := harness.NewService(t, harness.Always(simulator.Script{}))
			config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": filepath.Join(t.TempDir(), "journal")}})
			c := fakecli.New(t, s.Attrs())
			if !test.forget {
				wantErrors(t, apply(t, c, "first", config, writing("write", "1")))
			}
			state, private, identity := c.State, c.Private, c.Identity
			wantErrors(t, apply(t, c, "lost", config, test.config))
			c.State, c.Private, c.Identity = state, private, identity
			diags := apply(t, c, "next", fakecli.With(config, attrs{"max_new_jobs": 0, "max_messages": 0}), test.config)
			wantErrors(t, diags)
			harness.Contains(t, fakecli.Text(diags), "of an earlier run will be taken over")
			s.Sent(t, test.creates, test.messages)
		})
	}
}
