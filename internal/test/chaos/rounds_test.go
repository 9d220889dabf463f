// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// round is a run of three creates or messages that something disturbs, and the
// runs that follow until nothing fails.
type round struct {
	name     string
	store    store
	messages bool
	config   func(prompt string) string // nil: jobs
	env      []string                   // of the run
	posts    []simulator.Fault          // what happens to its POSTs, in the order in which they arrive
	hold     bool                       // no wait finishes during the run
	disturb  func(*process)             // nil: nothing does
	loss     loss

	awaited bool // the provider can await every response, so no outcome is unknown
	kept    bool // after the run the state holds all jobs, active
	all     bool // a plan announces everything, an apply takes over everything
}

// loss is what the state or the disk loses after the run.
type loss int

const (
	nothing   loss = iota
	theState       // the state from before the run comes back
	theDisk        // and nothing else on the disk does
	theWrites      // a backend refuses what the run writes
	killed         // and the CLI is killed in that write
)

// tally counts what the rounds have shown.
//
// "unpersisted" are requests in the default folder whose outcome the provider had
// handed to the CLI, and had ended well, before the CLI was ended: OpenTofu, and
// every remote backend, persists the state after that, and nothing of ours is
// there any more to remember them. A named journal keeps them.
//
// "torn" are rounds in which the CLI was killed while it wrote its state, which
// Terraform empties first: all jobs in it are gone, however long ago they finished.
type tally map[string]int

// play runs rounds at once and prints what they have shown.
func play(t *testing.T, rounds []round) {
	t.Helper()
	var mu sync.Mutex
	sum := tally{}
	t.Run("rounds", func(t *testing.T) {
		for _, r := range rounds {
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				got := r.run(t)
				mu.Lock()
				defer mu.Unlock()
				for name, n := range got {
					sum[name] += n
				}
			})
		}
	})
	t.Logf("%v", sum)
}

// run compares what was requested with what the service, the state and the journal have.
func (r round) run(t *testing.T) tally {
	sum := tally{"rounds": 1}
	w := newWorkingDir(t, quick, "")
	w.keepJournal(r.store)
	if r.loss >= theWrites {
		w.storeRemotely()
	}
	before := r.prepare(w)
	output := r.disturbed(w)
	story := []string{output, w.journalText()}
	defer func() {
		if t.Failed() {
			t.Logf("what happened:\n%s", strings.Join(story, "\n--- "))
		}
	}()
	if r.kept {
		w.assertKept(output)
	}
	switch {
	case r.loss == theState || r.loss == theDisk:
		w.putBack(before, r.loss == theDisk)
	case r.loss == nothing && w.stateTorn(r.messages):
		return tally{"rounds": 1, "torn": 1}
	}
	handed := w.handedOver(output)
	if r.loss != nothing {
		if len(handed) > 0 {
			t.Fatal("the journal has forgotten what was handed over")
		}
		story = append(story, string(before), r.announced(w))
	}
	sum["unpersisted"] = len(handed)
	for try := 0; ; try++ {
		output, ok := w.try("apply -json")
		story = append(story, output)
		reported := count(output, createUnknown, messageUnknown)
		sum["reported"] += reported
		sum["taken over"] += count(output, createTakenOver, messageTakenOver)
		if ok {
			break
		}
		if reported == 0 || try == 5 {
			t.Fatal("the apply fails")
		}
	}
	r.check(w, sum, handed)
	return sum
}

// prepare asks for three creates or messages that no run has sent yet, and
// returns the state from before.
func (r round) prepare(w *workingDir) (before []byte) {
	w.t.Helper()
	config := r.config
	if config == nil {
		config = jobs
	}
	w.write(config(canaryPrompt))
	if r.messages {
		w.run("apply")
		w.write(config(canaryPrompt + " more"))
	}
	return w.stateText()
}

