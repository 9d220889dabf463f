// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// What plans and applies say because of the record of a name.
const (
	willAdopt     = "WARNING: Agent job of an earlier run will be adopted"
	adopted       = "WARNING: Agent job of an earlier run adopted"
	mayStop       = "WARNING: Name has an agent job with another prompt"
	stops         = "ERROR: Name has an agent job with another prompt"
	mayUnknown    = "WARNING: Outcome of agent job create unknown"
	unknownCreate = "ERROR: Outcome of agent job create unknown"
	notInState    = "WARNING: Agent job of another run not in the state"
	mayOtherJob   = "WARNING: Name has another agent job"
	otherJob      = "ERROR: Name has another agent job"

	notAdopted     = "WARNING: Agent job will not be adopted"
	duplicate      = "ERROR: Duplicate agent job name"
	countsAsSent   = "WARNING: Message of an earlier run counts as sent"
	followUp       = "WARNING: Follow-up message to agent job"
	unknownMessage = "ERROR: Outcome of message to agent job unknown"
	earlierUnknown = "WARNING: Outcome of an earlier request unknown"
	unfinished     = "WARNING: Unfinished agent job"
	unconfirmed    = "WARNING: Message to agent job unconfirmed"
	failed         = "ERROR: Agent job failed"
	staysFailed    = "WARNING: Agent job has failed"
	retriesFailed  = "WARNING: Failed agent job will be replaced"
	notReadable    = "ERROR: Agent job of an earlier run not readable"
	recorded       = "WARNING: Prompt stored without sending it"
	previousJobs   = "WARNING: Earlier agent jobs of a name not in the state"
	adoptedTwice   = "WARNING: Agent job was adopted by another run"
	unusable       = "WARNING: Journal not usable"
	mayElsewhere   = "WARNING: Name has a record in another journal"
	notReleased    = "ERROR: Name of agent job not released"
	elsewhere      = "ERROR: Name has a record in another journal"
)

// named is a resource whose address is its name.
func named(name, prompt string) object {
	return object{address: name, job: attrs{"name": name, "prompt": prompt}}
}

// with is the object with more in its block.
func (o object) with(more attrs) object {
	o.job = fakecli.With(o.job, more)
	return o
}

func (o object) at(address string) object { o.address = address; return o }

// What others say of an unknown outcome is shown where a record keeps a wrapper such as
// Terragrunt from sending the request again because of these words, and nowhere else.
//
// Red without: Whole in unknownOutcome, the condition of it, ownWords.
func TestUnknownOutcome_wordsOfOthers(t *testing.T) {
	const words = "i/o timeout of tcp upstream"
	for _, enabled := range []bool{true, false} {
		s := harness.NewService(t, nil)
		config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": t.TempDir() + stateName, "enabled": enabled}})
		s.Inject(simulator.Fault{Kind: simulator.KindCreate, Status: 503, Body: `{"error":"` + words + `"}`})
		text := fakecli.Text(apply(t, fakecli.New(t, config), "run", config, attrs{"prompt": "write"}))
		if !strings.Contains(text, "Outcome of ") || strings.Contains(text, words) != enabled {
			t.Errorf("journal %t: want the words %t: %s", enabled, enabled, text)
		}
	}
}

