// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !race && unix

package explore

import (
	"net/http"
	"slices"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
)

// scenario is what is cut.
type scenario struct {
	name   string
	before []command // played before, without a cut
	runs   []command // the last one is repeated, and planned at the end

	jobs    int      // that a user expects to be started, those of tests apart
	atMost  int      // if a run was cut; 0: jobs
	repeats string   // the prompt that a job may receive twice
	errors  []string // that the last run may end with, beside those that a cut explains

	destroys bool          // the run before the last one: unless that is cut, the last one starts a job
	stops    bool          // the last run ends with an error also if no run is cut
	remote   bool          // the backend stores the state when a run ends
	decides  bool          // in the last run, a person gives unknown creates up
	late     time.Duration // that long the service takes for a POST
	adopts   bool          // also without a cut
	hides    bool          // what a cut run has started is done, and has other triggers: a release names it no more

	script   simulator.Script  // of each job, for a second unless it says more
	messaged *simulator.Script // after a message; nil: the same

	ways  []way // nil: all that make sense
	pairs bool  // of cuts
	rare  bool  // not in make test
}

// has reports whether runs are cut in a way. In make test, most are cut in the ways that find most.
func (s scenario) has(w way) bool {
	isCommon := slices.Contains([]way{killed, cliKilled, loseRequest, loseResponse, stateLost, storeDown}, w)
	return (isCommon || more() || s.name == "create" || s.name == "message") && (s.ways == nil || slices.Contains(s.ways, w))
}

// last is the command that is repeated, and planned in the end.
func (s scenario) last() command { return s.runs[len(s.runs)-1] }

// after are the runs that follow n cuts: at least one.
func (s scenario) after(n int) []command {
	return s.runs[min(n, len(s.runs)-1):]
}

// prompts are those of all scenarios.
var prompts = []string{"Write", "Write more", "Draw"}

// job is a resource whose name is its address.
func job(address, prompt string) fakecli.Resource { return named(address, address, prompt) }

func named(address, name, prompt string) fakecli.Resource {
	return fakecli.Resource{Address: address, Config: fakecli.Attrs{"name": name, "prompt": prompt}}
}

func runs(commands ...command) []command { return commands }

