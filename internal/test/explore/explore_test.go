// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !race && unix

package explore

import (
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	debug.SetGCPercent(800) // many short worlds
	return m.Run()
}

// scenario is what is cut.
type scenario struct {
	name      string
	before    []resource // applied before, without a cut
	resources []resource
	jobs      int // that a user expects to be started
	late      time.Duration
	decides   bool // in the last run, a person gives unknown creates up
	noJournal bool // in the first run
	pairs     bool // of cuts, also in make test
}

func job(address, prompt string) resource {
	return resource{address: address, config: fakecli.Attrs{"prompt": prompt}}
}

func scenarios() []scenario {
	first := []resource{job("a", "Write")}
	triggered := resource{address: "a", config: fakecli.Attrs{"prompt": "Write", "triggers": fakecli.Attrs{"a": "1"}}}
	firstCreated := triggered
	firstCreated.createFirst = true
	other := job("b", "Write")
	other.alias = 1
	return []scenario{
		{name: "create", resources: first, jobs: 1, pairs: true},
		{name: "message", before: first, resources: []resource{job("a", "Write more")}, jobs: 1, pairs: true},
		{name: "destroy", before: first, jobs: 1},
		{name: "two equal creates", resources: []resource{job("a", "Write"), job("b", "Write")}, jobs: 2},
		{name: "replacement", before: first, resources: []resource{triggered}, jobs: 2},
		{name: "replacement, create first", before: first, resources: []resource{firstCreated}, jobs: 2},
		{name: "two aliases", resources: []resource{job("a", "Write"), other}, jobs: 2},
		{name: "late response", resources: first, jobs: 1, late: 3 * time.Second},
		{name: "response after the deadline", resources: first, jobs: 1, late: 7 * time.Second},
		{name: "create, and a decision", resources: first, jobs: 1, decides: true},
		{name: "create without a journal", resources: first, jobs: 1, noJournal: true},
	}
}

// explorer plays the schedules of a scenario.
type explorer struct {
	*testing.T

	*tally

	scenario scenario
	store    store
}

// tally is what the explorers of a scenario have in common.
type tally struct {
	mu        sync.Mutex
	seen      map[string]bool // worlds, by their fingerprints
	occurred  map[string]bool
	excused   map[string]int // documented exceptions
	schedules int
}

// schedule is one cut for each run, and what has become of it.
type schedule struct {
	cuts  []cut
	from  *saved // the world before the last cut; nil: the first one, or something is alive in it
	world *world
	steps []stepTaken // of the run after the last cut
	next  *saved      // the world after the last cut
	wrong []string
}

// play plays the cuts, one for each run, then a run that is not cut, and a plan. It
// returns false if the world after the cuts was known.
func (e *explorer) play(s *schedule) (isNew bool) {
	later := ""
	if last := s.cuts[len(s.cuts)-1]; last.until > 0 { // each is a world of its own
		later = fmt.Sprint(s.cuts)
	} else if last.way == cliKilled || last.way == stalled { // what the orphan will do distinguishes worlds
		synctest.Test(e.T, func(t *testing.T) {
			w := e.cutWorld(t, s)
			time.Sleep(5 * time.Minute)
			later = w.fingerprint()
		})
	}
	synctest.Test(e.T, func(t *testing.T) {
		w := e.cutWorld(t, s)
		if isNew = e.isNew(w.fingerprint() + later); !isNew {
			return
		}
		if !w.orphans() {
			s.next = w.save()
		}
		s.world = w
		s.steps = w.apply(e.scenario.resources, cut{late: e.scenario.late}, nil, false).steps
		if e.scenario.decides {
			w.apply(e.scenario.resources, cut{}, w.unknown(), false)
		}
		time.Sleep(5 * time.Minute) // for what is still alive
		s.wrong = w.check(e.scenario)
		e.mu.Lock()
		defer e.mu.Unlock()
		maps.Copy(e.occurred, w.occurred)
	})
	return isNew
}

func (e *explorer) isNew(fingerprint string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	known := e.seen[fingerprint]
	e.seen[fingerprint] = true
	e.schedules++
	return !known
}

func (e *explorer) cutWorld(t *testing.T, s *schedule) *world {
	w := newWorld(t, e.store, simulator.Script{Duration: time.Second})
	t.Cleanup(w.end)
	first := 0
	switch {
	case s.from != nil:
		w.restore(s.from)
		first = len(s.cuts) - 1
	case e.scenario.before != nil:
		w.apply(e.scenario.before, cut{}, nil, false)
		time.Sleep(time.Minute)
	}
	for i, c := range s.cuts[first:] {
		c.late, c.noJournal = e.scenario.late, e.scenario.noJournal && first+i == 0
		w.apply(e.scenario.resources, c, nil, false)
	}
	return w
}