// An apply adopts the job of the same request only, sends a change, and after an import sends nothing: also with an
// argument that is added later. What is not sent counts for no limit.
//
// Red without: any value and send of an argument, request and judge, any condition of isNewPrompt and differs.
func TestAdoption_everyArgument(t *testing.T) {
	neverSent := []string{"wait", "timeouts", "name"} // a name: TestNames
	for _, name := range arguments(t) {
		if slices.Contains(neverSent, name) {
			continue
		}
		if _, known := examples[name]; !known {
			t.Errorf("%s: give it examples (arguments_test.go) if requests may differ in it, or else add it to neverSent", name)
		}
		type step struct {
			value, posts int  // posts so far
			isLost       bool // the state, and the one from before comes back
		}
		for what, steps := range map[string][]step{
			"import":       {{0, 0, false}},
			"lost create":  {{0, 1, true}, {0, 1, true}, {1, 2, false}},
			"lost message": {{0, 1, false}, {1, 2, true}, {1, 2, true}, {2, 3, false}}, // or replacement
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				s := harness.NewService(t, nil)
				config := fakecli.With(s.Attrs(), attrs{"journal": attrs{"url": t.TempDir() + stateName}})
				c := fakecli.New(t, config)
				if what == "import" {
					c.ImportState(t.Context(), harness.Project+"/"+ended(s))
				}
				for run, step := range steps {
					before, job := *c, attrs{"prompt": "write", "wait": attrs{"enabled": false}}
					if name == "prompt_wo" {
						delete(job, "prompt")
					}
					job[name] = examples[name].accepted[step.value]
					provider, sent := config, s.Counts()
					if sent.Create+sent.Message == step.posts { // nothing is due that would count
						provider = fakecli.With(config, attrs{"max_new_jobs": 0, "max_messages": 0})
					}
					diags := apply(t, c, cli.Run(fmt.Sprint("run", run)), provider, job)
					stops := what == "lost create" && step.value > 0 && strings.HasPrefix(name, "prompt") // until a person decides
					if stops {
						step.posts = sent.Create + sent.Message
					}
					if got := s.Counts(); got.Create+got.Message != step.posts || fakecli.Failed(diags) != stops {
						t.Fatalf("run %d, %v: %d POSTs so far, want %d, fails %t. Has %s its own value and send (arguments.go), and simulator and client its field?\n%s",
							run, job[name], got.Create+got.Message, step.posts, stops, name, fakecli.Text(diags))
					}
					if field := examples[name].field; field != "" && step.posts > sent.Create+sent.Message {
						posts := slices.DeleteFunc(s.Requests(), func(r simulator.Request) bool { return r.Kind == simulator.KindGet })
						value, has := posts[len(posts)-1].Fields[field]
						got, _ := json.Marshal(value)
						want, _ := json.Marshal(job[name])
						if string(got) != string(want) || has != (job[name] != nil) {
							t.Errorf("for %s = %s, the service got %s = %s, %t", name, want, field, got, has)
						}
					}
					if step.isLost {
						*c = before
					}
				}
			})
		}
	}
}

