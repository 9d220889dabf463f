// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// Whoever finds a job archived that has no link and that nothing has seen complete: the run fails, as does each later one, and
// nothing is sent. Red without: each place that asks countsAsFailed; WasCompleted in observed and accepted; failsRuns in decide. (P14)
func TestArchived(t *testing.T) {
	const fails, warns = "ERROR: Agent job archived", "WARNING: Agent job archived"
	of := func(prompt string, more attrs) []object {
		return []object{named("docs", prompt).with(more)}
	}
	onFailure := func(what string) attrs { return attrs{"wait": attrs{"on_failure": what}} }
	unwaited, retry := attrs{"wait": attrs{"enabled": false}}, onFailure("retry")
	archive := func(l *life) { l.s.SetStatus(l.s.OnlyJob(l.t).ID, "archived") }
	archivedAndLost := func(l *life) { archive(l); lost(l) }
	imported := func(l *life) {
		job := l.s.Create(harness.Project, "from elsewhere")
		l.s.SetStatus(job.ID, "archived")
		l.imports("docs", job.ID)
	}
	said := func(words ...string) []string { return words }
	gone, slow := of("[simulate: 1s, archived]", nil), of("slow", nil)
	retried, slowRetried := of("[simulate: 1s, archived]", retry), of("slow", retry)
	warned, linked := of("[simulate: 1s, archived]", onFailure("warn")), of("A linked one, archived", nil)
	bare := of("[simulate: 1s, no-pull-request]", nil)
	first, started := step{objects: bare, creates: 1}, step{objects: of("slow", unwaited), creates: 1}
	archived := step{before: archive, objects: bare, creates: 1}
	again := step{objects: slow, says: said(warns, fails), creates: 1}
	play(t, map[string][]step{
		"in the wait of a create": {
			{objects: gone, says: said(fails), creates: 1}, {objects: gone, says: said("sends nothing and fails again"), creates: 1},
		},
		"retry": {
			{objects: retried, says: said("sends nothing and fails again"), creates: 1}, {objects: retried, says: said(fails), creates: 1},
		},
		"warn": {{objects: warned, says: said(warns), creates: 1}, {objects: warned, creates: 1}},
		"in the wait of a message": {
			first, {objects: gone, says: said(fails), creates: 1, messages: 1}, {objects: gone, says: said(warns, fails), creates: 1, messages: 1},
		},
		"in a resumed wait": {started, {meanwhile: archive, objects: slow, says: said(fails), creates: 1}, again, again},
		"in a refresh, and retry": {
			started, {before: archive, objects: slowRetried, says: said(warns, "Each apply sends nothing and fails"), creates: 1},
			{objects: slowRetried, says: said(warns, fails), creates: 1},
		},
		"in a refresh, and nobody waits": {
			started, {before: archive, objects: of("slow", unwaited), says: said("No run waited for it."), creates: 1},
			{objects: of("slow", unwaited), says: said(warns), creates: 1}, again,
			{objects: of("slow", attrs{"wait": attrs{"enabled": false, "on_failure": "warn"}}), creates: 1},
		},
		"adopted": {
			started, {before: archivedAndLost, objects: slow, says: said(adopted, fails), creates: 1}, {objects: slow, says: said(fails), creates: 1},
		},
		"adopted, and nobody waits": {started, {before: archivedAndLost, objects: of("slow", unwaited), says: said(adopted, warns), creates: 1}},
		"imported":                  {{before: imported, objects: of("A", nil), says: said(warns, fails)}},
		"completed before, and again": {
			first, archived, {before: becomes("active"), meanwhile: archive, objects: bare, says: said(warns), creates: 1},
		},
		"completed before a message": {
			first, archived, {before: becomes("active"), objects: gone, says: said(fails), creates: 1, messages: 1},
		},
		"with a link": {{objects: linked, says: said(warns), creates: 1}, {objects: linked, creates: 1}},
	})
}
