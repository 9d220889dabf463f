// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"fmt"
	"testing"
)

// gone is a resource that is not in the configuration any more.
func gone(address string) object { return object{Address: address, Gone: true} }

// A name belongs to the resource that has its job, whatever becomes of addresses and names.
func TestNames(t *testing.T) {
	a, b := named("a", "A"), named("b", "B")
	onlyA, renamed, a2 := []object{a}, []object{named("b", "A").at("a")}, named("a", "B")
	first := step{objects: onlyA, creates: 1}
	both := step{objects: []object{a, b}, creates: 2, after: has("a 1", "b 2")}
	twice := []object{a, named("b", "A")}
	// Another prompt for a job that is at work stops, whatever becomes of one that has completed.
	unwaited := attrs{"wait": attrs{"enabled": false}}
	busy := []object{named("a", "slow").with(unwaited), named("b", "slow").with(unwaited)}
	exchanged := []object{renamed[0], a2.at("b")}
	ignoring := func(o object) object { o.Ignored = []string{"name"}; return o }
	imports := func(l *life) { ended(l.s); importTo(l, "a") }
	importsBeside := func(l *life) { lost(l); l.imports("a", ended(l.s)) }
	oneInTwo := func(l *life) { lost(l); importTo(l, "a"); importTo(l, "b") }
	const leaves = "WARNING: Active agent job leaves the state: "
	const replacing, removed = leaves + "Apply removes", leaves + "This run removed"
	lives := map[string][]step{
		"N24 another name":   {first, {objects: renamed, creates: 2, after: has("a 1!", "b 2")}, {objects: renamed, creates: 2}},
		"given up and taken": {first, {objects: []object{renamed[0], a.at("other")}, creates: 2, after: has("a 1", "b 2")}},
		"N24 exchanged": { // no prompt goes to the job of the other one, nor to another job beside it, until an apply has removed both
			{objects: busy, creates: 2},
			{
				objects: exchanged, creates: 2, after: has("a 1!", "b 2!"),
				says: []string{mayStop, replacing, mayStop, replacing, removed, stops, removed, stops},
			},
			{objects: exchanged, creates: 4, after: has("a 4", "b 3")},
		},
		"N11 imported": {
			{before: imports, objects: onlyA, after: has("a 1")}, {objects: onlyA}, {before: lost, objects: onlyA, says: []string{adopted}},
		},
		"imported, with ignore_changes of the name: a message would not be recorded": {
			{before: imports, objects: []object{ignoring(a)}}, {objects: []object{ignoring(a2)}, says: []string{notAccepted}},
			{objects: []object{a2}, messages: 1, after: has("a 1")},
			{before: asBefore(1), objects: []object{a2}, says: []string{countsAsSent}, messages: 1},
		},
		"imported, and then a name that has another job, with a message": {
			first, {before: importsBeside, objects: []object{ignoring(a)}, creates: 1},
			{objects: []object{a2}, says: []string{mayOtherJob, otherJob}, creates: 1}, {objects: onlyA, creates: 1, after: has("a 2")},
		},
		"imported with a name that has another job": {
			first, {before: importsBeside, objects: onlyA, says: []string{getsAnother}, creates: 1, after: has("a 2")},
		},
		"one job in two resources": {
			first, {before: oneInTwo, objects: twice, creates: 1, after: has("a 1", "b 1")}, {objects: twice, creates: 1},
		},
		"N09 two new ones with one prompt": {{objects: []object{a, a.at("other")}, says: []string{duplicate}, creates: 1}},
		"destroyed and created again by terraform test": {
			{before: func(l *life) { l.isTest = true }, objects: onlyA, creates: 1},
			{objects: []object{gone("a")}, creates: 1}, {objects: onlyA, creates: 2},
		},
		"two projects": {{objects: []object{a, a2.at("other").with(attrs{"project_id": "proj_2"})}, creates: 2}},
		"two jobs get one name": {
			both, {objects: []object{a, a2.at("b")}, says: []string{duplicate, getsAnother}, creates: 2, after: has("a 1", "b 2")},
		},
	}
	for _, isFirst := range []bool{true, false} {
		inOrder := func(one, other object) []object {
			if isFirst {
				return []object{one, other}
			}
			return []object{other, one}
		}
		saysIf := func(text string, when bool) []string { return map[bool][]string{true: {text}}[isFirst == when] }
		of := func(what string) string { return fmt.Sprintf("%s, in this order: %t", what, isFirst) }
		other := duplicate + map[bool]string{true: ": Another resource, with job job_", false: ": Another resource has the name"}[isFirst]
		lives[of("N09 a kept job, and a new one with its name")] = []step{
			first, {objects: inOrder(a, a.at("other")), says: []string{other}, creates: 1, after: has("a 1")},
		}
		lives[of("two new ones")] = []step{{objects: inOrder(a, a2.at("other")), says: []string{duplicate}}}
		lives[of("N09 a changed address")] = []step{ // the create says that it adopts, unless the Delete came before
			first, {objects: inOrder(gone("a"), a.at("new")), says: saysIf(adopted, false), creates: 1, after: has("a 1")},
			{objects: []object{a.at("new")}, creates: 1}, {objects: []object{gone("new")}, creates: 1, after: has("a 1!")},
		}
		lives[of("a shifted count")] = []step{
			both, {objects: inOrder(b.at("a"), gone("b")), says: saysIf(adopted, true), creates: 2, after: has("a 1!", "b 2")},
			{objects: []object{b.at("a")}, creates: 2},
		}
	}
	play(t, lives)
}

func importTo(l *life, address string) { l.imports(address, l.s.OnlyJob(l.t).ID) }
