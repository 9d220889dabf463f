// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// Whoever asks for another job gets one, with create_before_destroy or without, and a taint alone pays nothing again.
func TestReplacement(t *testing.T) {
	lives := map[string][]step{}
	for _, how := range []string{"", ", create_before_destroy", ", create_before_destroy, deposed last"} {
		createFirst := how != ""
		of := func(prompt string, more attrs) []object {
			o := named("docs", prompt).with(more)
			o.CreateFirst, o.DeposedLast = createFirst, strings.HasSuffix(how, "last")
			return []object{o}
		}
		forced := func(more attrs) []object {
			all := of("A", more)
			all[0].Forced = true
			return all
		}
		later := func(objects []object, more attrs) []object { // the plan does not know it
			objects[0].Planned = fakecli.With(objects[0].Config, more)
			return objects
		}
		says := func(bySecond ...string) []string { // what is said because the create comes first
			if createFirst {
				return bySecond
			}
			return nil
		}
		count := func(destroyFirst, whenCreateFirst int) int {
			if createFirst {
				return whenCreateFirst
			}
			return destroyFirst
		}
		taints := func(l *life) { l.state["docs"].Tainted = true }
		isFree := func(l *life) { // an apply could not record that it adopted the job
			taints(l)
			if _, err := l.journal().Remove(l.t.Context(), journal.Object{Project: harness.Project, Name: "docs", JobID: l.s.OnlyJob(l.t).ID}, journal.Release); err != nil {
				l.t.Error(err)
			}
		}
		triggers := func(v any) attrs { return attrs{"triggers": attrs{"v": v}} }
		onFailure := func(what string) attrs { return attrs{"wait": attrs{"on_failure": what}} }
		short := func(prompt string) []object { return of(prompt, attrs{"timeouts": attrs{"create": "500ms"}}) }
		a, fail := of("A", nil), of("fail", nil)
		first, failed1 := step{objects: a, creates: 1}, step{objects: fail, says: []string{failed}, creates: 1}
		again := step{objects: fail, says: append(says(adopted), failed), creates: 1}
		stays := func(creates int) step { return step{objects: a, creates: creates} }
		for name, steps := range map[string][]step{
			"N22 forced":                    {first, {objects: forced(nil), says: says(adopted), creates: count(2, 1), after: has(fmt.Sprint("docs ", count(2, 1)))}, stays(count(2, 1))},
			"N22 tainted":                   {first, {before: taints, objects: a, says: says(adopted), creates: 1, after: has("docs 1")}, stays(1)},
			"tainted, and its name is free": {first, {before: isFree, objects: a, creates: count(1, 2)}, stays(count(1, 2))},
			"N22 triggers": {
				{objects: of("A", triggers("1")), creates: 1}, {objects: of("A", triggers("2")), creates: 2, after: has("docs 2")}, {objects: of("A", triggers("2")), creates: 2},
			},
			"given up": {first, {before: forgets, objects: a, creates: 2, after: has("docs 2")}, stays(2)},
			"cut short, and continued": {
				{objects: short("slow"), says: []string{stillRunning}, creates: 1},
				{objects: a, says: []string{mayStop, stops}, creates: 1, after: has("docs 1")},
				{before: func(l *life) { l.s.SetStatus(l.s.OnlyJob(l.t).ID, "completed") }, objects: a, says: []string{getsAnother, getsAnother}, creates: 2, after: has("docs 2")},
			},
			"N25 failed":                                        {failed1, {objects: fail, says: append(says(adopted), "the next apply sends nothing and fails again"), creates: 1}, again, {objects: a, creates: 2, after: has("docs 2")}, stays(2)},
			"failed, and another name":                          {failed1, {objects: of("A", attrs{"name": "other"}), creates: 2, after: has("docs 1!", "other 2")}},
			"failed, and warned of":                             {failed1, {objects: of("fail", onFailure("warn")), says: append(says(adopted), "The job stays in the state."), creates: 1}},
			"N22 archived, and its prompt is not known yet":     {first, {before: becomes("archived"), objects: later(of("A", nil), attrs{"prompt": unknown{}}), says: append(append([]string{newJob}, says(adopted)...), "Agent job archived"), creates: 1, after: has("docs 1")}, stays(1)},
			"N22 archived, and another prompt is not known yet": {first, {before: becomes("archived"), objects: later(of("B", nil), attrs{"prompt": unknown{}}), says: []string{newJob}, creates: 2, after: has("docs 2")}},
			"N22 triggers that are not known yet, and the same": {
				{objects: of("A", triggers("1")), creates: 1}, {objects: later(of("A", triggers("1")), triggers(unknown{})), says: says(adopted), creates: 1, after: has("docs 1")},
			},
			"N22 a project that is not known yet, and the same": {
				first, {objects: later(of("A", attrs{"project_id": harness.Project}), attrs{"project_id": unknown{}}), says: says(adopted), creates: 1, after: has("docs 1")},
			},
			"N22 triggers that are not known yet": {
				{objects: of("A", triggers("1")), creates: 1}, {objects: later(of("A", triggers("2")), triggers(unknown{})), creates: 2, after: has("docs 2")},
			},
			"failed, and another project": {
				failed1, {objects: of("fail", attrs{"project_id": "proj_2"}), says: []string{failed}, creates: 2}, {objects: fail, says: append(map[bool][]string{true: {adopted}}[strings.HasSuffix(how, "last")], failed), creates: count(3, 2)}, // the old object is deposed until then
			},
			"failed, and active again":               {failed1, {before: becomes("completed"), objects: fail, says: says(adopted), creates: 1}},
			"N25 failed, and retry":                  {failed1, {objects: of("fail", onFailure("retry")), says: []string{"so the next apply starts a new job"}, creates: 2}, {objects: of("fail", onFailure("retry")), says: []string{failed}, creates: 3}},
			"failed, and triggers are not known yet": {{objects: of("fail", triggers("1")), says: []string{failed}, creates: 1}, {objects: later(of("fail", triggers("1")), triggers(unknown{})), says: append(says(adopted), failed), creates: 1}},
			"failed, and other triggers are not known yet": {
				{objects: of("fail", triggers("1")), says: []string{failed}, creates: 1}, {objects: later(of("A", triggers("2")), triggers(unknown{})), creates: 2, after: has("docs 2")},
			},
			"failed, and the name is not known yet":           {failed1, {objects: later(of("fail", nil), attrs{"name": unknown{}}), says: append(says(adopted), failed), creates: 1, after: has("docs 1")}},
			"failed, and the provider's key is not known yet": {failed1, {objects: fail, unconfigured: true, says: append(append([]string{"WARNING: Agent provider not configured"}, says(adopted)...), failed), creates: 1}},
			"failed later, and retry":                         {first, {before: becomes("failed"), objects: of("A", onFailure("retry")), creates: 2, after: has("docs 2")}},
			"failed later": { // each apply fails, until something changes
				first, {before: becomes("failed"), objects: a, says: []string{hasFailed, failed}, creates: 1}, {objects: a, says: []string{hasFailed, failed}, creates: 1},
				{objects: of("A", attrs{"wait": attrs{"enabled": false}}), says: []string{hasFailed}, creates: 1},
				{objects: of("A", onFailure("warn")), creates: 1},
				{objects: of("B", nil), says: []string{newJob}, creates: 2},
			},
		} {
			if !strings.HasSuffix(how, "last") || strings.HasPrefix(name, "failed") { // nothing else leaves a deposed object
				lives[name+how] = steps
			}
		}
		if !createFirst { // else the create comes before anything has left the job
			lives["N22 archived, its prompt is not known yet, and no create follows"] = []step{
				first, {before: becomes("archived"), objects: later(of("", nil), attrs{"prompt": unknown{}}), says: []string{newJob, "It was not sent"}, creates: 1},
				{objects: a, says: []string{adopted, "Agent job archived"}, creates: 1, after: has("docs 1")},
			}
			lives["N22 triggers that are not known yet, and the same, with another prompt"] = []step{
				{objects: of("A", triggers("1")), creates: 1},
				{objects: later(of("B", triggers("1")), triggers(unknown{})), says: []string{getsAnother}, creates: 2, after: has("docs 2")},
			}
		}
		if createFirst { // an adoption counts although the job cannot be read, so the old object does not free the name
			lives["forced, and its job cannot be read"+how] = []step{
				first,
				{
					before:  injects(simulator.Fault{Kind: simulator.KindGet, Skip: 1, Times: -1, Status: 404}),
					objects: forced(nil), says: []string{notReadable}, creates: 1,
				},
				{before: mends, objects: []object{gone("docs")}, creates: 1, after: has("docs 1")},
			}
		}
	}
	play(t, lives)
}

