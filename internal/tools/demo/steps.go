// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package demo

import "strings"

// The prompts: the first is the default of examples/demo.
const (
	firstPrompt  = "Add a quickstart for the Python SDK"
	secondPrompt = "Show the async client too"
	thirdPrompt  = "Link the quickstart from the start page"
)

// step is one call of the CLI.
type step struct {
	name      string // in the table
	headline  string
	args      []string
	want      traffic
	interrupt bool // press Ctrl-C in mid-wait; the exit code is then the CLI's own affair
	// after looks at what the step has left. Nil: nothing to look at.
	after func(d *demo, state jobState, output string)
}

func steps() []step {
	apply := func(prompt string) []string {
		args := []string{"apply", "-auto-approve"}
		if prompt != firstPrompt {
			args = append(args, "-var", "prompt="+prompt)
		}
		return args
	}
	return []step{
		{
			name:     "init",
			headline: "Install the provider that was just built",
			args:     []string{"init"},
		},
		{
			name:     "plan",
			headline: "Plan: nothing is sent",
			args:     []string{"plan"},
		},
		{
			name:     "apply",
			headline: "Apply: starts a job and waits for its end",
			args:     apply(firstPrompt),
			want:     traffic{create: 1, get: true},
			after: func(d *demo, state jobState, output string) {
				d.jobID = state.id
				d.report.check(strings.Contains(output, "Still creating..."), "the wait was shown: Still creating...")
				d.checkState(state, "completed", "the apply")
			},
		},
		{
			name:     "output",
			headline: "The link of the pull request is an output",
			args:     []string{"output", "-raw", "pull_request"},
			after: func(d *demo, _ jobState, output string) {
				job, _ := d.service.Job(d.jobID)
				d.report.check(job.PullRequest != "" && strings.TrimSpace(output) == job.PullRequest, "the output is the link that the service gave")
			},
		},
		{
			name:     "plan again",
			headline: "Plan again: no changes (with -detailed-exitcode, changes would be exit code 2)",
			args:     []string{"plan", "-detailed-exitcode"},
			want:     traffic{get: true},
		},
		{
			name:     "apply, new prompt",
			headline: "A new prompt: one message to the same job",
			args:     apply(secondPrompt),
			want:     traffic{message: 1, get: true},
			after: func(d *demo, state jobState, _ string) {
				d.checkState(state, "completed", "the new prompt")
			},
		},
		{
			name:      "apply, a third prompt, Ctrl-C",
			headline:  "Another prompt, and Ctrl-C in mid-wait",
			args:      apply(thirdPrompt),
			want:      traffic{message: 1, get: true},
			interrupt: true,
			after: func(d *demo, state jobState, _ string) {
				d.checkState(state, "active", "Ctrl-C")
			},
		},
		{
			name:     "apply again",
			headline: "Apply again: waits on and sends nothing",
			args:     apply(thirdPrompt),
			want:     traffic{get: true},
			after: func(d *demo, state jobState, _ string) {
				d.checkState(state, "completed", "the apply that resumed the wait")
			},
		},
		{
			name:     "destroy",
			headline: "Destroy: the service cannot delete a job, so Terraform forgets it",
			args:     []string{"destroy", "-auto-approve"},
			want:     traffic{get: true},
			after: func(d *demo, state jobState, _ string) {
				d.report.check(state == jobState{}, "after the destroy the state is empty")
			},
		},
	}
}

// checkState checks that the state holds the one job, as it should be after
// what has happened.
func (d *demo) checkState(state jobState, status, event string) {
	want := jobState{id: d.jobID, status: status}
	d.report.check(d.jobID != "" && state == want, "after %s the state has job %s, %s, not tainted", event, d.jobID, status)
}
