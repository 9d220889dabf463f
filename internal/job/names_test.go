// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"fmt"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// gone is a resource that is not in the configuration any more.
func gone(address string) object { return object{address: address, gone: true} }

// A name belongs to the resource that has its job, whatever becomes of addresses and names.
func TestNames(t *testing.T) {
	a, b := named("a", "A"), named("b", "B")
	first := step{objects: []object{a}, creates: 1}
	both := step{objects: []object{a, b}, creates: 2, after: has("a 1", "b 2")}
	swapped := []object{named("b", "A").at("a"), named("a", "B").at("b")}
	renamed := named("b", "A").at("a")
	triggered := []object{a.with(attrs{"triggers": attrs{"v": "1"}})}
	writeOnly := []object{{job: attrs{"name": "a", "prompt_wo": "A"}}, {job: attrs{"name": "b", "prompt_wo": "A"}, address: "a", ignored: []string{"prompt_wo"}}}
	withoutName := func(prompt string) []object {
		o := named("a", prompt)
		o.ignored = []string{"name"}
		return []object{o}
	}
	withoutPrompt, unnamed := []object{a}, []object{a, b}
	withoutPrompt[0].ignored = []string{"prompt"}
	ignoredAndTriggered := []object{triggered[0]}
	ignoredAndTriggered[0].ignored = []string{"prompt"}
	for i := range unnamed {
		unnamed[i].ignored = []string{"name", "prompt"}
	}
	lives := map[string][]step{
		"N24 changed in place": {
			first,
			{objects: []object{renamed}, creates: 1, after: has("a 1!", "b 1")},
			{objects: []object{renamed}, creates: 1},
			{before: lost, objects: []object{renamed}, says: []string{willAdopt, adopted}, creates: 1},
			{objects: []object{renamed, a.at("other")}, creates: 2, after: has("a 2", "b 1")},
		},
		"N24 changed with the prompt": {
			first,
			{objects: []object{named("b", "B").at("a")}, says: []string{followUp}, creates: 1, messages: 1, after: has("a 1!", "b 1")},
			{before: lost, objects: []object{named("b", "B").at("a")}, says: []string{willAdopt, adopted}, creates: 1, messages: 1},
		},
		"changed, and the prompt was sent under the earlier name": {
			first, {objects: []object{named("a", "B")}, says: []string{followUp}, creates: 1, messages: 1},
			{before: asBefore(1), objects: []object{named("b", "B").at("a")}, says: []string{countsAsSent, countsAsSent}, creates: 1, messages: 1, after: has("a 1!", "b 1")},
			{objects: []object{named("b", "B").at("a")}, creates: 1, messages: 1},
		},
		"changed, with a prompt_wo in ignore_changes": {
			{objects: []object{writeOnly[0].at("a")}, creates: 1}, {objects: writeOnly[1:], creates: 1, after: has("a 1!", "b 1")},
			{before: lost, objects: writeOnly[1:], says: []string{willAdopt, adopted}, creates: 1},
		},
		"changed with the prompt, which is refused": {
			first,
			{before: func(l *life) {
				l.s.Inject(simulator.Fault{Kind: simulator.KindMessage, Status: 402})
			}, objects: []object{named("b", "B").at("a")}, says: []string{followUp, "ERROR: Message to agent job not accepted"}, creates: 1, messages: 1, after: has("a 1!", "b 1")},
			{objects: []object{gone("a")}, creates: 1, messages: 1, after: has("a 1!", "b 1!")},
			{objects: []object{named("b", "B").at("a")}, creates: 2, messages: 1},
		},
		"changed to that of a destroyed job": {
			both, {objects: []object{a, gone("b")}, creates: 2, after: has("a 1", "b 2!")},
			{objects: []object{renamed}, creates: 2, after: has("a 1!", "b 1")},
		},
		"changed to that of a job which was lost": {
			both, {before: func(l *life) { delete(l.state, "b") }, objects: []object{renamed}, says: []string{mayOtherJob, otherJob}, creates: 2, after: has("a 1", "b 2")},
		},
		"changed after an adoption": {
			first, {before: lost, objects: []object{a}, says: []string{willAdopt, adopted}, creates: 1},
			{objects: []object{renamed}, creates: 1, after: has("a 1!", "b 1")},
			{objects: []object{gone("a")}, creates: 1, after: has("a 1!", "b 1!")},
		},
		"given up and taken, planned first": {
			first, {objects: []object{renamed, a.at("other")}, says: []string{notAdopted}, creates: 2, after: has("a 2", "b 1")},
		},
		"given up and taken, planned last": {
			first, {objects: []object{a.at("other"), renamed}, backwards: true, says: []string{willAdopt, notAdopted}, creates: 2, after: has("a 2", "b 1")},
			{objects: []object{renamed, a.at("other")}, creates: 2},
		},
		"N24 exchanged": {
			both, {objects: swapped, says: []string{mayOtherJob, mayOtherJob, otherJob, otherJob}, creates: 2, after: has("a 1", "b 2")},
			{objects: []object{a, b}, creates: 2},
		},
		"N11 imported": {
			{before: func(l *life) { ended(l.s); importTo(l, "a") }, objects: []object{a}, says: []string{recorded}, after: has("a 1")},
			{objects: []object{a}}, {before: lost, objects: []object{a}, says: []string{willAdopt, adopted}},
		},
		"imported, with triggers": {
			{before: func(l *life) { ended(l.s); importTo(l, "a") }, objects: triggered, says: []string{recorded}, after: has("a 1")},
			{objects: triggered}, {before: lost, objects: triggered, says: []string{willAdopt, adopted}},
		},
		"imported, with triggers, and an ignored prompt": {
			{before: func(l *life) { ended(l.s); importTo(l, "a") }, objects: withoutPrompt, after: has("a 1")},
			{objects: ignoredAndTriggered, creates: 1, after: has("a 2")},
			{before: lost, objects: ignoredAndTriggered, says: []string{willAdopt, adopted}, creates: 1},
		},
		"N11 imported, and the prompt later": {
			{before: func(l *life) { ended(l.s); importTo(l, "a") }, objects: withoutPrompt, after: has("a 1")},
			{objects: []object{a}, says: []string{recorded}},
			{before: lost, objects: []object{a}, says: []string{willAdopt, adopted}},
		},
		"imported, with ignore_changes of the name: a message would not be recorded": {
			{before: func(l *life) { ended(l.s); importTo(l, "a") }, objects: withoutName("A"), says: []string{recorded}},
			{objects: withoutName("B"), says: []string{"ERROR: Message to agent job not accepted"}},
			{objects: []object{named("a", "B")}, says: []string{followUp}, messages: 1, after: has("a 1")},
			{before: asBefore(1), objects: []object{named("a", "B")}, says: []string{countsAsSent, countsAsSent}, messages: 1},
		},
		"imported, and then a name that has another job, with a message": {
			first, {before: func(l *life) { lost(l); l.imports("a", ended(l.s)) }, objects: withoutName("A"), says: []string{recorded}, creates: 1},
			{objects: []object{named("a", "B")}, says: []string{mayOtherJob, otherJob}, creates: 1},
			{objects: []object{a}, says: []string{notInState}, creates: 1, after: has("a 2")},
		},
		"imported, with ignore_changes": {
			{before: func(l *life) { l.imports("a", ended(l.s)); l.imports("b", ended(l.s)) }, objects: unnamed}, {objects: unnamed, after: has()},
		},
		"imported with a name that has another job": {
			first, {before: func(l *life) { lost(l); l.imports("a", ended(l.s)) }, objects: []object{a}, says: []string{notInState, recorded}, creates: 1, after: has("a 2")},
			{objects: []object{a}, says: []string{previousJobs}, creates: 1}, {objects: []object{a}, creates: 1},
		},
		"imported with a name that a new one gets": {
			{before: func(l *life) { ended(l.s); importTo(l, "a") }, objects: []object{a, a.at("other")}, planOnly: true, says: []string{recorded, duplicate}},
		},
		"changed to a name that a new one gets": {
			first, {objects: []object{renamed, named("b", "B").at("other")}, planOnly: true, says: []string{duplicate}, creates: 1},
		},
		"a moved address": {
			first, {before: func(l *life) { l.state = map[string]stored{"other": l.state["a"]} }, objects: []object{a.at("other")}, creates: 1, after: has("a 1")},
		},
		"N09 two new ones with one prompt": {
			{objects: []object{a, a.at("other")}, says: []string{duplicate}, creates: 1},
			{objects: []object{a, a.at("other")}, says: []string{duplicate}, creates: 1},
		},
		"two projects": {{objects: []object{a, named("a", "B").at("other").with(attrs{"project_id": "proj_2"})}, creates: 2}},
		"two jobs get one name": {
			both, {objects: []object{a, named("a", "B").at("b")}, says: []string{duplicate, mayOtherJob}, creates: 2, after: has("a 1", "b 2")},
		},
		"N09 a kept job is planned after a new one with its name": {
			first, {objects: []object{named("a", "A").at("other"), a}, says: []string{willAdopt, duplicate}, creates: 1, after: has("a 1")},
			{objects: []object{a}, creates: 1},
		},
		"N09 a kept job is planned before a new one with its name": {
			first, {objects: []object{a, named("a", "A").at("other")}, says: []string{duplicate}, creates: 1, after: has("a 1")},
			{objects: []object{a}, creates: 1},
		},
	}
	for _, oldFirst := range []bool{true, false} {
		for _, backwards := range []bool{true, false} {
			objects := []object{named("a", "A").at("new"), gone("a")}
			if oldFirst {
				objects = []object{gone("a"), named("a", "A").at("new")}
			}
			says := []string{notAdopted}
			if !oldFirst {
				says = []string{willAdopt, notAdopted}
			}
			lives[fmt.Sprintf("N09 a changed address, destroy planned first %t, applied in another order %t", oldFirst, backwards)] = []step{
				first,
				{objects: objects, says: says, backwards: backwards, creates: 2, after: has("a 2")},
				{objects: []object{named("a", "A").at("new")}, creates: 2},
				{before: lost, objects: []object{named("a", "A").at("new")}, says: []string{willAdopt, adopted}, creates: 2},
			}
		}
	}
	for _, newFirst := range []bool{true, false} {
		objects := []object{a, named("a", "B").at("other")}
		if newFirst {
			objects = []object{named("a", "B").at("other"), a}
		}
		lives[fmt.Sprintf("two new ones, the second one first %t", newFirst)] = []step{{objects: objects, says: []string{duplicate}}}
	}
	play(t, lives)
}

func importTo(l *life, address string) { l.imports(address, l.s.OnlyJob(l.t).ID) }

// Of two new resources with one name, an apply's own plan says nothing, because a failed plan in an apply may leave a deposed object:
// the create stops.
func TestNames_N09_plannedInApply(t *testing.T) {
	s := harness.NewService(t, harness.Always(simulator.Script{}))
	c := fakecli.New(t, fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": t.TempDir() + stateName}}))
	startRun(c, "run", fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": t.TempDir() + stateName}}))
	job := func(prompt string) attrs { return attrs{"name": "docs", "prompt": prompt} }
	wantErrors(t, append(c.Plan(t.Context(), job("A")), c.Apply(t.Context(), job("A"))...))
	c.Forget()
	wantErrors(t, c.Plan(t.Context(), job("B")))
	wantErrors(t, c.ApplyPlanned(t.Context(), job("B")), "Duplicate agent job name")
	s.Sent(t, 1, 0)
	if !c.State.IsNull() {
		t.Error(c.State)
	}
}
