// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// Whoever asks for another job gets one, with create_before_destroy or without, and a taint alone pays nothing again. What a Delete does
// with the name: TestReplacement_fate, and what the create then does: TestJudge.
func TestReplacement(t *testing.T) {
	lives := map[string][]step{}
	for _, how := range []string{"", ", create_before_destroy", ", create_before_destroy, deposed last"} {
		createFirst, isLast := how != "", strings.HasSuffix(how, "last")
		of := func(prompt string, more attrs) []object {
			o := named("docs", prompt).with(more)
			o.CreateFirst, o.DeposedLast = createFirst, isLast
			return []object{o}
		}
		later := func(prompt string, known, planned attrs) []object { // the plan does not know it
			all := of(prompt, known)
			all[0].Planned = fakecli.With(all[0].Config, planned)
			return all
		}
		says, news := []string(nil), 1 // what is said because the create comes first, which adopts
		if createFirst {
			says, news = []string{adopted}, 0
		}
		saysAnd := func(more ...string) []string { return slices.Concat(says, more) }
		triggers := func(v any) attrs { return attrs{"triggers": attrs{"v": v}} }
		onFailure := func(what string) attrs { return attrs{"wait": attrs{"on_failure": what}} }
		a, fail, noPrompt := of("A", nil), of("fail", nil), attrs{"prompt": unknown{}}
		forced := of("A", nil)
		forced[0].Forced = true
		first, triggered := step{objects: a, creates: 1}, step{objects: of("A", triggers("1")), creates: 1}
		failed1 := step{objects: fail, says: []string{failed}, creates: 1}
		same := func(objects []object) step {
			return step{objects: objects, says: says, creates: 1, after: has("docs 1")}
		}
		another := func(objects []object) step { return step{objects: objects, creates: 2, after: has("docs 2")} }
		archived := func(s step) step { s.before = becomes("archived"); return s }
		another1, keepsFailing := another(a), step{objects: fail, says: saysAnd(failed), creates: 1}
		tainted, stays := same(a), step{objects: a, creates: 2}
		lateName := keepsFailing
		lateName.objects = later("fail", nil, attrs{"name": unknown{}})
		tainted.before = func(l *life) { l.state["docs"].Tainted = true }
		unconfigured := keepsFailing
		unconfigured.unconfigured, unconfigured.says = true, slices.Concat([]string{"WARNING: Agent provider not configured"}, unconfigured.says)
		for name, steps := range map[string][]step{
			"N22 forced": {
				first, {objects: forced, says: says, creates: 1 + news, after: has(fmt.Sprint("docs ", 1+news))}, {objects: a, creates: 1 + news},
			},
			"N22 tainted":  {first, tainted, first},
			"N22 triggers": {triggered, another(of("A", triggers("2"))), {objects: of("A", triggers("2")), creates: 2}},
			"N22 archived, and its prompt is not known yet": {first, archived(step{
				objects: later("A", nil, noPrompt), says: slices.Concat([]string{newJob}, says, []string{"Agent job archived"}), creates: 1,
			}), first},
			"N22 archived, and another prompt is not known yet": {first, archived(step{
				objects: later("B", nil, noPrompt), says: []string{newJob}, creates: 2, after: has("docs 2"),
			})},
			"N22 triggers that are not known yet, and the same": {triggered, same(later("A", triggers("1"), triggers(unknown{})))},
			"N22 triggers that are not known yet":               {triggered, another(later("A", triggers("2"), triggers(unknown{})))},
			"N22 a project that is not known yet, and the same": {
				first, same(later("A", attrs{"project_id": harness.Project}, attrs{"project_id": unknown{}})),
			},
			"N25 failed": {failed1, keepsFailing, keepsFailing, another1, stays},
			"N25 failed, and retry": {
				failed1, {objects: of("fail", onFailure("retry")), says: []string{"so the next apply starts a new job"}, creates: 2},
				{objects: of("fail", onFailure("retry")), says: []string{failed}, creates: 3},
			},
			"failed, and another project": { // the old object is deposed until the last step
				failed1, {objects: of("fail", attrs{"project_id": "proj_2"}), says: []string{failed}, creates: 2},
				{objects: fail, says: append(map[bool][]string{true: {adopted}}[isLast], failed), creates: 2 + news},
			},
			"failed, and the name is not known yet":           {failed1, lateName},
			"failed, and the provider's key is not known yet": {failed1, unconfigured},
			"failed later": { // each apply fails, until something changes
				first, {before: becomes("failed"), objects: a, says: []string{hasFailed, failed}, creates: 1},
				{objects: of("A", attrs{"wait": attrs{"enabled": false}}), says: []string{hasFailed}, creates: 1},
				{objects: of("A", onFailure("warn")), creates: 1}, {objects: of("B", nil), says: []string{newJob}, creates: 2},
			},
		} {
			if !isLast || strings.HasPrefix(name, "failed") { // nothing else leaves a deposed object
				lives[name+how] = steps
			}
		}
		if !createFirst { // else the create comes before anything has left the job
			lives["N22 archived, its prompt is not known yet, and no create follows"] = []step{
				first, archived(step{objects: later("", nil, noPrompt), says: []string{newJob, "It was not sent"}, creates: 1}),
				{objects: a, says: []string{adopted, "Agent job archived"}, creates: 1, after: has("docs 1")},
			}
		}
	}
	play(t, lives)
}

