// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"fmt"
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

func TestPlanBeyondLimit(t *testing.T) {
	write, replace, more := writing("write", "1"), writing("write", "2"), writing("more", "1")
	forget, taint := (*fakecli.CLI).Forget, func(c *fakecli.CLI) { c.Tainted = true }
	const jobsLimit, messagesLimit = "max_new_jobs", "max_messages"
	for _, test := range []struct {
		name    string
		limit   string // 0, 2 and 3 are the limits of a plan of three
		other   string // may be 0
		config  attrs
		change  func(c *fakecli.CLI)
		summary string // beyond the limit; empty: never
	}{
		{"new", jobsLimit, messagesLimit, write, forget, tooManyJobs},
		{"replaced", jobsLimit, messagesLimit, replace, nil, tooManyJobs},
		{"tainted", jobsLimit, messagesLimit, write, taint, tooManyJobs},
		{"messages", messagesLimit, jobsLimit, more, nil, tooManyMessages},
		{"no change", jobsLimit, messagesLimit, write, nil, ""},
	} {
		for _, limit := range []int{0, 2, 3} {
			t.Run(fmt.Sprint(test.name, limit), func(t *testing.T) {
				s := harness.NewService(t, harness.Always(simulator.Script{}))
				all := jobs(t, s, 3)
				all[0].Connect(fakecli.With(s.Attrs(), attrs{test.limit: limit, test.other: 0}))
				var diags []*tfprotov6.Diagnostic
				for _, c := range all {
					c.Server = all[0].Server
					if test.change != nil {
						test.change(c)
					}
					diags = append(diags, c.Plan(t.Context(), test.config)...)
				}
				if limit == 3 || test.summary == "" {
					wantErrors(t, diags)
				} else {
					wantErrors(t, diags, test.summary)
					harness.Contains(t, fakecli.Text(diags), fmt.Sprintf("(%s = %d). Nothing was sent for it, and nothing before it", test.limit, limit), "-refresh=false")
				}
				s.Sent(t, 3, 0)
			})
		}
	}
}

// A saved plan may have been made where no limit was set.
func TestApplyBeyondLimit(t *testing.T) {
	const jobsLimit, messagesLimit = "max_new_jobs", "max_messages"
	for _, limit := range []string{jobsLimit, messagesLimit} {
		for _, allowed := range []int{0, 2} {
			t.Run(fmt.Sprint(limit, allowed), func(t *testing.T) {
				s := harness.NewService(t, harness.Always(simulator.Script{}))
				all, config, summary := jobs(t, s, 3), writing("more", "1"), tooManyMessages
				wantSent, says := [2]int{3, allowed}, "Nothing was sent for it, and nothing before it"
				if limit == jobsLimit {
					summary, wantSent = tooManyJobs, [2]int{3 + allowed, 0}
				}
				if allowed > 0 {
					says = "Nothing was sent for it. Counted before it in this run, with this provider configuration and including requests that failed: "
				}
				folder := filepath.Join(t.TempDir(), "journal")
				process := journal.NewProcess("apply", func(err error) { t.Error(err) })
				defer process.Close(t.Context())
				server := fakecli.Unconfigured(t)
				server.ConnectTo(t.Context(), provider.New("test", provider.Options{Process: process}),
					fakecli.With(s.Attrs(), attrs{limit: allowed, "journal": attrs{"url": folder}}))
				for i, c := range all {
					if limit == jobsLimit {
						c.Forget()
					}
					wantErrors(t, c.Plan(t.Context(), config))
					c.Server = server.Server
					before := c.State
					diags := c.Apply(t.Context(), config)
					if i < allowed {
						wantErrors(t, diags)
						continue
					}
					wantErrors(t, diags, summary)
					harness.Contains(t, fakecli.Text(diags), says)
					if strings.Contains(fakecli.Text(diags), "-refresh=false") {
						t.Errorf("an apply speaks of a plan: %s", fakecli.Text(diags))
					}
					if !c.State.Equal(before) || c.Tainted {
						t.Errorf("the state changed: tainted %t, %s", c.Tainted, c.State)
					}
				}
				s.Sent(t, wantSent[0], wantSent[1])
				if entries, _ := filepath.Glob(filepath.Join(folder, "*.json")); len(entries) != allowed {
					t.Errorf("the journal has %q, want %d entries", entries, allowed)
				}
			})
		}
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
			if !test.forget {
				wantErrors(t, apply(t, c, "first", config, old))
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
