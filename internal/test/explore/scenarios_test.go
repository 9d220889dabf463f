// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !race && unix

package explore

import (
	"slices"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
)

// scenario is what is cut.
type scenario struct {
	name   string
	before []command // played before, without a cut
	runs   []command // the last one is repeated, and the last one of each state is planned at the end

	jobs    int      // that a user expects to be started, those of tests apart
	atMost  int      // if a run was cut between the release of a name and its create; 0: jobs
	prompts []string // that a job may receive; nil: none twice
	errors  []string // that the last run may end with, beside those that a cut explains

	stops     bool          // the last run ends with an error also if no run is cut
	remote    bool          // the backend stores the state when a run ends
	decides   bool          // in the last run, a person gives unknown creates up
	noJournal bool          // in the first run
	late      time.Duration // that long the service takes for a POST
	duration  time.Duration // of each job; 0: a second
	fails     bool          // each job does
	closes    bool          // each job refuses messages once it has finished
	adopts    bool          // also without a cut

	ways  []way // nil: all that make sense
	pairs bool  // of cuts
	rare  bool  // not in make test
}

// has reports whether runs are cut in a way. What stops the clock in an access to the store
// would stop it for good if another resource waits for the same access with a sync.Once.
func (s scenario) has(w way) bool {
	isParallel := slices.ContainsFunc(s.runs, func(c command) bool { return c.parallel })
	isRare := slices.Contains([]way{
		stalled, interrupted, abandoned, outage, serviceDown, noLists, unconditional, storeHangs, readsHang, losePut, latePut,
	}, w)
	if isRare && !more() && s.name != "create" && s.name != "message" {
		return false
	}
	return (s.ways == nil || slices.Contains(s.ways, w)) && (!isParallel || !slices.Contains([]way{stalled, storeHangs, readsHang, losePut, latePut, cliKilled}, w))
}

// finals are the last commands of each state.
func (s scenario) finals() (finals []command) {
	for _, c := range slices.Backward(s.runs) {
		if !slices.ContainsFunc(finals, func(f command) bool { return f.state == c.state }) {
			finals = append(finals, c)
		}
	}
	return finals
}

// after are the runs that follow n cuts: at least one.
func (s scenario) after(n int) []command {
	return s.runs[min(n, len(s.runs)-1):]
}

// rest are the runs that follow n cuts: in the end, each state has had a run that was not cut.
func (s scenario) rest(n int) []command {
	rest := slices.Clone(s.after(n))
	for _, c := range s.finals() {
		if !slices.ContainsFunc(rest, func(r command) bool { return r.state == c.state }) {
			rest = append(rest, c)
		}
	}
	return rest
}

// prompts are those of all scenarios.
var prompts = []string{"Write", "Write more", "Draw"}

// job is a resource whose name is its address.
func job(address, prompt string) resource { return named(address, address, prompt) }

func named(address, name, prompt string) resource {
	return resource{address: address, config: fakecli.Attrs{"name": name, "prompt": prompt}}
}

func runs(commands ...command) []command { return commands }

