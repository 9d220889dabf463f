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
	beside *command  // no cuts: the first run and this one have no lock, and play at the same time

	jobs    int      // that a user expects to be started, those of tests apart
	prompts []string // that a job may receive; nil: none twice

	remote     bool          // the backend stores the state when a run ends
	edited     bool          // a prompt changes between the runs: nobody names what was sent with the other one
	foreign    bool          // somebody else has started a job with the same prompt
	decides    bool          // in the last run, a person gives unknown creates up
	noJournal  bool          // in the first run
	refused    bool          // in the first run, the service answers the first POST with 429
	late       time.Duration // that long the service takes for a POST
	duration   time.Duration // of each job; 0: a second
	lateDelete time.Duration // in the first run, a DELETE takes that long

	ways   []way // nil: all that make sense
	stores []place
	pairs  bool // of cuts
	rare   bool // not in make test
}

// has reports whether runs are cut in a way. What stops the clock in an access to the store
// would stop it for good if another resource waits for the same access with a sync.Once.
func (s scenario) has(w way) bool {
	isParallel := slices.ContainsFunc(s.runs, func(c command) bool { return c.parallel })
	isRare := slices.Contains([]way{stalled, interrupted, abandoned, outage, serviceDown, noDeletes, noLists, storeHangs}, w)
	if isRare && !more() && s.name != "create" && s.name != "message" {
		return false
	}
	return (s.ways == nil || slices.Contains(s.ways, w)) && (!isParallel || w != stalled && w != storeHangs)
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

func job(address, prompt string) resource {
	return resource{address: address, config: fakecli.Attrs{"prompt": prompt}}
}

func runs(commands ...command) []command { return commands }

func scenarios() []scenario {
	configured := func(resources ...resource) command { return command{resources: resources} }
	as := func(do operation, c command) command { c.do = do; return c }
	inState := func(name string, c command) command { c.state = name; return c }
	atOnce := func(c command) command { c.parallel = true; return c }
	replacing := func(address string, c command) command { c.replace = address; return c }
	only := func(address string, c command) command { c.target = address; return c }
	hourBack := func(c command) command { c.setBack = time.Hour; return c }

	triggered := resource{address: "a", config: fakecli.Attrs{"prompt": "Write", "triggers": fakecli.Attrs{"a": "1"}}}
	firstCreated := triggered
	firstCreated.createFirst = true
	other := job("b", "Write")
	other.alias = 1

	named := func(address, prompt string) resource {
		return resource{address: address, config: fakecli.Attrs{"name": address, "prompt": prompt}}
	}
	namedTriggered := resource{address: "a", config: fakecli.Attrs{"name": "a", "prompt": "Write", "triggers": fakecli.Attrs{"a": "1"}}}
	namedFirstCreated := namedTriggered
	namedFirstCreated.createFirst = true
	sameName := named("a", "Write more")
	sameName.address = "b"
	namedFirst, namedMore := configured(named("a", "Write")), configured(named("a", "Write more"))

	none, first, more := configured(), configured(job("a", "Write")), configured(job("a", "Write more"))
	equal, chained := configured(job("a", "Write"), job("b", "Write")), configured(job("a", "Write"), job("b", "Draw"))
	two := configured(job("a", "Write"), job("b", "Draw"))
	killing := []way{killed}
	buckets := []place{bucket}
	meeting := []place{bucket, folder} // in a folder, few steps of a run can be told apart

	return []scenario{
		{name: "create", runs: runs(first), jobs: 1, pairs: true},
		{name: "message", before: runs(first), runs: runs(more), jobs: 1, pairs: true},
		{name: "destroy", before: runs(first), runs: runs(none), jobs: 1},
		{name: "two equal creates", runs: runs(equal), jobs: 2},
		{name: "count raised", rare: true, before: runs(first), runs: runs(configured(job("b", "Write"), job("a", "Write"))), jobs: 2},
		{name: "replacement", rare: true, before: runs(first), runs: runs(configured(triggered)), jobs: 2},
		{name: "replacement, create first", before: runs(first), runs: runs(configured(firstCreated)), jobs: 2},
		{name: "two aliases", runs: runs(configured(job("a", "Write"), other)), jobs: 2},
		{name: "late response", runs: runs(first), jobs: 1, late: 3 * time.Second},
		{name: "response after the deadline", runs: runs(first), jobs: 1, late: 7 * time.Second},
		{name: "create, and a decision", runs: runs(first), jobs: 1, decides: true},
		{name: "create without a journal", runs: runs(first), jobs: 1, noJournal: true},

		{name: "create, remote state", runs: runs(first), jobs: 1, remote: true},
		{name: "message, remote state", before: runs(first), runs: runs(more), jobs: 1, remote: true},
		{name: "long creates, remote state", runs: runs(chained), jobs: 2, remote: true, duration: 30 * time.Second},
		{name: "replacement, remote state", before: runs(first), runs: runs(configured(triggered)), jobs: 2, remote: true},

		{name: "message and back", before: runs(first), runs: runs(more, first), jobs: 1, edited: true, prompts: []string{"Write", "Write more", "Write"}},
		{name: "message and back, remote state", rare: true, before: runs(first), runs: runs(more, first), jobs: 1, remote: true,
			edited: true, prompts: []string{"Write", "Write more", "Write"}},
		{name: "-replace", rare: true, before: runs(first), runs: runs(replacing("a", first), first), jobs: 2},
		{name: "-replace, remote state", before: runs(first), runs: runs(replacing("a", first), first), jobs: 2, remote: true},
		{name: "message, then -replace, remote state", rare: true, before: runs(first), runs: runs(more, replacing("a", more), more), jobs: 2, remote: true,
			ways: killing, pairs: true},
		{name: "terraform destroy", before: runs(first), runs: runs(as(destroy, first), first), jobs: 2},
		{name: "import after a create", runs: runs(first, as(importJob, first), first), jobs: 1},
		{name: "import of an older job", rare: true, runs: runs(first, as(importJob, equal), equal, equal), jobs: 1, foreign: true},
		{name: "refresh after a create", runs: runs(first, as(refreshOnly, first), first), jobs: 1},
		{name: "refresh after a message", before: runs(first), runs: runs(more, as(refreshOnly, more), more), jobs: 1},
		{name: "plan after a create", runs: runs(first, as(plan, first), first), jobs: 1},
		{name: "-target, then all", runs: runs(only("a", two), two), jobs: 2},
		{name: "test after a create", runs: runs(first, as(test, first), first), jobs: 1},

		{name: "named create", rare: true, runs: runs(namedFirst), jobs: 1},
		{name: "named create, edited", runs: runs(namedFirst, namedMore), jobs: 1, edited: true},
		{name: "named create, edited and undone", runs: runs(namedFirst, namedMore, namedFirst), jobs: 1, edited: true, prompts: []string{"Write", "Write more", "Write"}},
		{name: "named create, other triggers", rare: true, runs: runs(namedFirst, configured(namedTriggered)), jobs: 2, edited: true},
		{name: "named replacement, create first", rare: true, before: runs(namedFirst), runs: runs(configured(namedFirstCreated)), jobs: 2},
		{name: "named -replace, remote state", rare: true, before: runs(namedFirst), runs: runs(replacing("a", namedFirst), namedFirst), jobs: 2, remote: true},
		{name: "named -target, then all", rare: true, runs: runs(only("a", configured(named("a", "Write"), named("b", "Write"))), configured(named("a", "Write"), named("b", "Write"))), jobs: 2},
		{name: "named, count raised", rare: true, before: runs(namedFirst), runs: runs(configured(named("a", "Write"), named("b", "Write"))), jobs: 2},
		{name: "equal names by mistake", rare: true, runs: runs(configured(named("a", "Write"), sameName)), jobs: 2},
		{name: "name added", rare: true, before: runs(first), runs: runs(namedFirst), jobs: 1},
		{name: "two runs create a named job", rare: true, runs: runs(namedFirst), beside: &namedFirst, jobs: 1, stores: meeting},

		{name: "two creates at once", runs: runs(atOnce(two)), jobs: 2},
		{name: "two equal creates at once", rare: true, runs: runs(atOnce(equal)), jobs: 2, ways: killing, pairs: true},
		{name: "refused create, late delete", rare: true, runs: runs(first), jobs: 1, refused: true, duration: 5 * time.Second, lateDelete: 12 * time.Second, stores: buckets},
		{name: "message after the clock was set back", before: runs(first, more), runs: runs(hourBack(configured(job("a", "Write a lot")))), jobs: 1},
		{name: "create after the clock was set back", runs: runs(first, hourBack(first)), jobs: 1},
		{name: "three states", runs: runs(inState("x", first), inState("y", first), inState("z", first)), jobs: 3},

		{name: "two runs create", runs: runs(first), beside: &first, jobs: 1, stores: meeting},
		{name: "two runs create equal jobs", runs: runs(equal), beside: &equal, jobs: 2, stores: meeting},
		{name: "two runs create chained jobs", rare: true, runs: runs(chained), beside: &chained, jobs: 2, stores: meeting},
		{name: "two runs send a message", before: runs(first), runs: runs(more), beside: &more, jobs: 1, stores: meeting},
	}
}
