// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
)

// What becomes of a job in the state without a journal, step by step. What is sent when is the subject of internal/test/lives.
//
// Red without: setValues, isCounted; ignored; checkPrompts.
func TestJob_steps(t *testing.T) {
	const (
		later   = "WARNING: Prompt not known yet"
		broken  = "ERROR: " + fakecli.Inconsistent
		invalid = "It was not sent to project proj_1."
	)
	planned := func(planned, applied attrs) []object {
		name := attrs{"name": "docs"}
		return []object{{address: "docs", planned: fakecli.With(name, planned), job: fakecli.With(name, applied)}}
	}
	of := func(config attrs) []object { return planned(config, config) }
	ignoring := func(config attrs) []object {
		all := of(config)
		all[0].ignored = []string{"prompt", "prompt_wo"}
		return all
	}
	writeOnly := func(prompt any) attrs { return attrs{"prompt_wo": prompt} }
	a, b, c, unread := writeOnly("A"), writeOnly("B"), writeOnly("C"), writeOnly(unknown{})
	onceA, onceB, longer := writeOnly("once A"), writeOnly("once B"), attrs{"timeouts": attrs{"update": "5m"}}
	slow := attrs{"prompt": "slowly", "wait": attrs{"enabled": false}}
	first := step{objects: of(a), creates: 1}
	lives := map[string][]step{
		"active job, triggers": {
			{objects: of(slow), creates: 1},
			{
				objects: of(fakecli.With(slow, attrs{"triggers": attrs{"spec": "1"}})), creates: 2,
				says: []string{"WARNING: Active agent job will be replaced", "WARNING: Active agent job removed from state"},
			},
		},
		"ignored": {
			first, {objects: ignoring(b), creates: 1}, {objects: ignoring(fakecli.With(b, longer)), creates: 1}, {objects: of(b), creates: 1, messages: 1},
		},
		"unknown while planning": {
			{objects: planned(unread, a), creates: 1},
			{objects: planned(unread, a), once: true, creates: 1, after: counted("0")},
			{objects: planned(unread, b), once: true, creates: 1, messages: 1, after: counted("1")},
			{objects: of(b), creates: 1, messages: 1},
		},
		"unknown, then empty":         {{objects: planned(unread, writeOnly("")), says: []string{invalid}}},
		"unknown, then both":          {{objects: planned(fakecli.With(unread, attrs{"prompt": "A"}), fakecli.With(a, attrs{"prompt": "A"})), says: []string{invalid}}},
		"unknown, null on a live job": {first, {objects: planned(unread, nil), creates: 1}, first},
		"unknown on a failed job": {
			first,
			{
				before: becomes("failed"), objects: planned(unread, b), creates: 1,
				says: []string{"has the status \"failed\" and cannot accept messages. If the prompt is new", newJob, broken},
			},
			{objects: planned(unread, a), says: []string{later, hasFailed, failed}, creates: 1},
			{objects: planned(unread, b), once: true, says: []string{later, "The prompt is new, which the plan did not know. It was not sent."}, creates: 1},
		},
		"a job that refuses messages": {
			{objects: of(onceA), creates: 1},
			{objects: of(onceB), says: []string{"the next apply starts a new job with the prompt"}, creates: 1, messages: 1},
			{objects: ignoring(fakecli.With(onceB, longer)), creates: 1, messages: 1},
			{
				objects: planned(unread, onceB), once: true, creates: 1, messages: 1,
				says: []string{"refused a message after it had finished. If the prompt is new", "refused a message after it had finished. The prompt is new"},
			},
			{
				objects: of(onceB), creates: 2, messages: 1,
				says: []string{"refused a message after it had finished, so apply replaces it: the prompt goes to another job, which does not see the earlier prompts"},
			},
			{objects: of(onceA), says: []string{"409 Conflict"}, creates: 2, messages: 2, after: counted("0")},
			{objects: of(onceB), creates: 2, messages: 2},
			{objects: of(onceA), says: []string{newJob}, creates: 3, messages: 2},
			{objects: of(onceB), says: []string{"409 Conflict"}, creates: 3, messages: 3},
			{before: becomes("active"), objects: of(onceB), creates: 3, messages: 4},
		},
		"a job that was not found": {
			first,
			{
				before:    func(l *life) { l.s.Forget(l.s.OnlyJob(l.t).ID); l.config["max_messages"] = 0 }, // which the plan does not check
				meanwhile: func(l *life) { delete(l.config, "max_messages") },
				objects:   of(b), says: []string{"WARNING: Agent job not found", notAccepted}, creates: 1, messages: 1, after: counted("0"),
			},
		},
		"another one in the apply": {first, {objects: planned(b, c), creates: 1, messages: 1}, {objects: of(c), creates: 1, messages: 1}},
		"the old one in the apply": {first, {objects: planned(b, a), says: []string{broken}, creates: 1}},
	}
	for _, steps := range lives {
		steps[0].before = func(l *life) { l.config["journal"] = attrs{"enabled": false} }
	}
	play(t, lives)
}