func scenarios() []scenario {
	configured := func(resources ...resource) command { return command{resources: resources} }
	as := func(do operation, c command) command { c.do = do; return c }
	inState := func(name string, c command) command { c.state = name; return c }
	atOnce := func(c command) command { c.parallel = true; return c }
	replacing := func(address string, c command) command { c.replace = address; return c }
	tainting := func(address string, c command) command { c.taints = address; return c }
	moving := func(from string, c command) command { c.moved = from; return c }
	stateLess := func(c command) command { c.lost = true; return c }
	forgetting := func(c command) command { c.forgets = true; return c }
	older := func(c command) command { c.restored = true; return c }
	destroyingFirst := func(c command) command { c.destroysFirst = true; return c }
	triggered := func(r resource) resource {
		r.config = fakecli.With(r.config, fakecli.Attrs{"triggers": fakecli.Attrs{"a": "1"}})
		return r
	}
	impatient := func(r resource) resource {
		r.config = fakecli.With(r.config, fakecli.Attrs{"timeouts": fakecli.Attrs{"create": "2m"}})
		return r
	}
	createFirst := func(r resource) resource { r.createFirst = true; return r }
	alias := func(r resource) resource { r.alias = 1; return r }

	a := job("a", "Write")
	none, first, more := configured(), configured(a), configured(job("a", "Write more"))
	second, secondMore, firstCreated := configured(triggered(a)), configured(triggered(job("a", "Write more"))), configured(createFirst(a))
	chained, equal := configured(a, job("b", "Draw")), configured(a, job("b", "Write"))
	firstCreatedMore := configured(createFirst(job("a", "Write more")))
	slow, slowMore := configured(impatient(a)), configured(impatient(job("a", "Write more")))
	slowCreated := configured(createFirst(impatient(a)))
	moved, renamed := configured(named("b", "a", "Write")), configured(named("a", "b", "Write"))
	swapped := configured(named("a", "b", "Write"), named("b", "a", "Draw"))
	twins := configured(a, named("b", "a", "Draw"))
	equalTwins := configured(a, named("b", "a", "Write"))
	aliases := configured(a, alias(named("b", "a", "Write")))
	other := configured(alias(named("b", "a", "Write")))
	back := []string{"Write", "Write more", "Write"}
	killing := []way{killed}
	duplicate := []string{"Duplicate agent job name"}
	edited, otherJob := []string{otherPrompt}, []string{"Name has another agent job"}
	failed, refused, unfinished := []string{"Agent job failed"}, []string{"Message to agent job not accepted"}, []string{"Agent job still running"}

	return []scenario{
		{name: "create", runs: runs(first), jobs: 1, pairs: true},
		{name: "message", before: runs(first), runs: runs(more), jobs: 1, pairs: true},
		{name: "destroy", before: runs(first), runs: runs(none), jobs: 1},
		{name: "two creates", runs: runs(chained), jobs: 2},
		{name: "two creates with one prompt", rare: true, runs: runs(equal), jobs: 2},
		{name: "count raised", rare: true, before: runs(first), runs: runs(configured(job("b", "Write"), a)), jobs: 2},
		{name: "two aliases", runs: runs(configured(a, alias(job("b", "Write")))), jobs: 2},
		{name: "late response", runs: runs(first), jobs: 1, late: 3 * time.Second},
		{name: "response after the deadline", runs: runs(first), jobs: 1, late: 7 * time.Second},
		{name: "create, and a decision", runs: runs(first), jobs: 1, decides: true},
		{name: "create without a journal", runs: runs(first), jobs: 1, noJournal: true},

		{name: "create, remote state", runs: runs(first), jobs: 1, remote: true},
		{name: "message, remote state", before: runs(first), runs: runs(more), jobs: 1, remote: true},
		{name: "long creates, remote state", runs: runs(chained), jobs: 2, remote: true, duration: 30 * time.Second},

		{name: "triggers", before: runs(first), runs: runs(second), jobs: 2},
		{name: "triggers, create first", before: runs(first), runs: runs(configured(createFirst(triggered(a)))), jobs: 2},
		{name: "triggers, remote state", before: runs(first), runs: runs(second), jobs: 2, remote: true},
		{name: "triggers, and back", rare: true, before: runs(first), runs: runs(second, first), jobs: 3},
		{name: "-replace", before: runs(first), runs: runs(replacing("a", first), first), jobs: 2},
		{name: "-replace, create first", before: runs(firstCreated), runs: runs(replacing("a", firstCreated), firstCreated), jobs: 1, adopts: true},
		{name: "-replace, remote state", before: runs(first), runs: runs(replacing("a", first), first), jobs: 2, remote: true},
		{name: "-replace again, remote state", rare: true, before: runs(first), runs: runs(replacing("a", first), replacing("a", first), first), jobs: 3, remote: true},
		{name: "triggers and another prompt", rare: true, before: runs(first), runs: runs(secondMore), jobs: 2},
		{name: "-replace and another prompt", rare: true, before: runs(first), runs: runs(replacing("a", more), more), jobs: 2, errors: otherJob},
		{name: "message, then -replace, remote state", rare: true, before: runs(first), runs: runs(more, replacing("a", more), more), jobs: 2, remote: true,
			ways: killing, pairs: true, errors: otherJob},
		{name: "taint", before: runs(first), runs: runs(tainting("a", first), first), jobs: 1, adopts: true},
		{name: "taint, create first", before: runs(firstCreated), runs: runs(tainting("a", firstCreated), firstCreated), jobs: 1, adopts: true},
		{name: "taint, remote state", rare: true, before: runs(first), runs: runs(tainting("a", first), first), jobs: 1, remote: true, adopts: true},
		{name: "taint and another prompt", rare: true, before: runs(first), runs: runs(tainting("a", more), more), jobs: 2, errors: append(edited, otherJob...)},
		{name: "create times out", runs: runs(slow, slow), jobs: 1, duration: 150 * time.Second, errors: unfinished, adopts: true},
		{name: "create times out, create first", rare: true, runs: runs(slowCreated, slowCreated), jobs: 1, duration: 150 * time.Second, errors: unfinished, adopts: true},
		{name: "create times out, edited", runs: runs(slow, slowMore), jobs: 1, duration: 150 * time.Second, errors: append(unfinished, otherPrompt), adopts: true,
			ways: []way{killed, cliKilled, interrupted, abandoned, loseResponse, stateLost}}, // without a journal, nothing notes that the create failed
		{name: "closed job", before: runs(first), runs: runs(more, more), jobs: 2, closes: true, errors: refused},
		{name: "closed job, create first", rare: true, before: runs(firstCreated), runs: runs(firstCreatedMore, firstCreatedMore), jobs: 2, closes: true, errors: refused},
		{name: "forget", before: runs(first), runs: runs(forgetting(first), first), jobs: 2},
		{name: "forget, create first", rare: true, before: runs(firstCreated), runs: runs(forgetting(firstCreated), firstCreated), jobs: 2},
		{name: "forget a failed job", rare: true, before: runs(first), runs: runs(forgetting(first), first), jobs: 2, fails: true, adopts: true, errors: failed},
		{name: "failed job", runs: runs(first), jobs: 1, fails: true, adopts: true, errors: failed},
		{name: "failed job, create first", rare: true, runs: runs(firstCreated), jobs: 1, fails: true, adopts: true, errors: failed},
		{name: "failed job, create first, again", rare: true, before: runs(firstCreated, firstCreated), runs: runs(firstCreated, firstCreated, firstCreated),
			jobs: 1, fails: true, adopts: true, errors: failed},
		{name: "failed job, remote state", rare: true, runs: runs(first), jobs: 1, remote: true, fails: true, adopts: true, errors: failed},
		{name: "failed job, other prompt", rare: true, before: runs(first), runs: runs(more), jobs: 2, fails: true, adopts: true, errors: failed},
		{name: "failed job, other prompt, create first", rare: true, before: runs(firstCreated),
			runs: runs(firstCreatedMore), jobs: 2, fails: true, adopts: true, errors: failed},
		{name: "failed job, destroyed", rare: true, before: runs(first), runs: runs(none, first), jobs: 2, fails: true, adopts: true, errors: failed},
		{name: "terraform destroy", before: runs(first), runs: runs(as(destroy, first), first), jobs: 2},
		{name: "terraform destroy, remote state", rare: true, before: runs(first), runs: runs(as(destroy, first), first), jobs: 2, remote: true},

		{name: "message, then a destroy", rare: true, before: runs(first), runs: runs(more, none, more), jobs: 2},
		{name: "-replace, then a destroy", rare: true, before: runs(first), runs: runs(replacing("a", first), none, first), jobs: 3},

		{name: "moved", before: runs(first), runs: runs(moving("a", moved)), jobs: 1},
		{name: "other address, no moved block", before: runs(first), runs: runs(moved), jobs: 1, adopts: true},
		{name: "other address, destroyed first", before: runs(first), runs: runs(destroyingFirst(moved)), jobs: 1, atMost: 2, adopts: true},
		{name: "other address, remote state", rare: true, before: runs(first), runs: runs(moved), jobs: 1, remote: true, adopts: true},
		{name: "other address, destroyed first, remote state", rare: true, before: runs(first), runs: runs(destroyingFirst(moved)), jobs: 1, atMost: 2, remote: true, adopts: true},
		{name: "name changed", before: runs(first), runs: runs(renamed), jobs: 2},
		{name: "name changed after a create", runs: runs(first, renamed), jobs: 2},
		{name: "names swapped", before: runs(chained), runs: runs(swapped), jobs: 4, errors: edited},
		{name: "two resources, one name", runs: runs(twins), jobs: 1, stops: true, errors: duplicate},
		{name: "two resources, one name and prompt", rare: true, runs: runs(equalTwins), jobs: 1, stops: true, errors: duplicate},
		{name: "second resource, same name", rare: true, before: runs(first), runs: runs(twins), jobs: 1, stops: true, errors: duplicate},
		{name: "second resource first, same name", rare: true, before: runs(moved), runs: runs(twins), jobs: 1, stops: true, errors: duplicate},
		{name: "two aliases, one name", runs: runs(aliases), jobs: 1, adopts: true},
		{name: "second alias, same name", rare: true, before: runs(first), runs: runs(aliases), jobs: 1, adopts: true},
		{name: "two aliases, one name, one destroyed", before: runs(aliases), runs: runs(other, stateLess(other), other), jobs: 1, adopts: true},

		{name: "message and back", before: runs(first), runs: runs(more, first), jobs: 1, prompts: back},
		{name: "message and back, remote state", rare: true, before: runs(first), runs: runs(more, first), jobs: 1, remote: true, prompts: back},
		{name: "create, edited", runs: runs(first, more), jobs: 1, errors: edited},
		{name: "create, edited and undone", rare: true, runs: runs(first, more, first), jobs: 1, prompts: back, errors: edited},
		{name: "create, other triggers", rare: true, runs: runs(first, second), jobs: 2},
		{name: "refresh after a create", runs: runs(first, as(refreshOnly, first), first), jobs: 1},
		{name: "refresh after a message", before: runs(first), runs: runs(more, as(refreshOnly, more), more), jobs: 1},
		{name: "plan after a create", runs: runs(first, as(plan, first), first), jobs: 1},
		{name: "-replace only planned", before: runs(first), runs: runs(as(plan, replacing("a", first)), first), jobs: 1},

		{name: "state lost", before: runs(first), runs: runs(stateLess(first), first), jobs: 1, adopts: true},
		{name: "state lost after a message", before: runs(first, more), runs: runs(stateLess(more), more), jobs: 1, adopts: true},
		{name: "message, then the state lost", rare: true, before: runs(first), runs: runs(more, stateLess(more), more), jobs: 1, adopts: true, errors: edited},
		{name: "state lost, edited", before: runs(first), runs: runs(stateLess(more), more), jobs: 1, stops: true, errors: edited},
		{name: "state lost, failed job", rare: true, before: runs(first), runs: runs(stateLess(first), first), jobs: 1, fails: true, adopts: true, errors: failed},
		{name: "state lost, two aliases, one name", rare: true, before: runs(first), runs: runs(stateLess(aliases)), jobs: 1, adopts: true,
			errors: duplicate},
		{name: "state lost after -replace", rare: true, before: runs(first), runs: runs(replacing("a", first), stateLess(first), first), jobs: 2, adopts: true},
		{name: "state lost after a destroy", rare: true, before: runs(first, none), runs: runs(stateLess(first), first), jobs: 2},
		{name: "older state, after a message", before: runs(first), runs: runs(more, older(more), more), jobs: 1},
		{name: "older state, after -replace", before: runs(first), runs: runs(replacing("a", first), older(first), first), jobs: 2},
		{name: "older state, after -replace, edited", rare: true, before: runs(first), runs: runs(replacing("a", first), older(more), more), jobs: 2, stops: true, errors: otherJob},
		{name: "older state, before the create", rare: true, runs: runs(first, older(first), first), jobs: 1, adopts: true},
		{name: "older state, -replace again", rare: true, before: runs(first), runs: runs(replacing("a", first), older(replacing("a", first)), first), jobs: 2, adopts: true},

		{name: "two creates at once", runs: runs(atOnce(chained)), jobs: 2},
		{name: "two creates of one name at once", rare: true, runs: runs(atOnce(equalTwins)), jobs: 1, errors: duplicate},
		{name: "three states", runs: runs(inState("x", first), inState("y", first), inState("z", first)), jobs: 3},
	}
}
