// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !race

// Package lives plays what a user and the service do to one job over several applies, at random, and asserts
// what must follow from any of them: nothing is sent again, nothing is lost, an apply is green only when its
// job is done, and there is a way out. With the race detector it takes four times as long.
//
// A turn (turn_test.go) is one run of the CLI and what surrounds it, and a life is some turns. The player (player_test.go)
// plays a life up to the first turn that breaks the promise: check asserts, play does what the turn says.
package lives

import (
	"cmp"
	"flag"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// TestLives plays the same lives in each make test: known ones, and some from a seed. With LIVES it plays that many
// others, or those of CHAOS_SEED.
func TestLives(t *testing.T) {
	seed, number := uint64(36), harness.Number(t, "LIVES", 0)
	if number > 0 {
		seed = uint64(time.Now().Unix())
	}
	seed, number = harness.Number(t, "CHAOS_SEED", seed), cmp.Or(number, 100)
	for name, value := range map[string]any{"rapid.seed": seed, "rapid.checks": number, "rapid.nofailfile": true} {
		if err := flag.Set(name, fmt.Sprint(value)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(t.TempDir()) // the default journal is there
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	for name, l := range knownLives {
		t.Run(name, func(t *testing.T) {
			if b := playLife(t, l); b != nil {
				t.Error(b.report(l))
			}
		})
	}
	if t.Failed() {
		return
	}
	played, start := 0, time.Now()
	rapid.Check(t, func(rt *rapid.T) {
		l := lives.Draw(rt, "life")
		played += len(l.Turns)
		if b := playLife(t, l); b != nil {
			rt.Log(b.report(l))
			rt.Fatal(b.wrong) // alone: rapid looks for a simpler life with the same error
		}
	})
	spent := time.Since(start).Seconds()
	fmt.Printf("played %d lives from seed %d: %d turns in %.1f s, %.0f/s\n", number, seed, played, spent, float64(played)/spent)
}

func (b *breach) report(l life) string {
	var text strings.Builder
	fmt.Fprintf(&text, "\njournal: %s, refuses messages to completed jobs with: %d\n", l.Journal, l.Refuses)
	for i, turn := range slices.Concat(l.Turns, l.ending())[:b.number] {
		fmt.Fprintf(&text, "  %d %v\n", i+1, turn)
	}
	fmt.Fprintf(&text, "wrong: %s\n%s", strings.Join(b.wrong, "\n       "), b.observed.all)
	return text.String()
}

// knownLives have shown a bug, as their shortest form was printed.
var knownLives = map[string]life{
	"an accepted message was sent again as a new job":               {Journal: on, Turns: []turn{{}, {config: config{Prompt: "B"}, Goes: failed, Killed: true}, {config: config{Prompt: "B"}}}},
	"an unknown message was sent again as a new job":                {Journal: on, Turns: []turn{{Goes: outlasts}, {config: config{Prompt: "B"}, Post: lost, Goes: failed}, {config: config{Prompt: "B"}}}},
	"a job that failed later was replaced":                          {Journal: on, Turns: []turn{{Goes: outlasts}, {Meanwhile: failed}}},
	"a destroy forgot a message":                                    {Journal: on, Turns: []turn{{}, {config: config{Prompt: "B"}, Killed: true}, {Does: replace, Killed: true}, {config: config{Prompt: "B"}}}},
	"an unrelated import unblocked an unknown create":               {Journal: on, Turns: []turn{{Post: notArrived}, {Does: importJob}, {}, {Does: refresh}, {Does: stateRm}, {}}},
	"the default folder forgot when a run ended":                    {Journal: on, Turns: []turn{{}, {Does: stateRm}, {}}},
	"ignore_changes and a move to prompt_wo counted as two prompts": {Journal: on, Turns: []turn{{Goes: outlasts}, {config: config{WriteOnly: true}, Ignored: true}}},
	"a repetition was taken for the message before a message that counted as sent": {Journal: on, Turns: []turn{
		{}, {config: config{Prompt: "B"}, Killed: true}, {config: config{Prompt: "C"}, Goes: archived, Killed: true}, {config: config{Prompt: "C"}}, {config: config{Prompt: "B"}},
	}},
	"a message was sent again after an earlier one counted as sent": {Journal: on, Turns: []turn{
		{}, {config: config{Prompt: "C"}, Killed: true}, {config: config{Prompt: "B"}, Killed: true}, {config: config{Prompt: "C"}}, {config: config{Prompt: "B"}},
	}},
	"a job that was adopted after it had refused":     {Journal: on, Turns: []turn{{}, {config: config{Prompt: "B"}, Killed: true}, {config: config{Prompt: "C"}, Post: refused}, {config: config{Prompt: "B"}}, {config: config{Prompt: "C"}}}},
	"a job whose refusals speak of the prompt closes": {Journal: on, Refuses: 400, Turns: []turn{{}, {config: config{Prompt: "B"}}, {config: config{Prompt: "B"}}, {config: config{Prompt: "C"}}, {config: config{Prompt: "C"}}}},
	"a name that the job had before counted": {Journal: on, Turns: []turn{
		{config: config{Prompt: "C"}}, {config: config{Triggers: true}, Post: cut}, {config: config{Name: "guide"}}, {config: config{Prompt: "C"}},
	}},
	"the prompt of an import, ignored at first, was not recorded": {Journal: on, Turns: []turn{
		{Does: importJob}, {Ignored: true}, {config: config{Prompt: "C"}}, {Does: stateRm}, {config: config{Prompt: "C"}},
	}},
	"a name that the job had before counted, in a plan": {Journal: on, Turns: []turn{
		{config: config{Prompt: "B"}}, {config: config{Name: "guide"}}, {config: config{Prompt: "B"}},
	}},
	"a rename that was killed forgot its message": {Journal: on, Turns: []turn{{config: config{Name: "guide"}}, {config: config{Prompt: "C"}, Post: cut}, {config: config{Prompt: "C"}}}},
	"a job failed while a refresh lasted": {Journal: on, Turns: []turn{
		{Goes: failed}, {Meanwhile: gone, config: config{OnFailure: "retry"}, Goes: outlasts, Killed: true},
		{config: config{OnFailure: "retry"}, Goes: failed},
	}},
	"a job of an adoption failed while a refresh lasted": {Journal: on, Turns: []turn{
		{Goes: archived}, {Meanwhile: gone, config: config{Prompt: "B"}, Killed: true},
		{Meanwhile: unheardOf, config: config{Prompt: "B", OnFailure: "retry"}, Goes: failed},
	}},
	"a job that was given up, and its replacement refused": {Journal: on, Turns: []turn{
		{config: config{Prompt: "B"}, Goes: failed}, {Meanwhile: gone, config: config{Prompt: "B"}, Killed: true},
		{config: config{Prompt: "B"}, Post: invalid, Forgets: true}, {Post: lost},
	}},
	"a wait for an adopted job tainted it": {Journal: on, Turns: []turn{{}, {config: config{Prompt: "B"}}, {Does: stateRm}, {Meanwhile: active, config: config{Prompt: "B"}, Goes: outlasts}}},
	"a killed replacement by an unknown prompt freed the name of a failed job": {Journal: on, Turns: []turn{
		{config: config{Prompt: "C"}, Goes: failed}, {Post: unsent, Late: prompt}, {config: config{Prompt: "C", OnFailure: "warn"}},
	}},
	"a plan that was not applied freed the name of a failed job": {Journal: on, Turns: []turn{
		{Goes: failed}, {config: config{Prompt: "B"}, Unapplied: true}, {},
	}},
	"a killed rename hid which failed job a create replaces": {Journal: on, Turns: []turn{
		{}, {config: config{Name: "guide"}, Killed: true}, {Meanwhile: failed, Does: taint, config: config{Prompt: "B", Name: "guide"}, Post: refused, Late: prompt},
	}},
	"a message under an earlier name was taken for the last one": {Journal: on, Turns: []turn{
		{Does: importJob}, {Killed: true}, {config: config{Prompt: "C", Name: "guide"}}, {Meanwhile: archived},
	}},
	"a message under an earlier name was taken for the last one, not archived": {Journal: on, Turns: []turn{
		{Does: importJob}, {Killed: true}, {config: config{Prompt: "C", Name: "guide"}}, {},
	}},
	"a failed job gets a name that it had before, and is replaced": {Journal: on, Turns: []turn{
		{}, {config: config{Name: "guide"}}, {Meanwhile: failed, Does: taint},
	}},
	"an adoption was promised, and on_failure was not known": {Journal: on, Turns: []turn{
		{Killed: true}, {config: config{OnFailure: "retry"}, Late: onFailure},
	}},
	"a changed address, and another prompt for an active job, started a second one": {Journal: on, Turns: []turn{
		{Goes: outlasts}, {config: config{Prompt: "C"}, Goes: outlasts, Moves: destroyedFirst},
	}},
	"triggers known late, without a journal":       {Journal: off, Turns: []turn{{}, {Late: triggers}}},
	"the prompt for an archived job is known late": {Journal: on, Turns: []turn{{}, {Meanwhile: archived, Late: prompt}}},
	"on_failure of a failed job is known late": {Journal: on, Turns: []turn{
		{}, {Meanwhile: failed, config: config{OnFailure: "warn"}}, {config: config{OnFailure: "retry"}, Late: onFailure},
	}},
	"a job is given up when its plan is applied": {Journal: on, Turns: []turn{{}, {Meanwhile: failed}, {Late: forgets}}},
	"a message was killed, and another machine sent it as a new job": {Journal: on, Turns: []turn{
		{}, {config: config{Prompt: "B"}, Post: cut}, {Meanwhile: failed, config: config{Prompt: "B"}, Elsewhere: true},
	}},
	"a closed job gets the name of another one, and a prompt that both were sent": {Journal: on, Turns: []turn{
		{Killed: true}, {config: config{Prompt: "C", Name: "guide"}}, {config: config{Name: "guide"}, Killed: true}, {Meanwhile: archived},
	}},
}
