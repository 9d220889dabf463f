// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
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

// An excess of messages is only a warning, because -replace may send none. The counting itself: TestLimits_Plan. New resources:
// TestLowerLimitCounts.
func TestPlanBeyondLimit(t *testing.T) {
	limit := func(what string) func(*life) { return func(l *life) { l.config[what] = 1 } }
	both := func(prompt string, more attrs) []object {
		return []object{named("a", prompt).with(more), named("b", prompt).with(more)}
	}
	sent, triggers := step{objects: both("A", nil), creates: 2}, attrs{"triggers": attrs{"v": "1"}}
	later := func(known, planned attrs) []object { // what differs is not known while planning
		all := both("A", known)
		for i := range all {
			all[i].Planned = all[i].with(planned).Config
		}
		return all
	}
	none := func(l *life) { l.config["max_new_jobs"] = 0 }
	same := func(before func(*life), known, planned attrs, says ...string) []step {
		says = append([]string{"It stops at the limit."}, says...)
		return []step{{objects: both("A", known), creates: 2}, {before: before, objects: later(known, planned), says: says, creates: 2}}
	}
	archived := func(l *life) {
		none(l)
		for _, job := range l.s.Jobs() {
			l.s.SetStatus(job.ID, "archived")
		}
	}
	play(t, map[string][]step{
		"perhaps, by triggers": same(none, triggers, attrs{"triggers": unknown{}}),
		"perhaps, by a name":   same(none, nil, attrs{"name": unknown{}}),
		"perhaps, by a prompt": same(archived, nil, attrs{"prompt": unknown{}}, newJob, newJob, "Agent job archived", "Agent job archived"),
		"perhaps, and one of two is not known": {{
			before: limit("max_new_jobs"), objects: []object{later(triggers, attrs{"triggers": unknown{}})[0], named("b", "A")},
			says: []string{"WARNING: " + tooManyJobs, "ERROR: " + tooManyJobs}, creates: 1,
		}},
		"replacements": {sent, {before: limit("max_new_jobs"), objects: both("A", triggers), says: []string{"add -refresh=false."}, creates: 2}},
		"messages": {sent, {
			before: limit("max_messages"), objects: both("B", nil), creates: 2, messages: 1,
			says: []string{"WARNING: " + tooManyMessages, "has reached max_messages = 1, failed requests included."},
		}},
	})
}

// An apply plans each resource again, and a failed plan in an apply may leave a deposed object. So that plan says nothing of a second
// resource with a name, nor of a job beyond a limit: its create stops. Red without: isApplying in Create and in Delete.
func TestPlanInApply(t *testing.T) {
	destroys := func(c *fakecli.CLI) []*tfprotov6.Diagnostic { return c.Destroy(c.T.Context()) }
	creates := func(c *fakecli.CLI) []*tfprotov6.Diagnostic {
		c.Forget()
		return c.Run(c.T.Context(), attrs{"name": "first", "prompt": "A"})
	}
	starts := func(c *fakecli.CLI) []*tfprotov6.Diagnostic {
		_, diags := c.Invoke(c.T.Context(), "agent_start_job", attrs{"prompt": "A", "wait": attrs{"enabled": false}})
		return append(diags, c.Run(c.T.Context(), writing("before", "1"))...)
	}
	for what, test := range map[string]struct {
		begins     func(*fakecli.CLI) []*tfprotov6.Diagnostic
		limit      any
		then, says string
	}{
		"a second one with the name": {creates, nil, "first", "Duplicate agent job name"},
		"one beyond the limit":       {creates, 1, "second", tooManyJobs},
		"after a Delete":             {destroys, 0, "second", tooManyJobs},
		"after an action":            {starts, 1, "second", tooManyJobs}, // they share the count
	} {
		s := harness.NewService(t, harness.Always(simulator.Script{}))
		c := fakecli.New(t, s.Attrs())
		wantErrors(t, c.Run(t.Context(), writing("before", "1")))
		c.ConnectTo(t.Context(), provider.New("test", provider.Options{}), fakecli.With(s.Attrs(), attrs{"max_new_jobs": test.limit}))
		wantErrors(t, test.begins(c))
		c.Forget()
		sent := s.Counts()
		wantErrors(t, c.Plan(t.Context(), attrs{"name": test.then, "prompt": "B"}))
		wantErrors(t, c.ApplyPlanned(t.Context(), attrs{"name": test.then, "prompt": "B"}), test.says)
		if s.Counts() != sent || !c.State.IsNull() {
			t.Errorf("%s: %+v, want %+v; %s", what, s.Counts(), sent, c.State)
		}
	}
}