// The table of judge, as a person sees it: what becomes of a create whose name has a record, and the next apply says nothing.
func TestAdoption(t *testing.T) {
	a, b := []object{named("docs", "A")}, []object{named("docs", "B")}
	derived := func(o object) []object {
		o.planned = fakecli.With(o.job, attrs{"prompt": unknown{}})
		return []object{o}
	}
	triggered := []object{named("docs", "A").with(attrs{"triggers": attrs{"v": "1"}})}
	fails := []object{named("docs", "fail")}
	retries := []object{named("docs", "fail").with(attrs{"wait": attrs{"on_failure": "retry"}})}
	noResponse := func(kind simulator.Kind) func(*life) {
		return func(l *life) { l.s.Inject(simulator.Fault{Kind: kind, Status: 500, AfterEffect: true}) }
	}
	first, ofLost := step{objects: a, creates: 1}, step{before: lost, objects: a, says: []string{willAdopt, adopted}, creates: 1}
	unanswered := step{before: noResponse(simulator.KindCreate), objects: a, says: []string{unknownCreate}, creates: 1}
	play(t, map[string][]step{
		"N02 the same": {
			first, ofLost, {objects: a, creates: 1},
			{objects: b, says: []string{followUp}, creates: 1, messages: 1, after: has("docs 1")},
		},
		"N03 edited, and undone": {
			first, {before: lost, objects: b, says: []string{mayStop, stops}, creates: 1}, ofLost,
		},
		"N03 edited, and given up": {
			first, {before: func(l *life) { lost(l); forgets(l) }, objects: b, creates: 2, after: has("docs 2")},
			{objects: b, creates: 2},
			{before: lost, objects: a, says: []string{mayStop, stops}, creates: 2}, // the id is used up
			{objects: b, says: []string{willAdopt, adopted}, creates: 2},
		},
		"N02 derived, and the same":  {first, {before: lost, objects: derived(named("docs", "A")), says: []string{willAdopt, willAdopt, adopted}, creates: 1}},
		"N03 derived, and another":   {first, {before: lost, objects: derived(named("docs", "B")), says: []string{willAdopt, mayStop, stops}, creates: 1}},
		"another name":               {first, {before: lost, objects: []object{named("other", "B")}, creates: 2, after: has("docs 1", "other 2")}},
		"N08 the key of a name":      {first, {before: lost, objects: []object{named("dosc", "A")}, says: []string{"WARNING: Equal agent job under another name"}, creates: 2}},
		"N08 the same key, given up": {first, {before: func(l *life) { lost(l); forgets(l) }, objects: []object{named("dosc", "A")}, creates: 2}},
		"N04 other triggers": {
			first, {before: lost, objects: triggered, says: []string{notInState}, creates: 2},
			{objects: triggered, says: []string{previousJobs}, creates: 2}, {objects: triggered, creates: 2},
			{before: lost, objects: a, says: []string{notInState}, creates: 3}, {objects: a, says: []string{previousJobs}, creates: 3},
		},
		"N07 unanswered": {
			unanswered, {objects: a, says: []string{mayUnknown, unknownCreate}, creates: 1},
			{objects: b, says: []string{mayUnknown, unknownCreate}, creates: 1},
			{objects: triggered, says: []string{mayUnknown, unknownCreate}, creates: 1},
			{before: forgets, objects: a, creates: 2, after: has("docs 2")},
			{before: lost, objects: a, says: []string{willAdopt, adopted}, creates: 2},
			{before: func(l *life) { l.giveUp = nil; delete(l.config["journal"].(attrs), "forget") }, objects: a, creates: 2},
		},
		"N07 unanswered twice": {
			unanswered,
			{before: func(l *life) { forgets(l); noResponse(simulator.KindCreate)(l) }, objects: a, says: []string{unknownCreate}, creates: 2},
			{objects: a, says: []string{mayUnknown, unknownCreate}, creates: 2},
		},
		"N24 unanswered, and imported": {
			unanswered, {before: func(l *life) { importTo(l, "docs") }, objects: a, says: []string{unfinished}, creates: 1}, {objects: a, creates: 1, after: has("docs 1")}, ofLost,
		},
		"N12 unanswered message, and a lost state": {
			first, {before: noResponse(simulator.KindMessage), objects: b, says: []string{followUp, unknownMessage}, creates: 1, messages: 1},
			{before: lost, objects: b, says: []string{willAdopt, adopted}, creates: 1, messages: 1},
			{objects: b, planOnly: true, says: []string{unconfirmed}, creates: 1, messages: 1},
		},
		"N02 a failed job": {
			{objects: fails, says: []string{failed}, creates: 1}, {before: lost, objects: fails, says: []string{willAdopt, adopted, failed}, creates: 1},
			{before: lost, objects: retries, says: []string{willAdopt, failed}, creates: 2},
		},
		"N05 a job that is gone": {
			first, {
				before:  func(l *life) { lost(l); l.s.Forget(l.s.OnlyJob(l.t).ID) },
				objects: a, says: []string{willAdopt, notReadable}, creates: 1,
			},
			{before: forgets, objects: a, says: []string{willAdopt}, creates: 2},
		},
		"N01 a destroyed job": {
			first, {objects: []object{{address: "docs", gone: true}}, creates: 1, after: has("docs 1!")}, {objects: a, creates: 2},
		},
		"a state that comes back": {
			first, ofLost,
			{before: asBefore(1), objects: a, says: []string{adoptedTwice}, creates: 1},
		},
	})
}

