// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// lastRun is a run whose end the state does not show.
type lastRun struct {
	name string
	// end ends the run, whose jobs are polled. Nil: the run ends by itself.
	end func(*process)
	// disturbed runs are remembered in the default folder too.
	disturbed bool
}

var lastRuns = []lastRun{
	{"undisturbed", nil, false},
	{"interrupted", func(p *process) { p.signal(syscall.SIGINT) }, true},
	{"interrupted twice", func(p *process) { p.signal(syscall.SIGINT); p.signal(syscall.SIGINT) }, true},
	{"CLI killed", func(p *process) { p.signal(syscall.SIGKILL) }, true},
	{"killed", func(p *process) { p.signalGroup(syscall.SIGKILL) }, true},
}

// Red without: the entries that stay until the state was seen; in the default
// folder, without the stop and the lost connection that make an end disturbed.
func TestX09_state_from_before_comes_back(t *testing.T) {
	t.Parallel()
	for _, s := range []store{defaultFolder, namedFolder} {
		t.Run(string(s), func(t *testing.T) {
			t.Parallel()
			stateComesBack(t, s, false)
		})
	}
}

func TestX09_S3_state_from_before_comes_back(t *testing.T) {
	t.Parallel()
	stateComesBack(t, bucket, false)
}

func TestX10_S3_disk_is_wiped(t *testing.T) {
	t.Parallel()
	stateComesBack(t, bucket, true)
}

func stateComesBack(t *testing.T, s store, wiped bool) {
	t.Helper()
	for i, run := range lastRuns {
		for _, messages := range []bool{false, true} {
			if s == defaultFolder && !run.disturbed || messages && i > 1 { // of messages two ends are enough
				continue
			}
			t.Run(fmt.Sprintf("%s, messages=%t", run.name, messages), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, simulator.Script{}, "")
				w.keepJournal(s)
				before := w.prepare(messages)
				run.apply(w)
				w.putBack(before, wiped)
				w.assertTakenOver(messages)
			})
		}
	}
}

// prepare asks for three creates or messages that no run has sent yet, and
// returns the state from before.
func (w *world) prepare(messages bool) (before []byte) {
	w.t.Helper()
	w.write(jobs(canaryPrompt))
	if messages {
		w.applied()
		before = w.stateText()
		w.write(jobs(canaryPrompt + " more"))
	}
	return before
}

// run applies what was prepared, and ends that as given.
func (run lastRun) apply(w *world) {
	w.t.Helper()
	counts := w.sim.Counts()
	refreshes := len(w.state())
	if run.end != nil { // no wait finishes before that
		w.sim.Inject(simulator.Fault{Kind: simulator.KindGet, Times: -1, Skip: refreshes, Delay: time.Hour})
	}
	p := w.startApply()
	if run.end != nil {
		want := counts.Create + counts.Message + 3
		w.until("all are waited for", func() bool { return w.sent() == want && w.sim.Counts().Get == counts.Get+refreshes+3 })
		run.end(p)
	}
	p.wait()
	w.sim.ClearFaults()
}

// assertTakenOver asserts that a plan announces that all three requests will be
// taken over, and that an apply does so without a POST.
func (w *world) assertTakenOver(messages bool) {
	w.t.Helper()
	counts, created := w.sim.Counts(), w.sim.Jobs()
	plan, ok := w.planned()
	all := strings.Join(details(plan, createAnnounced, messageAnnounced), "\n")
	for _, j := range created {
		if strings.Count(all, j.ID) != 1 {
			w.t.Errorf("the plan announces job %s %d times:\n%s", j.ID, strings.Count(all, j.ID), plan)
		}
	}
	output, applied := w.appliedJSON()
	if !ok || !applied {
		w.t.Errorf("success of the plan %t, of the apply %t:\n%s\n%s", ok, applied, plan, output)
	}
	summary := createTakenOver
	if messages {
		summary = messageTakenOver
	}
	if got := count(output, summary); got != 3 {
		w.t.Errorf("%d requests were taken over, want 3:\n%s", got, output)
	}
	w.posts(counts.Create, counts.Message)
	w.assertEachJobOnce()
}

// The backend does not store what the run has done: it responds 500, or the
// CLI is killed in that write. Red without: as above.
func TestX09_backend_does_not_store(t *testing.T) {
	t.Parallel()
	for _, s := range []store{defaultFolder, namedFolder} {
		t.Run(string(s), func(t *testing.T) {
			t.Parallel()
			backendDoesNotStore(t, s)
		})
	}
}

func TestX09_S3_backend_does_not_store(t *testing.T) {
	t.Parallel()
	backendDoesNotStore(t, bucket)
}

func backendDoesNotStore(t *testing.T, s store) {
	t.Helper()
	for _, run := range lastRuns[:2] {
		for _, test := range []struct {
			name           string
			messages, kill bool
		}{
			{"creates, 500", false, false},
			{"messages, 500", true, false},
			{"creates, CLI killed in the write", false, true},
		} {
			if s == defaultFolder && !run.disturbed {
				continue
			}
			t.Run(run.name+", "+test.name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, simulator.Script{}, "")
				w.keepJournal(s)
				w.storeRemotely()
				w.prepare(test.messages)
				w.remote.whileRefusing(func() {
					if test.kill {
						w.running.Load().signalGroup(syscall.SIGKILL)
					}
				}, func() { run.apply(w) })
				if w.remote.refused == 0 {
					t.Error("nothing was refused, so this proves nothing")
				}
				w.assertTakenOver(test.messages)
			})
		}
	}
}

// The same with runs that end in any way at any moment.
func TestX09_state_from_before_any_moment(t *testing.T) {
	inRounds(t, 5, mode{store: namedFolder, endings: anyEnding, before: true})
}

func TestX10_S3_disk_is_wiped_at_any_moment(t *testing.T) {
	inRounds(t, 5, mode{store: bucket, endings: anyEnding, before: true, wiped: true})
}
