// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !race && unix

package explore

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// explorer plays the schedules of a scenario.
type explorer struct {
	*testing.T
	*tally

	scenario scenario
	turn     int // counts the schedules that make test could play
}

// tally is what the explorers have in common.
type tally struct {
	mu                   sync.Mutex
	worlds               map[string]bool // that were seen, by scenario and fingerprint
	occurred             map[string]bool
	scenarios, schedules int
}

// schedule is one cut for each run, and what has become of it.
type schedule struct {
	cuts  []cut
	world *world
	steps []stepTaken // of the run after the last cut
}

// play plays the cuts, one for each run, then a run that is not cut, and a plan. It
// returns false if the world after the cuts was known.
func (e *explorer) play(s *schedule) (isNew bool) {
	later := ""
	if last := s.cuts[len(s.cuts)-1]; last.way == cliKilled || last.way == stalled { // what the orphan will do distinguishes worlds
		synctest.Test(e.T, func(t *testing.T) {
			w := e.cutWorld(t, s)
			time.Sleep(5 * time.Minute)
			later = w.fingerprint()
		})
	}
	synctest.Test(e.T, func(t *testing.T) {
		w := e.cutWorld(t, s)
		if isNew = e.isNew(w.fingerprint()+later) || len(w.wrong) > 0; !isNew {
			return
		}
		s.world = w
		for i, c := range e.scenario.after(len(s.cuts)) {
			r := w.play(c, cut{})
			if i == 0 {
				s.steps = r.taken()
			}
		}
		if e.scenario.decides {
			w.play(e.scenario.after(len(s.cuts))[0], cut{}, w.unknown()...)
		}
		time.Sleep(5 * time.Minute) // for what is still alive
		w.check()
		e.mu.Lock()
		defer e.mu.Unlock()
		maps.Copy(e.occurred, w.occurred)
	})
	if isNew && len(s.world.wrong) > 0 {
		e.report(s.world)
	}
	return isNew
}

func (e *explorer) isNew(fingerprint string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.schedules++
	number := len(e.worlds)
	e.worlds[e.scenario.name+": "+fingerprint] = true
	return len(e.worlds) > number
}

// cutWorld is a world after the cuts of a schedule.
func (e *explorer) cutWorld(t *testing.T, s *schedule) *world {
	w := newWorld(t, e.scenario)
	t.Cleanup(func() { time.Sleep(3 * time.Hour) }) // what was still alive runs out
	for _, c := range e.scenario.before {
		w.play(c, cut{})
		time.Sleep(time.Minute)
	}
	w.backup = maps.Clone(w.state)
	for _, r := range w.records() {
		w.requests = append(w.requests, r.Last.ID)
	}
	for i, c := range s.cuts {
		w.play(e.scenario.after(i)[0], c)
	}
	return w
}

// explore plays the schedules that have one more cut, up to the first that breaks the promise: it is the shortest.
func (e *explorer) explore(s *schedule) (longer []*schedule) {
	applying := slices.IndexFunc(s.steps, func(s stepTaken) bool { return s.name == "ApplyResourceChange" })
	for i, taken := range s.steps {
		isQuiet := i > 0 && !taken.lasts() && !s.steps[i-1].lasts() // the same world as after the step before
		if repeats(s.steps, i) || isQuiet && i < applying && !more() {
			continue
		}
		for _, way := range waysAt(taken.kind) {
			isRare := way == stalled && len(s.cuts) > 0 && (!everything() || !taken.lasts())
			if !e.scenario.has(way) || isRare || way == killed && isQuiet || !e.isDue() {
				continue
			}
			next := &schedule{cuts: append(slices.Clone(s.cuts), cut{at: i + 1, way: way})}
			if !e.play(next) {
				continue
			}
			if e.Failed() {
				return nil
			}
			next.world = nil // saves memory
			longer = append(longer, next)
		}
	}
	return longer
}

// repeats reports whether a step only waits on.
func repeats(steps []stepTaken, i int) bool {
	return i >= 4 && steps[i] == steps[i-2] && steps[i] == steps[i-4]
}

// report prints a schedule that breaks the promise.
func (e *explorer) report(w *world) {
	e.Helper()
	e.Errorf("%s\n%sthe world:\n%s", strings.Join(w.wrong, "\n"), strings.Trim(fmt.Sprint(w.runs), "[]"), w.fingerprint())
}

// situations are what the documentation describes, its exceptions too. Each must occur in a schedule.
func situations() []string {
	return []string{
		adopted, running, "Agent job still running", "Agent job not created", "Agent job not replaced", "Failed to read agent job",
		"Message to agent job not accepted", "Journal not usable", "Journal not written", "Message of an earlier run counts as sent",
		"Message to agent job unconfirmed", "Name has another agent job", "Duplicate agent job name",
		"New prompt starts a new agent job", "Outcome of agent job create unknown", "Outcome of message to agent job unknown",
		twoAliases, lastOnly,
	}
}

// How much is played: EXPLORE is empty in make test, "more" in .ci/run, and "all" in make chaos.
func everything() bool { return os.Getenv("EXPLORE") == "all" }
func more() bool       { return os.Getenv("EXPLORE") != "" }

// make chaos follows one first cut in so many by each second one. All of them would take a day.
const sampled = 128

// isDue reports whether the next schedule is played: in make test it is one in four, and not the same in each scenario.
func (e *explorer) isDue() bool {
	e.turn++
	return more() || e.turn%4 == 0
}

// TestX17_explore plays every cut of one run, and pairs of cuts of two runs in a row. In make
// test it plays a fourth of the single cuts, and no rare scenarios; in .ci/run all, and some pairs; in make chaos a
// sample of the pairs of all scenarios. A state from before comes back (X09), and the disk is wiped, because the journal is
// in a bucket (X10).
func TestX17_explore(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	t.Setenv("AWS_CA_BUNDLE", "")                     // needs a network of the SDK's own
	t.Chdir(t.TempDir())                              // where no backend is
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // many short worlds
	sample := harness.Number(t, "CHAOS_SEED", rand.Uint64()%sampled)
	began, all, total := time.Now(), 0, &tally{worlds: map[string]bool{}, occurred: map[string]bool{}}
	t.Run("all", func(t *testing.T) {
		for _, s := range scenarios() {
			if s.rare && !more() {
				continue
			}
			all++
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				(&explorer{T: t, tally: total, scenario: s, turn: len(s.name)}).all(sample)
			})
		}
	})
	fmt.Printf("played %d schedules of %d scenarios, %d distinct worlds, in %v (CHAOS_SEED=%d)\n",
		total.schedules, total.scenarios, len(total.worlds), time.Since(began).Round(time.Second), sample)
	if total.scenarios < all || !more() { // -run has left some out
		return
	}
	for _, situation := range situations() {
		if !total.occurred[situation] {
			t.Errorf("%q never occurred", situation)
		}
	}
}

// all plays the scenario without a cut, each cut of its first run, and the pairs that it asks for, or that are due.
func (e *explorer) all(sample uint64) {
	uncut := &schedule{cuts: []cut{{}}}
	if e.play(uncut); e.Failed() {
		return
	}
	e.mu.Lock()
	e.scenarios++
	e.mu.Unlock()
	for i, first := range e.explore(&schedule{steps: uncut.world.runs[len(e.scenario.before)].taken()}) {
		if e.scenario.pairs && more() || everything() && (uint64(i)+sample)%sampled == 0 {
			e.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				(&explorer{T: t, tally: e.tally, scenario: e.scenario}).explore(first)
			})
		}
	}
}
