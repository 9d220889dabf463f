// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
)

// What becomes of a job in the state without a journal, step by step. What is sent when is the subject of internal/test/lives.
//
// Red without: setValues; ignored; checkPrompts. M01: observed in Read, the time of the message in await, interrupted in cutShort. M03: each
// condition of noteRefusal. P02: set. P05: AwaitLink in Wait and in Read. P03: each place that says its warnings. P09: ErrNotFound in
// cutShort and in Read.
func TestJob_steps(t *testing.T) {
	const (
		later    = "WARNING: Prompt not known yet"
		notFound = "WARNING: Agent job not found"
		oddLink  = "WARNING: Invalid pull request link"
		broken   = "ERROR: " + fakecli.Inconsistent
		invalid  = "It was not sent to project proj_1."
	)
	planned := func(planned, applied attrs) []object {
		name := attrs{"name": "docs"}
		return []object{{Address: "docs", Planned: fakecli.With(name, planned), Config: fakecli.With(name, applied)}}
	}
	of := func(config attrs) []object { return planned(config, config) }
	ignoring := func(config attrs) []object {
		all := of(config)
		all[0].Ignored = []string{"prompt", "prompt_wo"}
		return all
	}
	writeOnly := func(prompt any) attrs { return attrs{"prompt_wo": prompt} }
	unwaited := func(job attrs) attrs { return fakecli.With(job, attrs{"wait": attrs{"enabled": false}}) }
	both := func(job attrs) attrs { return fakecli.With(job, attrs{"prompt": "A"}) }
	updatedIn := func(timeout string, job attrs) attrs {
		return fakecli.With(job, attrs{"timeouts": attrs{"update": timeout}})
	}
	a, b, c, unread := writeOnly("A"), writeOnly("B"), writeOnly("C"), writeOnly(unknown{})
	onceA, onceB := writeOnly("once A"), writeOnly("once B")
	// For most of the minute in which that may be, the service shows the end of the prompt before.
	lateLink, stale := attrs{"prompt": "late link"}, attrs{"prompt": "[simulate: 90s, stale=55s]"}
	missing := simulator.Fault{Kind: simulator.KindGet, Times: -1, Status: 404}
	refused := func(status int) simulator.Fault { return simulator.Fault{Kind: simulator.KindMessage, Status: status} }
	after := func(pause time.Duration) func(*life) { return func(*life) { time.Sleep(pause) } }
	shows := func(status string) func(*life) { // in the state and of the service
		return func(l *life) {
			if shown, job := l.state["docs"].Get("status"), l.s.OnlyJob(l.t); shown != status || job.Status != status {
				l.t.Errorf("the status in the state is %s, and the job is %+v, want %s", shown, job, status)
			}
		}
	}
	first := step{objects: of(a), creates: 1}
	sent := func(messages int, job attrs) step { return step{objects: of(job), creates: 1, messages: messages} }
	hasLink := func(want bool) func(*life) {
		return func(l *life) {
			if link := l.state["docs"].Get("pr_link"); (link != nil) != want {
				l.t.Errorf("the link in the state is %v, want one: %t", link, want)
			}
		}
	}
	lives := map[string][]step{
		"ignored": {first, {objects: ignoring(b), creates: 1}, {objects: ignoring(updatedIn("5m", b)), creates: 1}, sent(1, b)},
		"unknown while planning": {
			{objects: planned(unread, a), creates: 1},
			{objects: planned(unread, a), once: true, creates: 1, after: counted("0")},
			{objects: planned(unread, b), once: true, creates: 1, messages: 1, after: counted("1")},
			sent(1, b),
		},
		"unknown, then empty":         {{objects: planned(unread, writeOnly("")), says: []string{invalid}}},
		"unknown, then both":          {{objects: planned(both(unread), both(a)), says: []string{invalid}}},
		"unknown, null on a live job": {first, {objects: planned(unread, nil), creates: 1}, first},
		"a job that refuses messages": {
			{objects: of(onceA), creates: 1},
			{objects: of(onceB), says: []string{"The next apply starts a new job with the prompt"}, creates: 1, messages: 1},
			{objects: ignoring(updatedIn("5m", onceB)), creates: 1, messages: 1},
			{
				objects: of(onceB), creates: 2, messages: 1,
				says: []string{
					"refused a message after it had finished, so apply sends the new prompt to another job, which does not see the earlier prompts",
				},
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
				before:  func(l *life) { l.s.Forget(l.s.OnlyJob(l.t).ID) },
				objects: of(b), says: []string{notFound, notAccepted}, creates: 1, messages: 1, after: counted("0"),
			},
		},
		"another one in the apply": {first, {objects: planned(b, c), creates: 1, messages: 1}, sent(1, c)},
		"the old one in the apply": {first, {objects: planned(b, a), says: []string{broken}, creates: 1}},
		"M01 cut short, and refreshed before the message shows": {
			first,
			{objects: of(updatedIn("500ms", stale)), says: []string{stillRunning}, creates: 1, messages: 1, after: shows("active")},
			{before: after(45 * time.Second), objects: of(stale), creates: 1, messages: 1, after: shows("completed")},
		},
		"M01 cut short, and over soon": {
			first,
			{objects: of(updatedIn("500ms", b)), says: []string{stillRunning}, creates: 1, messages: 1, after: shows("active")},
			{before: after(2 * time.Second), objects: of(updatedIn("500ms", b)), creates: 1, messages: 1, after: shows("completed")},
		},
		"M02 over at once": {
			first,
			{
				objects: of(attrs{"prompt": "[simulate: 0s]"}), says: []string{"WARNING: Agent job not seen active"}, creates: 1, messages: 1,
				after: shows("completed"),
			},
		},
		"M03 because of the key": { // it says nothing of the job or the prompt
			first,
			{before: injects(refused(401)), objects: of(b), says: []string{notAccepted}, creates: 1, messages: 1},
			{before: injects(refused(401)), objects: of(c), says: []string{notAccepted}, creates: 1, messages: 2},
			sent(3, c),
		},
		"M03 of a job at work": {
			first,
			{before: becomes("active"), meanwhile: injects(refused(409)), objects: of(b), says: []string{notAccepted}, creates: 1, messages: 1},
			{before: becomes("completed"), objects: of(b), creates: 1, messages: 2},
		},
		"M03 of a job that cannot be read": {
			first,
			{meanwhile: injects(refused(409), missing), objects: of(b), says: []string{notAccepted}, creates: 1, messages: 1},
			{before: mends, objects: of(b), creates: 1, messages: 2},
		},
		"M03 of a job at work that is shown as finished": {
			first, sent(1, unwaited(stale)),
			{before: injects(refused(409)), objects: of(unwaited(b)), says: []string{notAccepted}, creates: 1, messages: 2},
			sent(3, unwaited(b)),
		},
		"P02 no status": {{objects: of(unwaited(attrs{"prompt": "no status"})), creates: 1, after: shows("active")}},
		"P03 odd link": {
			{objects: of(unwaited(attrs{"prompt": "odd link"})), says: []string{oddLink}, creates: 1},
			// The refresh says it, and the wait.
			{objects: of(attrs{"prompt": "odd link"}), says: []string{oddLink, oddLink}, creates: 1, after: shows("completed")},
		},
		"P05 later link": {
			{objects: of(attrs{"prompt": "later link"}), creates: 1, after: hasLink(false)},
			{before: after(30 * time.Second), objects: of(attrs{"prompt": "later link"}), creates: 1, after: hasLink(true)},
		},
		"P05 late link, found by a refresh": {
			first,
			{objects: of(updatedIn("500ms", lateLink)), says: []string{stillRunning}, creates: 1, messages: 1, after: shows("active")},
			{before: after(time.Second), objects: of(lateLink), creates: 1, messages: 1, after: hasLink(true)},
		},
		"P09 not found in the wait": {
			first,
			{meanwhile: injects(missing), objects: of(b), says: []string{"ERROR: Agent job not found"}, creates: 1, messages: 1},
			{before: mends, objects: of(b), creates: 1, messages: 1, after: shows("completed")},
		},
		"P09 not found": { // in each plan
			first,
			{
				before:  func(l *life) { l.state["docs"].Identity = nil; injects(missing)(l) }, // as an old CLI leaves it
				objects: of(a), says: []string{notFound}, creates: 1,
			},
			{objects: of(a), says: []string{notFound}, creates: 1},
			{before: mends, objects: of(a), creates: 1, after: shows("completed")},
		},
		"I06 a wait that is not known": {
			{objects: of(unwaited(a)), creates: 1},
			{objects: planned(fakecli.With(a, attrs{"wait": attrs{"enabled": unknown{}}}), a), creates: 1, after: shows("completed")},
			{objects: planned(fakecli.With(a, attrs{"wait": unknown{}}), a), creates: 1, after: shows("completed")},
		},
	}
	for _, steps := range lives {
		steps[0].before = func(l *life) { l.config["journal"] = attrs{"enabled": false} }
	}
	play(t, lives)
}
