// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// round is a run of three creates or messages that a signal ends, and the
// runs that follow until nothing fails.
type round struct {
	name     string
	when     func(*process) // waits until the moment of the end
	end      ending
	bucket   bool // of the journal
	messages bool
	env      []string
	late     []time.Duration // the responses to its POSTs, in the order in which they arrive
	effect   bool            // the service has accepted them before
	hold     bool            // no wait finishes during the run

	awaited bool // the provider can await every response, so no outcome is unknown
	kept    bool // after the run the state holds all jobs, active
}

// run compares what was requested with what the service, the state and the journal have.
func (r round) run(t *testing.T) {
	reported, adopted := 0, 0
	w := newWorkingDir(t, quick, "")
	if r.bucket {
		w.useBucket()
	}
	w.write(use("test", canaryPrompt, "count = 3")) // with the same prompt, each with its own name
	if r.messages {
		w.run("apply")
		w.write(use("test", canaryPrompt+" more", "count = 3"))
	}
	before := w.stateText()
	output := r.disturbed(w)
	story := []string{output, fmt.Sprint(w.records())}
	defer func() {
		if t.Failed() {
			t.Logf("what happened:\n%s", strings.Join(story, "\n--- "))
		}
	}()
	if r.kept {
		kept := slices.DeleteFunc(w.state(), func(i instance) bool {
			return i.Status != "active" || i.Tainted || !strings.Contains(output, i.ID)
		})
		if len(kept) != 3 {
			t.Errorf("%d jobs in the state are active, untainted and in the output, want 3", len(kept))
		}
	}
	// The CLI was killed while it wrote its state, which Terraform empties first: all jobs in it are gone, however long ago they finished.
	if len(before)+len(w.stateText()) > 0 && !json.Valid(w.stateText()) {
		t.Log("torn")
		return
	}
	for try := 0; ; try++ {
		output, ok := w.try("apply -json")
		story = append(story, output)
		unknown := count(output, createUnknown)
		reported += unknown + count(output, messageUnknown)
		adopted += count(output, createAdopted, messageFound)
		if ok {
			break
		}
		if try == 5 || unknown+count(output, messageUnknown) == 0 {
			t.Fatal("the apply fails")
		}
		if unknown > 0 { // as a pipeline that retries, and then as a person
			sent := w.sim.Counts().Create
			again, _ := w.try("apply -json")
			if n := count(again, createUnknown); n != unknown || w.sim.Counts().Create != sent {
				t.Errorf("%d unknown creates block the next apply, want %d; it started %d jobs\n%s", n, unknown, w.sim.Counts().Create-sent, again)
			}
			w.forget(output)
		}
	}
	t.Logf("%d reported, %d adopted", reported, adopted)
	r.check(w, reported)
}

// disturbed is the run that is disturbed.
func (r round) disturbed(w *workingDir) (output string) {
	w.t.Helper()
	if r.hold {
		w.sim.Inject(simulator.Fault{Kind: simulator.KindGet, Times: -1, Skip: len(w.state()), Delay: time.Hour})
	}
	kind := simulator.KindCreate
	if r.messages {
		kind = simulator.KindMessage
	}
	for _, delay := range r.late {
		w.sim.Inject(simulator.Fault{Kind: kind, Delay: delay, AfterEffect: r.effect})
	}
	w.env = r.env
	p := w.start("apply")
	r.when(p)
	r.end.send(p)
	output = p.wait()
	w.env = nil
	w.sim.ClearFaults()
	return output
}

// check holds the end of a round against what was asked for.
func (r round) check(w *workingDir, reported int) {
	w.t.Helper()
	if r.awaited && reported > 0 {
		w.t.Errorf("%d outcomes were unknown although the provider could await the responses", reported)
	}
	ids := map[string]bool{}
	for _, i := range w.state() {
		if i.Tainted {
			w.t.Errorf("%s is tainted", i.ID)
		}
		ids[i.ID] = true
	}
	if len(ids) != 3 {
		w.t.Errorf("the state holds %q, want 3 jobs", slices.Collect(maps.Keys(ids)))
	}
	for _, j := range w.sim.Jobs() {
		if sent := len(j.Prompts) - 1; sent > 1 {
			w.t.Errorf("%s got the message %d times", j.ID, sent)
		}
	}
	// A job that the state does not hold must have been reported.
	allowed := 3
	if !r.messages {
		allowed += reported
	}
	if started := len(w.sim.Jobs()); started > allowed {
		w.t.Errorf("%d jobs were started for 3; %d outcomes were reported as unknown", started, reported)
	}
	w.run("plan -detailed-exitcode")
	w.assertSettled()
}
