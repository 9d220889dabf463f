// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

const (
	tooManyJobs     = "Too many new agent jobs"
	tooManyMessages = "Too many messages to agent jobs"
)

// errorsOf returns the summaries of the errors.
func errorsOf(diags []*tfprotov6.Diagnostic) (all []string) {
	for _, d := range diags {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			all = append(all, d.Summary)
		}
	}
	return all
}

func wantErrors(t *testing.T, diags []*tfprotov6.Diagnostic, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, errorsOf(diags)); diff != "" {
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

func TestPlanBeyondLimit(t *testing.T) {
	write, replace, more := writing("write", "1"), writing("write", "2"), writing("more", "1")
	forget, taint := (*fakecli.CLI).Forget, func(c *fakecli.CLI) { c.Tainted = true }
	for _, test := range []struct {
		name   string
		limits attrs
		config attrs
		change func(c *fakecli.CLI)
		want   []string // errors of a plan of five resources
		says   string
	}{
		{"new jobs, none allowed", attrs{"max_new_jobs": 0}, write, forget, []string{tooManyJobs}, "max_new_jobs = 0"},
		{"new jobs, one too many", attrs{"max_new_jobs": 4}, write, forget, []string{tooManyJobs}, "max_new_jobs = 4"},
		{"new jobs up to the limit", attrs{"max_new_jobs": 5, "max_messages": 0}, write, forget, nil, ""},
		{"replaced", attrs{"max_new_jobs": 4}, replace, nil, []string{tooManyJobs}, "max_new_jobs = 4"},
		{"replaced, up to the limit", attrs{"max_new_jobs": 5}, replace, nil, nil, ""},
		{"tainted", attrs{"max_new_jobs": 4}, write, taint, []string{tooManyJobs}, "max_new_jobs = 4"},
		{"tainted, up to the limit", attrs{"max_new_jobs": 5}, write, taint, nil, ""},
		{"messages, none allowed", attrs{"max_messages": 0}, more, nil, []string{tooManyMessages}, "max_messages = 0"},
		{"messages, one too many", attrs{"max_messages": 4}, more, nil, []string{tooManyMessages}, "max_messages = 4"},
		{"messages up to the limit", attrs{"max_messages": 5, "max_new_jobs": 0}, more, nil, nil, ""},
		{"no change", attrs{"max_messages": 0, "max_new_jobs": 0}, write, nil, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := harness.NewService(t, harness.Always(simulator.Script{}))
			all := jobs(t, s, 5)
			all[0].Connect(fakecli.With(s.Attrs(), test.limits))
			var diags []*tfprotov6.Diagnostic
			for _, c := range all {
				c.Server = all[0].Server
				if test.change != nil {
					test.change(c)
				}
				diags = append(diags, c.Plan(t.Context(), test.config)...)
			}
			wantErrors(t, diags, test.want...)
			if test.want != nil {
				harness.Contains(t, fakecli.Text(diags), "("+test.says+"). Nothing was sent for it, and nothing before it", "-refresh=false")
			}
			s.Sent(t, 5, 0)
		})
	}
}

// A saved plan may have been made where no limit was set.
func TestApplyBeyondLimit(t *testing.T) {
	for _, test := range []struct {
		name, summary string
		limits        attrs
		prompt        string
		forget        bool
		sent          [2]int // besides the three jobs at the start
	}{
		{"no job", tooManyJobs, attrs{"max_new_jobs": 0}, "write", true, [2]int{0, 0}},
		{"two jobs", tooManyJobs, attrs{"max_new_jobs": 2}, "write", true, [2]int{2, 0}},
		{"no message", tooManyMessages, attrs{"max_messages": 0}, "more", false, [2]int{0, 0}},
		{"two messages", tooManyMessages, attrs{"max_messages": 2}, "more", false, [2]int{0, 2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := harness.NewService(t, harness.Always(simulator.Script{}))
			all := jobs(t, s, 3)
			config := writing(test.prompt, "1")
			for _, c := range all {
				if test.forget {
					c.Forget()
				}
				wantErrors(t, c.Plan(t.Context(), config))
			}
			folder := filepath.Join(t.TempDir(), "journal")
			process := journal.NewProcess("apply", func(err error) { t.Error(err) })
			defer process.Close(t.Context())
			all[0].ConnectTo(t.Context(), provider.New("test", provider.Options{Process: process}),
				fakecli.With(s.Attrs(), fakecli.With(test.limits, attrs{"journal": attrs{"url": folder}})))
			var diags []*tfprotov6.Diagnostic
			total := test.sent[0] + test.sent[1]
			var want []string
			for i, c := range all {
				c.Server = all[0].Server
				before := c.State
				got := c.Apply(t.Context(), config)
				diags = append(diags, got...)
				if i < total {
					continue
				}
				want = append(want, test.summary)
				if !c.State.Equal(before) || c.Tainted {
					t.Errorf("the state changed: tainted %t, %s", c.Tainted, c.State)
				}
				says := "Nothing was sent for it, and nothing before it"
				if total > 0 {
					says = "Nothing was sent for it. Counted before it in this run, with this provider configuration and including requests that failed: "
				}
				harness.Contains(t, fakecli.Text(got), says)
				if strings.Contains(fakecli.Text(got), "-refresh=false") {
					t.Errorf("an apply speaks of a plan: %s", fakecli.Text(got))
				}
			}
			wantErrors(t, diags, want...)
			s.Sent(t, 3+test.sent[0], test.sent[1])
			if entries, _ := filepath.Glob(filepath.Join(folder, "*.json")); len(entries) != total {
				t.Errorf("the journal has %q, want %d entries", entries, total)
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
			wantErrors(t, c.Apply(t.Context(), attrs{"prompt": "write"}), summary)
		}
		a.sentOnce(t, s)
	})
}

// What an earlier run has sent is not sent again, so it does not count.
func TestTakeoverDoesNotCount(t *testing.T) {
	old := writing("write", "1")
	for _, test := range []struct {
		name     string
		config   attrs // what the lost run applied
		forget   bool
		creates  int
		messages int
	}{
		{"create", old, true, 1, 0},
		{"replacement", writing("write", "2"), false, 2, 0},
		{"message", writing("more", "1"), false, 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := harness.NewService(t, harness.Always(simulator.Script{}))
			config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": filepath.Join(t.TempDir(), "journal")}})
			c := fakecli.New(t, s.Attrs())
			run := func(name journal.Run, limits, job attrs) []*tfprotov6.Diagnostic {
				process := journal.NewProcess(name, func(err error) { t.Error(err) })
				defer process.Close(t.Context())
				c.ConnectTo(t.Context(), provider.New("test", provider.Options{Process: process}), fakecli.With(config, limits))
				return c.Run(t.Context(), job)
			}
			if !test.forget {
				wantErrors(t, run("first", nil, old))
			}
			state, private, identity := c.State, c.Private, c.Identity
			wantErrors(t, run("lost", nil, test.config))
			c.State, c.Private, c.Identity = state, private, identity
			diags := run("next", attrs{"max_new_jobs": 0, "max_messages": 0}, test.config)
			wantErrors(t, diags)
			harness.Contains(t, fakecli.Text(diags), "of an earlier run will be taken over")
			s.Sent(t, test.creates, test.messages)
		})
	}
}