func scenarios() []scenario {
	configured := func(resources ...fakecli.Resource) command { return command{resources: resources} }
	as := func(do operation, c command) command { c.do = do; return c }
	replacing := func(c command) command {
		c.resources = slices.Clone(c.resources)
		c.resources[0].Forced = true
		return c
	}
	tainting := func(address string, c command) command { c.taints = address; return c }
	stateLess := func(c command) command { c.lost = true; return c }
	forgetting := func(c command) command { c.forgets = true; return c }
	older := func(c command) command { c.restored = true; return c }
	destroyingFirst := func(c command) command { c.destroysFirst = true; return c }
	with := func(r fakecli.Resource, name string, value fakecli.Attrs) fakecli.Resource {
		r.Config = fakecli.With(r.Config, fakecli.Attrs{name: value})
		return r
	}
	triggered := func(r fakecli.Resource) fakecli.Resource { return with(r, "triggers", fakecli.Attrs{"a": "1"}) }
	impatient := func(r fakecli.Resource) fakecli.Resource { return with(r, "timeouts", fakecli.Attrs{"create": "2m"}) }
	// A job at work when the run ends is sent no other prompt, whatever a completed one is.
	atWork := func(r fakecli.Resource) fakecli.Resource { return with(r, "wait", fakecli.Attrs{"enabled": false}) }
	createFirst := func(r fakecli.Resource) fakecli.Resource { r.CreateFirst = true; return r }
	alias := func(r fakecli.Resource) fakecli.Resource { r.Alias = 1; return r }
	a := job("a", "Write")
	lateTriggers := a
	lateTriggers.Planned = fakecli.With(a.Config, fakecli.Attrs{"triggers": fakecli.Unknown{}})
	none, first, more := configured(), configured(a), configured(job("a", "Write more"))
	second, firstCreated, chained := configured(triggered(a)), configured(createFirst(a)), configured(a, job("b", "Draw"))
	firstCreatedMore := configured(createFirst(job("a", "Write more")))
	slow, slowMore := configured(impatient(a)), configured(impatient(job("a", "Write more")))
	moved, renamed := configured(named("b", "a", "Write")), configured(named("a", "b", "Write"))
	working, workingMore, workingDraw := configured(atWork(a)), configured(atWork(job("a", "Write more"))), configured(atWork(job("a", "Draw")))
	swapped := configured(named("a", "b", "Write"), named("b", "a", "Draw"))
	twins := configured(a, named("b", "a", "Draw"))
	aliases := configured(a, alias(named("b", "a", "Write")))
	other := configured(alias(named("b", "a", "Write")))
	killing := []way{killed}
	// Without those in which the journal fails for an adoption, and responds to the Delete that follows.
	steady := []way{killed, cliKilled, stalled, interrupted, abandoned, loseRequest, loseResponse, stateLost, storeDown, outage, serviceDown, readsHang, losePut}
	duplicate := []string{"Duplicate agent job name"}
	edited, otherJob := []string{running}, []string{"Name has another agent job"}
	failed, refused, unfinished := []string{"Agent job failed"}, []string{"Message to agent job not accepted"}, []string{"Agent job still running"}

	lasts := func(d time.Duration) simulator.Script { return simulator.Script{Duration: d} }
	fails, closes := simulator.Script{Status: "failed"}, simulator.Script{NoMessages: http.StatusConflict}

	return []scenario{
		{name: "create", runs: runs(first), jobs: 1, pairs: true},
		{name: "message", before: runs(first), runs: runs(more), jobs: 1, pairs: true},
		{name: "destroy", before: runs(first), runs: runs(none), jobs: 1},
		{name: "two creates", runs: runs(chained), jobs: 2},
		{name: "late response", runs: runs(first), jobs: 1, late: 3 * time.Second},
		{name: "response after the deadline", runs: runs(first), jobs: 1, late: 7 * time.Second, stops: true},
		{name: "create, and a decision", runs: runs(first), jobs: 1, decides: true},

		{name: "create, remote state", runs: runs(first), jobs: 1, remote: true},
		{name: "message, remote state", before: runs(first), runs: runs(more), jobs: 1, remote: true},
		{name: "long creates, remote state", runs: runs(chained), jobs: 2, remote: true, script: lasts(30 * time.Second)},

		{name: "triggers", before: runs(first), runs: runs(second), jobs: 2},
		{name: "triggers, create first", before: runs(first), runs: runs(configured(createFirst(triggered(a)))), jobs: 2},
		{name: "-replace", before: runs(first), runs: runs(replacing(first), first), jobs: 2},
		{name: "-replace, create first", before: runs(firstCreated), runs: runs(replacing(firstCreated), firstCreated), jobs: 1, adopts: true},
		{name: "-replace, remote state", before: runs(first), runs: runs(replacing(first), first), jobs: 2, remote: true},
		{name: "message, then -replace, remote state", rare: true, before: runs(first), runs: runs(more, replacing(more), more), jobs: 2, remote: true,
			ways: killing, pairs: true, errors: otherJob},
		{name: "taint", before: runs(first), runs: runs(tainting("a", first), first), jobs: 1, adopts: true},
		{name: "taint, create first", before: runs(firstCreated), runs: runs(tainting("a", firstCreated), firstCreated), jobs: 1, adopts: true},
		{name: "taint and another prompt", rare: true, before: runs(first), runs: runs(tainting("a", more), more), jobs: 2, errors: otherJob},
		{name: "create times out", runs: runs(slow, slow), jobs: 1, script: lasts(150 * time.Second), errors: unfinished, adopts: true},
		{name: "create times out, edited", runs: runs(slow, slowMore), jobs: 1, atMost: 2, script: lasts(150 * time.Second), errors: append(edited, unfinished...), stops: true},
		{name: "closed job", before: runs(first), runs: runs(more, more), jobs: 2, script: closes, errors: refused},
		{name: "closed job, create first", rare: true, before: runs(firstCreated), runs: runs(firstCreatedMore, firstCreatedMore), jobs: 2, script: closes, errors: refused},
		{name: "forget", before: runs(first), runs: runs(forgetting(first), first), jobs: 2},
		{name: "failed job", runs: runs(first), jobs: 1, script: fails, adopts: true, errors: failed, stops: true},
		{name: "failed job, other prompt", rare: true, before: runs(first), runs: runs(more), jobs: 2, script: fails, adopts: true, errors: failed, stops: true},
		{name: "failed job, destroyed", rare: true, before: runs(first), runs: runs(none, first), jobs: 2, script: fails, adopts: true, errors: failed, stops: true},
		{name: "terraform destroy", before: runs(first), runs: runs(as(destroy, first), first), jobs: 2},
		{name: "message that fails", rare: true, before: runs(first), runs: runs(more), jobs: 1, messaged: &fails, adopts: true, errors: failed, stops: true},
		{name: "triggers known late", rare: true, before: runs(first), runs: runs(configured(lateTriggers)), jobs: 1, adopts: true},
		{name: "message, then the state lost, edited", rare: true, before: runs(first), runs: runs(workingMore, stateLess(workingDraw), workingDraw), jobs: 1, atMost: 2, stops: true, errors: edited,
			messaged: &simulator.Script{Duration: time.Hour, Stale: 20 * time.Second}},
		{name: "message, then a destroy", rare: true, before: runs(first), runs: runs(more, none, more), jobs: 2, destroys: true},

		{name: "other address, no moved block", before: runs(first), runs: runs(moved), jobs: 1, adopts: true, ways: steady},
		{name: "other address, destroyed first", before: runs(first), runs: runs(destroyingFirst(moved)), jobs: 1, atMost: 2, adopts: true},
		{name: "other address and alias", before: runs(first), runs: runs(other), jobs: 1, adopts: true, ways: steady},
		{name: "other address and alias, destroyed first", before: runs(first), runs: runs(destroyingFirst(other)), jobs: 1, atMost: 2, adopts: true},
		{name: "name changed", before: runs(first), runs: runs(renamed), jobs: 2},
		{name: "name changed after a create", runs: runs(first, renamed), jobs: 2},
		{name: "names swapped", before: runs(chained), runs: runs(swapped), jobs: 4},
		{name: "two resources, one name", runs: runs(twins), jobs: 1, stops: true, errors: duplicate},
		{name: "two aliases, one name", runs: runs(aliases), jobs: 1, adopts: true},
		{name: "two aliases, one name, one destroyed", before: runs(aliases), runs: runs(other, stateLess(other), other), jobs: 1, adopts: true},

		{name: "message and back", before: runs(first), runs: runs(more, first), jobs: 1, repeats: "Write"},
		{name: "create, edited", runs: runs(first, more), jobs: 1, atMost: 2, errors: edited},
		{name: "create, other triggers", rare: true, runs: runs(first, second), jobs: 2, hides: true},
		{name: "-replace only planned", before: runs(first), runs: runs(as(plan, replacing(first)), first), jobs: 1},

		{name: "state lost", before: runs(first), runs: runs(stateLess(first), first), jobs: 1, adopts: true},
		{name: "state lost after a message", before: runs(first, more), runs: runs(stateLess(more), more), jobs: 1, adopts: true},
		{name: "message, then the state lost", rare: true, before: runs(first), runs: runs(more, stateLess(more), more), jobs: 1, atMost: 2, adopts: true, errors: edited},
		{name: "state lost, edited", before: runs(working), runs: runs(stateLess(workingMore), workingMore), jobs: 1, script: lasts(time.Hour), stops: true, errors: edited},
		{name: "state lost after -replace", rare: true, before: runs(first), runs: runs(replacing(first), stateLess(first), first), jobs: 2, adopts: true},
		{name: "older state, after a message", before: runs(first), runs: runs(more, older(more), more), jobs: 1},
		{name: "older state, after -replace", before: runs(first), runs: runs(replacing(first), older(first), first), jobs: 2},
		{name: "older state, after -replace, edited", rare: true, before: runs(first), runs: runs(replacing(first), older(more), more), jobs: 2, stops: true, errors: otherJob},
		{name: "older state, before the create", rare: true, runs: runs(first, older(first), first), jobs: 1, adopts: true},
	}
}