// Without a journal, or where its folder vanished with the runner, the process that destroys a tainted job hands it to the create.
func TestReplacement_taintedWithoutJournal(t *testing.T) {
	off := func(l *life) { l.config["journal"] = attrs{"enabled": false} }
	vanished := func(l *life) {
		if err := errors.Join(os.RemoveAll(l.folder), os.Mkdir(l.folder, 0o700)); err != nil {
			l.t.Error(err)
		}
	}
	lives := map[string][]step{
		"what its error says": {{before: off, objects: []object{named("docs", "fail")}, says: []string{"with create_before_destroy starts a new job, too"}, creates: 1}},
	}
	for name, before := range map[string]func(*life){"off": off, "vanished": vanished} {
		for _, prompt := range []string{"prompt", "prompt_wo"} {
			of := func(text string) []object {
				return []object{{Address: "docs", Config: attrs{"name": "docs", prompt: text}}}
			}
			failed1 := step{before: before, objects: of("fail"), says: []string{failed}, creates: 1}
			lives[name+", "+prompt] = []step{failed1, failed1, failed1, {objects: of("A"), creates: 2}, {objects: of("A"), creates: 2}}
		}
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
	gone := named("docs", "B")
	gone.Gone = true
	play(t, map[string][]step{
		"a lost record": {
			{before: off, objects: []object{named("docs", "A")}, creates: 1},
			{before: killed, objects: []object{named("docs", "B")}, creates: 1, says: []string{"unknown"}},
			{objects: []object{gone}, creates: 1},
			{objects: []object{named("docs", "B")}, creates: 2},
		},
		"a message after an adoption": {
			{objects: []object{named("docs", "A")}, creates: 1},
			{before: adopted, objects: []object{named("docs", "B")}, creates: 1, messages: 1},
			{objects: []object{gone}, creates: 1, messages: 1, after: has("docs 1")},
		},
		"no journal for a message": {
			{objects: []object{named("docs", "A")}, creates: 1},
			{before: off, objects: []object{named("docs", "B")}, creates: 1, messages: 1},
			{before: on, objects: []object{gone}, creates: 1, messages: 1, after: has("docs 1!")},
			{objects: []object{named("docs", "A")}, creates: 2, messages: 1},
		},
	})
}