// explore plays the schedules that have one more cut.
func (e *explorer) explore(s *schedule) (longer []*schedule) {
	for i, taken := range s.steps {
		if repeats(s.steps, i) {
			continue
		}
		for _, way := range waysAt(taken.kind, e.store) {
			if way == stalled && len(s.cuts) > 0 && (!everything() || !taken.lasts()) {
				continue
			}
			if (way == killed || way == diskLost) && i > 0 && !taken.lasts() && !s.steps[i-1].lasts() {
				continue // the same world as after the step before
			}
			next := &schedule{cuts: append(slices.Clone(s.cuts), cut{at: i + 1, way: way}), from: s.next}
			isNew := e.play(next)
			if way == stalled && !e.interleave(next, len(s.steps)) {
				return nil
			}
			if !isNew {
				continue
			}
			if len(next.wrong) > 0 && !e.excuse(next) {
				e.report(next)
				return nil // the first one is the shortest
			}
			next.world = nil // saves memory
			longer = append(longer, next)
		}
	}
	return longer
}

// interleave plays a schedule with the provider of the killed CLI continuing at each step
// of the next run: of every scenario in make chaos, but after two cuts only of one.
func (e *explorer) interleave(s *schedule, steps int) bool {
	if e.scenario.name != "create" && !everything() || len(s.cuts) > 1 && (e.scenario.name != "create" || e.store != bucket) {
		return true
	}
	for step := 1; step <= steps; step++ {
		next := &schedule{cuts: slices.Clone(s.cuts), from: s.from}
		next.cuts[len(s.cuts)-1].until = step
		e.play(next)
		if len(next.wrong) > 0 && !e.excuse(next) {
			e.report(next)
			return false
		}
	}
	return true
}

// all plays the schedules with up to depth more cuts.
func (e *explorer) all(s *schedule, depth int) {
	longer := e.explore(s)
	if depth == 1 {
		return
	}
	for i, next := range longer {
		e.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			(&explorer{t, e.tally, e.scenario, e.store}).all(next, depth-1)
		})
	}
}

// The documented exceptions of the default folder. Each must occur.
const (
	withoutState   = "the state could not be stored, and the run ended cleanly"
	withoutDisk    = "the disk was lost"
	withoutJournal = "the journal could not be used, and the run was cut"
)