// What becomes of a message to the job of the state because of the record of the name.
func TestMessage_record(t *testing.T) {
	of := func(prompt string) []object { return []object{named("docs", prompt)} }
	first := step{objects: of("A"), creates: 1}
	sent := func(n int, prompt string) step {
		return step{objects: of(prompt), says: []string{followUp}, creates: 1, messages: n}
	}
	noResponse := func(l *life) {
		l.s.Inject(simulator.Fault{Kind: simulator.KindMessage, Status: 500, AfterEffect: true})
	}
	refused := func(l *life) { l.s.Inject(simulator.Fault{Kind: simulator.KindMessage, Status: 409}) }
	replaced := []object{named("docs", "A")}
	replaced[0].forced = true
	play(t, map[string][]step{
		"N12 accepted": {
			first, sent(1, "B"),
			{before: asBefore(1), objects: of("B"), says: []string{countsAsSent, countsAsSent}, creates: 1, messages: 1},
			{objects: of("B"), creates: 1, messages: 1}, sent(2, "A"),
		},
		"N14 another one since": {first, sent(1, "B"), {before: asBefore(1), objects: of("C"), says: []string{followUp}, creates: 1, messages: 2}},
		"N12 without a response": {
			first,
			{before: noResponse, objects: of("B"), says: []string{followUp, unknownMessage}, creates: 1, messages: 1},
			{before: asBefore(1), objects: of("B"), says: []string{earlierUnknown, unknownMessage}, creates: 1, messages: 1},
			{objects: of("B"), says: []string{unfinished, unconfirmed}, creates: 1, messages: 1},
			sent(2, "C"),
		},
		"M03 a refused one leaves the earlier one": {
			first, sent(1, "B"),
			{before: func(l *life) { asBefore(1)(l); refused(l) }, objects: of("C"), says: []string{followUp, "ERROR: Message to agent job not accepted"}, creates: 1, messages: 2},
			{objects: of("B"), says: []string{countsAsSent, countsAsSent}, creates: 1, messages: 2},
		},
		"N15 to a job that was replaced since": {
			first, {objects: replaced, creates: 2},
			{before: asBefore(1), objects: of("A"), says: []string{notInState}, creates: 2},
			{before: asBefore(1), objects: of("B"), says: []string{notInState, mayOtherJob, otherJob}, creates: 2},
			{before: forgets, objects: of("B"), says: []string{followUp}, creates: 2, messages: 1, after: has("docs 1")},
		},
		"N16 beside an unknown create": {
			first, {before: func(l *life) {
				l.s.Inject(simulator.Fault{Kind: simulator.KindCreate, Status: 500, AfterEffect: true})
			}, objects: replaced, says: []string{unknownCreate}, creates: 2},
			{before: asBefore(1), objects: of("A"), says: []string{notInState}, creates: 2},
			{before: asBefore(1), objects: of("B"), says: []string{notInState, followUp}, creates: 2, messages: 1},
			{objects: of("B"), says: []string{previousJobs}, creates: 2, messages: 1},
			{objects: of("B"), says: []string{previousJobs}, creates: 2, messages: 1},
			{before: forgets, objects: of("B"), creates: 2, messages: 1},
		},
	})
}

// A journal that cannot be used fails no command that sends nothing, and is an error of one that sends.
func TestUnusableJournal(t *testing.T) {
	broken := func(l *life) { l.config["journal"] = attrs{"url": os.Args[0] + stateName} } // it is a file
	a := []object{named("docs", "A")}
	replaced := []object{named("docs", "A")}
	replaced[0].forced = true
	play(t, map[string][]step{
		"read":    {{objects: a, creates: 1}, {before: broken, objects: a, says: []string{unusable}, creates: 1}},
		"destroy": {{objects: a, creates: 1}, {before: broken, objects: []object{{address: "docs", gone: true}}, says: []string{unusable, unusable}, creates: 1}},
		"create": {
			{before: broken, objects: a, says: []string{unusable, "ERROR: Agent job not created"}},
		},
		"replace, planned": {
			{objects: a, creates: 1},
			{before: broken, objects: replaced, planOnly: true, says: []string{unusable, notReleased}, creates: 1},
		},
		"message": {
			{objects: a, creates: 1},
			{before: broken, objects: []object{named("docs", "B")}, says: []string{unusable, followUp, unusable, "ERROR: Message to agent job not accepted"}, creates: 1},
		},
	})
}

// With settings that cannot be used, a command says so only where something is sent, and nothing is destroyed that it cannot replace.
func TestUnusableJournal_S08_settings(t *testing.T) {
	refused := func(l *life) { l.config["journal"] = attrs{"url": l.folder} } // a local state needs a name there
	a := []object{named("docs", "A")}
	forced, triggered := []object{named("docs", "A")}, []object{named("docs", "A").with(attrs{"triggers": attrs{"v": "1"}})}
	forced[0].forced = true
	const notReplaced = "ERROR: Agent job not replaced"
	taints := func(l *life) { refused(l); l.state["docs"][0].Tainted = true }
	first := step{objects: a, creates: 1}
	play(t, map[string][]step{
		"read":     {first, {before: refused, objects: a, creates: 1}},
		"destroy":  {first, {before: refused, objects: []object{{address: "docs", gone: true}}, says: []string{unusable}, creates: 1}},
		"create":   {{before: refused, objects: a, says: []string{unusable, "ERROR: Agent job not created"}}},
		"-replace": {first, {before: refused, objects: forced, says: []string{notReplaced}, creates: 1, after: has("docs 1")}},
		"triggers": {first, {before: refused, objects: triggered, says: []string{notReplaced}, creates: 1, after: has("docs 1")}},
		"a taint":  {first, {before: taints, objects: a, says: []string{unusable, notReplaced}, creates: 1, after: has("docs 1")}},
		"message":  {first, {before: refused, objects: []object{named("docs", "B")}, says: []string{unusable, followUp, "ERROR: Message to agent job not accepted"}, creates: 1}},
	})
}