// disturbed is the run that is disturbed.
func (r round) disturbed(w *workingDir) (output string) {
	w.t.Helper()
	if r.hold {
		w.sim.Inject(simulator.Fault{Kind: simulator.KindGet, Times: -1, Skip: len(w.state()), Delay: time.Hour})
	}
	for _, fault := range r.posts {
		fault.Kind = simulator.KindCreate
		if r.messages {
			fault.Kind = simulator.KindMessage
		}
		w.sim.Inject(fault)
	}
	var refused atomic.Bool
	if r.loss >= theWrites {
		w.remote.setOnWrite(func() bool {
			refused.Store(true)
			if r.loss == killed {
				w.running.Load().signalGroup(syscall.SIGKILL)
			}
			return false
		})
	}
	w.env = r.env
	p := w.start("apply")
	if r.disturb != nil {
		r.disturb(p)
	}
	output = p.wait()
	w.env = nil
	w.sim.ClearFaults()
	if r.loss >= theWrites {
		w.remote.setOnWrite(nil)
		if !refused.Load() {
			w.t.Error("nothing was refused, so this proves nothing")
		}
	}
	return output
}

// announced is a plan with the state from before. Where nothing is unknown, it
// announces each job once.
func (r round) announced(w *workingDir) (plan string) {
	w.t.Helper()
	plan, ok := w.try("plan -json")
	if !ok {
		w.t.Error("no plan with the state from before")
	}
	all := strings.Join(details(plan, createAnnounced, messageAnnounced), "\n")
	for _, j := range w.sim.Jobs() {
		if n := strings.Count(all, j.ID); n != 1 && r.all && r.config == nil { // the plans of two aliases do not know of each other
			w.t.Errorf("the plan announces job %s %d times", j.ID, n)
		}
	}
	return plan
}

// handedOver are the jobs whose end the CLI had printed although the state does
// not hold them so, where the plugin had ended well: the default folder holds
// nothing of them.
func (w *workingDir) handedOver(output string) map[string]bool {
	if w.journal != "" || len(w.entries()) > 0 {
		return nil
	}
	text := string(w.stateText())
	handed := map[string]bool{}
	for _, j := range w.sim.Jobs() {
		printed := slices.ContainsFunc(strings.Split(output, "\n"), func(line string) bool {
			return strings.Contains(line, "complete after") && strings.Contains(line, "[id="+j.ID+"]")
		})
		if printed && (!strings.Contains(text, j.ID) || !strings.Contains(text, strconv.Quote(j.Prompts[len(j.Prompts)-1]))) {
			handed[j.ID] = true
		}
	}
	return handed
}

// check holds the end of a round against what was asked for.
func (r round) check(w *workingDir, sum tally, handed map[string]bool) {
	w.t.Helper()
	if r.awaited && sum["reported"] > 0 {
		w.t.Errorf("%d outcomes were unknown although the provider could await the responses", sum["reported"])
	}
	if r.all && sum["taken over"] != 3 {
		w.t.Errorf("%d requests were taken over, want 3", sum["taken over"])
	}
	state := map[string]bool{}
	for _, i := range w.state() {
		if i.Tainted {
			sum["tainted"]++
			w.t.Errorf("%s is tainted", i.ID)
		}
		state[i.ID] = true
	}
	if len(state) != 3 {
		w.t.Errorf("the state holds %d jobs, want 3", len(state))
	}
	for _, j := range w.sim.Jobs() {
		if sent := len(j.Prompts) - 1; sent > 1 && !handed[j.ID] {
			sum["duplicates"] += sent - 1
			w.t.Errorf("%s got the message %d times", j.ID, sent)
		}
	}
	// A job that the state does not hold must have been reported.
	allowed := 3
	if !r.messages {
		allowed += sum["reported"] + len(handed)
	}
	if started := len(w.sim.Jobs()); started > allowed {
		sum["lost"] += started - allowed
		w.t.Errorf("%d jobs were started for 3; %d outcomes were reported as unknown, %d not persisted", started, sum["reported"], len(handed))
	}
	w.assertNothingToDo()
}