// Without a journal, the process that destroys a tainted job hands it to the create.
func TestReplacement_taintedWithoutJournal(t *testing.T) {
	off := func(l *life) { l.config["journal"] = attrs{"enabled": false} }
	lives := map[string][]step{}
	for _, prompt := range []string{"prompt", "prompt_wo"} {
		of := func(text string) []object {
			return []object{{Address: "docs", Config: attrs{"name": "docs", prompt: text}}}
		}
		failed1 := step{before: off, objects: of("fail"), says: []string{failed}, creates: 1}
		says := failed1
		says.says = []string{"with create_before_destroy starts a new job, too"}
		lives[prompt] = []step{says, failed1, failed1, {objects: of("A"), creates: 2}, {objects: of("A"), creates: 2}}
	}
	play(t, lives)
}

// A message does not change who holds a job: not if the record was lost, nor if there was no journal for a while. Red without: each
// condition of a holder in setLast, Remove and saveOutcome.
func TestRemove_holder(t *testing.T) {
	var kept any
	off := func(l *life) { kept = l.config["journal"]; l.config["journal"] = attrs{"enabled": false} }
	on := func(l *life) { l.config["journal"] = kept }
	killed := func(l *life) { // after its message was sent
		on(l)
		wanted := journal.Wanted{Project: harness.Project, Name: "docs", Recipient: l.s.OnlyJob(l.t).ID, Arguments: "null{}", Prompt: "B"}
		c := l.journal().Begin(l.t.Context(), wanted)
		if err := errors.Join(c.Claim(), c.BeforeBody()); err != nil {
			l.t.Fatal(err)
		}
		time.Sleep(3 * time.Hour)
	}
	adopted := func(l *life) { // by another state
		newLife(l.t, l.s, l.folder).run("other", step{objects: []object{named("docs", "A")}})
	}
	a, b := []object{named("docs", "A")}, []object{named("docs", "B")}
	first, removed := step{objects: a, creates: 1}, []object{gone("docs")}
	play(t, map[string][]step{
		"a lost record": {
			{before: off, objects: a, creates: 1}, {before: killed, objects: b, creates: 1, says: []string{"unknown"}},
			{objects: removed, creates: 1}, {objects: b, creates: 2},
		},
		"a message after an adoption": {
			first, {before: adopted, objects: b, creates: 1, messages: 1}, {objects: removed, creates: 1, messages: 1, after: has("docs 1")},
		},
		"no journal for a message": {
			first, {before: off, objects: b, creates: 1, messages: 1},
			{before: on, objects: removed, creates: 1, messages: 1, after: has("docs 1!")}, {objects: a, creates: 2, messages: 1},
		},
	})
}
