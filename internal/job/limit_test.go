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
	tainted := func(l *life) {
		none(l)
		for _, o := range l.state {
			o.Tainted = true
		}
	}
	play(t, map[string][]step{
		"perhaps, by triggers":   same(none, triggers, attrs{"triggers": unknown{}}),
		"perhaps, by a name":     same(none, nil, attrs{"name": unknown{}}),
		"perhaps, by a project":  same(none, attrs{"project_id": harness.Project}, attrs{"project_id": unknown{}}),
		"perhaps, by a prompt":   same(archived, nil, attrs{"prompt": unknown{}}, newJob, newJob, "Agent job archived", "Agent job archived"),
		"perhaps, and tainted":   same(tainted, triggers, attrs{"triggers": unknown{}}),
		"perhaps, and all new":   {{before: limit("max_new_jobs"), objects: later(triggers, attrs{"triggers": unknown{}}), says: []string{"WARNING: " + tooManyJobs, "ERROR: " + tooManyJobs}, creates: 1}},
		"perhaps, of one of two": {{before: limit("max_new_jobs"), objects: []object{later(triggers, attrs{"triggers": unknown{}})[0], named("b", "A")}, says: []string{"WARNING: " + tooManyJobs, "ERROR: " + tooManyJobs}, creates: 1}},
		"replacements":           {sent, {before: limit("max_new_jobs"), objects: both("A", triggers), says: []string{"add -refresh=false."}, creates: 2}},
		"messages": {sent, {
			before: limit("max_messages"), objects: both("B", nil), creates: 2, messages: 1,
			says: []string{"WARNING: " + tooManyMessages, "has reached max_messages = 1, failed requests included."},
		}},
	})
}

// An apply plans each resource again, and a failed plan in an apply may leave a deposed object. So that plan says nothing of a second resource
// with a name, nor of a job beyond a limit: its create stops.
func TestPlanInApply(t *testing.T) {
	for summary, name := range map[string]string{"Duplicate agent job name": "first", tooManyJobs: "second"} {
		s := harness.NewService(t, harness.Always(simulator.Script{}))
		limit := map[bool]any{true: 1}[summary == tooManyJobs]
		c := fakecli.New(t, fakecli.With(s.Attrs(), attrs{"max_new_jobs": limit, "journal": attrs{"url": t.TempDir() + stateName}}))
		wantErrors(t, c.Run(t.Context(), attrs{"name": "first", "prompt": "A"}))
		c.Forget()
		wantErrors(t, c.Plan(t.Context(), attrs{"name": name, "prompt": "B"}))
		wantErrors(t, c.ApplyPlanned(t.Context(), attrs{"name": name, "prompt": "B"}), summary)
		if s.Sent(t, 1, 0); !c.State.IsNull() {
			t.Error(c.State)
		}
	}
}

// An apply may begin with a Delete. Red without: isApplying in Delete.
func TestPlanInApply_afterDelete(t *testing.T) {
	s := harness.NewService(t, harness.Always(simulator.Script{}))
	c := fakecli.New(t, s.Attrs())
	wantErrors(t, c.Run(t.Context(), writing("A", "1")))
	c.ConnectTo(t.Context(), provider.New("test", provider.Options{}), fakecli.With(s.Attrs(), attrs{"max_new_jobs": 0}))
	wantErrors(t, c.Destroy(t.Context()))
	wantErrors(t, c.Plan(t.Context(), writing("A", "2")))
	wantErrors(t, c.ApplyPlanned(t.Context(), writing("A", "2")), tooManyJobs)
	s.Sent(t, 1, 0)
}

// A saved plan may have been made where no limit was set. Actions and resources share the count.
func TestApplyBeyondLimit(t *testing.T) {
	for summary, action := range map[string]string{tooManyJobs: "agent_start_job", tooManyMessages: "agent_send_message"} {
		t.Run(summary, func(t *testing.T) {
			s, folder := harness.NewService(t, harness.Always(simulator.Script{})), t.TempDir()
			c := fakecli.New(t, s.Attrs())
			wantErrors(t, c.Run(t.Context(), writing("write", "1")))
			config := attrs{"prompt": "write", "wait": attrs{"enabled": false}}
			if action == "agent_send_message" {
				config["job_id"] = c.Get("id")
			} else {
				c.Forget()
			}
			wantErrors(t, c.Plan(t.Context(), writing("more", "1")))
			c.ConnectTo(t.Context(), provider.New("test", provider.Options{Process: harness.Process("apply")}),
				fakecli.With(s.Attrs(), attrs{"max_new_jobs": 1, "max_messages": 1, "journal": attrs{"url": folder + stateName}}))
			_, diags := c.Invoke(t.Context(), action, config)
			wantErrors(t, diags)
			before, sent := c.State, s.Counts()
			diags = c.Apply(t.Context(), writing("more", "1"))
			wantErrors(t, diags, summary)
			harness.Contains(t, fakecli.Text(diags), "The prompt was not sent to ", " = 1, failed requests included.")
			if strings.Contains(fakecli.Text(diags), "-refresh=false") || !c.State.Equal(before) || c.Tainted {
				t.Errorf("tainted %t, %s: %s", c.Tainted, c.State, fakecli.Text(diags))
			}
			progress, diags := c.Invoke(t.Context(), action, config)
			wantErrors(t, diags, summary)
			entries, _ := filepath.Glob(filepath.Join(folder, "*", "*"))
			if len(progress)+len(entries) > 0 || s.Counts() != sent {
				t.Errorf("progress %q, entries %q, sent %+v, want %+v", progress, entries, s.Counts(), sent)
			}
		})
	}
}