// A record where earlier runs have kept the journal stops a create whose name has none here, until a person decides.
func TestElsewhere(t *testing.T) {
	here := func(l *life) { l.config["journal"] = attrs{"url": l.folder + stateName} }
	byDefault := func(l *life) { delete(l.config, "journal") }
	givenUp := func(l *life) {
		there := *l
		there.folder = ".agent-journal"
		forgets(&there)
		l.giveUp = there.giveUp
	}
	const moved = "WARNING: Journal of the last apply not used"
	a, b, replaced := []object{named("docs", "A")}, []object{named("docs", "B")}, []object{named("docs", "A")}
	replaced[0].forced = true
	createFirst, triggered := []object{replaced[0]}, []object{named("docs", "A").with(attrs{"triggers": attrs{"v": "1"}})}
	createFirst[0].createFirst, triggered[0].createFirst = true, true
	first := step{before: byDefault, objects: a, creates: 1}
	play(t, map[string][]step{
		"a job": {
			first,
			{before: func(l *life) { lost(l); here(l) }, objects: a, says: []string{mayElsewhere, elsewhere}, creates: 1},
			{objects: b, says: []string{mayElsewhere, elsewhere}, creates: 1},
			{before: givenUp, objects: b, creates: 2, after: has("docs 2")},
			{before: lost, objects: b, says: []string{willAdopt, adopted}, creates: 2},
		},
		"a job, after a create here that was refused": {
			{before: func(l *life) {
				here(l)
				l.s.Inject(simulator.Fault{Kind: simulator.KindCreate, Status: 400})
			}, objects: a, says: []string{"ERROR: Agent job not created"}, creates: 1},
			{before: byDefault, objects: a, creates: 2},
			{before: func(l *life) { lost(l); here(l) }, objects: a, says: []string{mayElsewhere, elsewhere}, creates: 2},
		},
		"an unknown create": {
			{before: func(l *life) {
				byDefault(l)
				l.s.Inject(simulator.Fault{Kind: simulator.KindCreate, Status: 500, AfterEffect: true})
			}, objects: a, says: []string{unknownCreate}, creates: 1},
			{before: here, objects: a, says: []string{mayElsewhere, elsewhere}, creates: 1},
			{before: givenUp, objects: a, creates: 2},
		},
		"a destroyed job": {first, {objects: []object{gone("docs")}, creates: 1}, {before: here, objects: a, creates: 2}},
		"a job that is destroyed here": {
			first, {before: here, objects: []object{gone("docs")}, creates: 1, after: has("docs 1!")}, {objects: a, creates: 2},
		},
		"a job that is replaced here":                        {first, {before: here, objects: replaced, creates: 2, after: has("docs 2")}, {objects: a, creates: 2}},
		"a job that is replaced here, create_before_destroy": {first, {before: here, objects: createFirst, creates: 2, after: has("docs 2")}, {objects: a, creates: 2}},
		"a job with other triggers, create_before_destroy":   {first, {before: here, objects: triggered, says: []string{moved}, creates: 2, after: has("docs 2")}, {objects: triggered, creates: 2}},
		"a job of the state": {
			first, {before: here, objects: a, planOnly: true, creates: 1},
			{objects: b, says: []string{moved, followUp}, creates: 1, messages: 1}, {objects: b, creates: 1, messages: 1},
		},
	})
}

// What a private state has is small: a state of a thousand jobs has a thousand of them.
func TestPrivate_isSmall(t *testing.T) {
	small := func(l *life) {
		for _, all := range l.state {
			if size := len(all[0].Private); size > 200 {
				l.t.Errorf("%d bytes: %s", size, all[0].Private)
			}
		}
	}
	a := []object{{address: "docs", job: attrs{"name": "docs", "prompt_wo": "A"}}}
	play(t, map[string][]step{"": {
		{objects: a, creates: 1, after: small},
		{objects: []object{named("docs", "B")}, says: []string{followUp}, creates: 1, messages: 1, after: small},
		{before: lost, objects: []object{named("docs", "B")}, says: []string{willAdopt, adopted}, creates: 1, messages: 1, after: small},
	}})
}