// excuse reports whether a documented exception explains that something was sent twice, or lost.
func (e *explorer) excuse(s *schedule) bool {
	has := func(w way) bool { return slices.ContainsFunc(s.cuts, func(c cut) bool { return c.way == w }) }
	explained := func(wrong string) bool {
		return slices.ContainsFunc([]string{twice, lost, left}, func(kind string) bool { return strings.HasPrefix(wrong, kind) })
	}
	var why string
	switch {
	case e.store != defaultFolder, slices.ContainsFunc(s.wrong, func(wrong string) bool { return !explained(wrong) }):
		return false
	case has(diskLost):
		why = withoutDisk
	case has(stateLost), has(outage):
		why = withoutState
	case has(storeDown), e.scenario.noJournal:
		why = withoutJournal
	default:
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.excused[why]++
	return true
}

// The two ways to break the promise, and what a run leaves if it cannot read the journal.
const twice, lost, left = "sent twice: ", "lost: ", "left: "

// repeats reports whether a step only waits on.
func repeats(steps []stepTaken, i int) bool {
	return i >= 4 && steps[i] == steps[i-2] && steps[i] == steps[i-4]
}

// report prints a schedule that breaks the promise.
func (e *explorer) report(s *schedule) {
	var text strings.Builder
	for _, r := range s.world.runs {
		text.WriteString(r.String())
	}
	e.Errorf("%s\n%sthe world:\n%s", strings.Join(s.wrong, "\n"), &text, s.world.fingerprint())
}

// unknown are the ids of the entries of creates without a response.
func (w *world) unknown() (ids []string) {
	for _, e := range w.entries() {
		if !e.Accepted && strings.HasPrefix(e.Key, "create") {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// cutOnlyBy reports whether no run was cut in another way.
func (w *world) cutOnlyBy(allowed ...way) bool {
	return !slices.ContainsFunc(w.runs, func(r *run) bool { return r.cut.way != uncut && !slices.Contains(allowed, r.cut.way) })
}

// check asserts the promise. The last run was not cut.
func (w *world) check(s scenario) (wrong []string) {
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	last := w.runs[len(w.runs)-1]
	plan := w.apply(s.resources, cut{}, nil, true)
	jobs, entries, unknown := w.sim.Jobs(), w.entries(), len(w.unknown())
	givenUp := len(last.forget)
	if w.tainted {
		fail("a stored object is tainted, and no job has failed")
	}
	if !plan.empty && len(plan.diags) == 0 {
		fail("the last plan is not empty and does not say why")
	}
	if len(jobs) > s.jobs+givenUp {
		fail(twice+"%d jobs were started, want %d", len(jobs), s.jobs)
	}
	ids := map[string]bool{}
	for address, o := range w.state {
		if id := get(o.value, "id"); ids[id] {
			fail("%s shares its job with another resource", address)
		} else {
			ids[id] = true
		}
	}
	if w.cutOnlyBy(interrupted) && s.late < requestTimeout && w.occurred["Agent job of an earlier run taken over"] {
		fail("after Ctrl-C the state lacked a job")
	}
	if w.cutOnlyBy(interrupted, cliKilled, stalled) && s.late < requestTimeout && !s.noJournal && unknown > 0 {
		fail("nobody has the response, although the provider lived on")
	}
	aliases := 1 // each of them is blocked by an unknown create
	for _, res := range s.resources {
		aliases = max(aliases, res.alias+1)
	}
	if missing := len(s.resources) - len(w.state); missing > unknown*aliases {
		fail("%d resources are missing, and %d outcomes are unknown", missing, unknown)
	}
	for _, e := range entries {
		// What could not be removed is harmless: only an equal request would find it.
		unremoved := w.everSeen[e.Job] && slices.ContainsFunc(w.runs, func(r *run) bool { return r.storeDown.Load() })
		if (e.Accepted || len(plan.diags) == 0) && !unremoved {
			fail(left+"%+v", e)
		}
	}
	for _, job := range jobs {
		prompts := slices.Clone(job.Prompts)
		slices.Sort(prompts)
		if len(slices.Compact(prompts)) < len(job.Prompts) {
			fail(twice+"job %s has the prompts %q", job.ID, job.Prompts)
		}
		inJournal := slices.ContainsFunc(entries, func(e entry) bool { return e.Accepted && e.Job == job.ID })
		switch {
		case w.everSeen[job.ID], inJournal, strings.Contains(w.shown.String(), job.ID):
		case unknown > 0:
			unknown--
		case givenUp > 0:
			givenUp--
		default:
			fail(lost+"job %s is in no state, not in the journal, and in no diagnostic", job.ID)
		}
	}
	return wrong
}

// situations are what the documentation describes. Each must occur in a schedule.
func situations() []string {
	return []string{
		"Agent job of an earlier run taken over", "Agent job of an earlier run will be taken over", "Agent job still running", "Agent job not created",
		"Failed to read agent job", "Message to agent job not accepted", "Follow-up message to agent job", "Journal not usable", "Journal not written",
		"Message of an earlier run taken over", "Message of an earlier run will be taken over", "Message to agent job unconfirmed",
		"Outcome of agent job create unknown", "Outcome of an earlier request unknown", "Outcome of message to agent job unknown", "Unfinished agent job",
	}
}

// everything reports whether make chaos runs the tests.
func everything() bool { return os.Getenv("EXPLORE") == "all" }

// TestX17_explore plays every cut of one run, and every pair of cuts of two runs in a row: in
// make test only for a create and a message in a bucket, in make chaos for all scenarios
// there, and in folders for these two.
func TestX17_explore(t *testing.T) {
	var mu sync.Mutex
	occurred, excused := map[string]bool{}, map[string]int{}
	schedules, worlds, finished := 0, 0, 0
	t.Run("all", func(t *testing.T) {
		for _, s := range scenarios() {
			for name, st := range map[string]store{"bucket": bucket, "named folder": namedFolder, "default folder": defaultFolder} {
				t.Run(s.name+" in "+name, func(t *testing.T) {
					t.Parallel()
					e := &explorer{t, &tally{seen: map[string]bool{}, occurred: map[string]bool{}, excused: map[string]int{}}, s, st}
					uncut := &schedule{cuts: []cut{{}}}
					e.play(uncut)
					if len(uncut.wrong) > 0 {
						e.report(uncut)
						return
					}
					depth := 1
					if st == bucket && (s.pairs || everything()) || s.pairs && everything() {
						depth = 2
					}
					e.all(&schedule{steps: uncut.world.firstCut(e).steps}, depth)
					t.Cleanup(func() { // after its parts
						mu.Lock()
						defer mu.Unlock()
						schedules, worlds, finished = schedules+e.schedules, worlds+len(e.seen), finished+1
						maps.Copy(occurred, e.occurred)
						for excuse, n := range e.excused {
							excused[excuse] += n
						}
					})
				})
			}
		}
	})
	fmt.Printf("%d schedules, %d distinct worlds\n", schedules, worlds)
	if finished < len(scenarios())*3 { // -run has left some out
		return
	}
	for _, situation := range situations() {
		if !occurred[situation] {
			t.Errorf("%q never occurred", situation)
		}
	}
	for _, excuse := range []string{withoutState, withoutDisk, withoutJournal} {
		if excused[excuse] == 0 {
			t.Errorf("%q never breaks the promise in the default folder", excuse)
		}
	}
}

// firstCut is the first run that can be cut.
func (w *world) firstCut(e *explorer) *run {
	if e.scenario.before != nil {
		return w.runs[1]
	}
	return w.runs[0]
}
