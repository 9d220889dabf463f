// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"fmt"
	"strings"
	"sync/atomic"
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
	stateComesBack(t, false, defaultFolder, namedFolder)
}

func TestX09_S3_state_from_before_comes_back(t *testing.T) {
	needsBucket(t)
	t.Parallel()
	stateComesBack(t, false, bucket)
}

// A named folder may be on another disk.
func TestX10_disk_is_wiped(t *testing.T) {
	t.Parallel()
	stateComesBack(t, true, namedFolder)
}

func TestX10_S3_disk_is_wiped(t *testing.T) {
	needsBucket(t)
	t.Parallel()
	stateComesBack(t, true, bucket)
}

func stateComesBack(t *testing.T, wiped bool, stores ...store) {
	t.Helper()
	type cell struct {
		store
		lastRun
		messages bool
	}
	var cells []cell
	for _, s := range stores {
		for i, run := range lastRuns {
			if s.remembers() || run.disturbed {
				cells = append(cells, cell{s, run, false})
				if i < 2 { // of messages two ends are enough
					cells = append(cells, cell{s, run, true})
				}
			}
		}
	}
	for _, c := range everyNth(t, envRounds, 3, cells) {
		t.Run(fmt.Sprintf("%s, %s, messages=%t", c.store, c.name, c.messages), func(t *testing.T) {
			t.Parallel()
			w := newWorkingDir(t, simulator.Script{}, "")
			w.keepJournal(c.store)
			before := w.prepare(c.messages)
			c.apply(w)
			w.putBack(before, wiped)
			w.assertTakenOver(c.messages)
		})
	}
}

// prepare asks for three creates or messages that no run has sent yet, and
// returns the state from before.
func (w *workingDir) prepare(messages bool) (before []byte) {
	w.t.Helper()
	w.write(jobs(canaryPrompt))
	if messages {
		w.run("apply")
		before = w.stateText()
		w.write(jobs(canaryPrompt + " more"))
	}
	return before
}

// run applies what was prepared, and ends that as given.
func (run lastRun) apply(w *workingDir) {
	w.t.Helper()
	counts := w.sim.Counts()
	refreshes := len(w.state())
	if run.end != nil { // no wait finishes before that
		w.sim.Inject(simulator.Fault{Kind: simulator.KindGet, Times: -1, Skip: refreshes, Delay: time.Hour})
	}
	p := w.start("apply")
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
func (w *workingDir) assertTakenOver(messages bool) {
	w.t.Helper()
	counts, created := w.sim.Counts(), w.sim.Jobs()
	plan, ok := w.try("plan -json")
	all := strings.Join(details(plan, createAnnounced, messageAnnounced), "\n")
	for _, j := range created {
		if strings.Count(all, j.ID) != 1 {
			w.t.Errorf("the plan announces job %s %d times:\n%s", j.ID, strings.Count(all, j.ID), plan)
		}
	}
	output, applied := w.try("apply -json")
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
	backendDoesNotStore(t, defaultFolder, namedFolder)
}

func TestX09_S3_backend_does_not_store(t *testing.T) {
	needsBucket(t)
	t.Parallel()
	backendDoesNotStore(t, bucket)
}

func backendDoesNotStore(t *testing.T, stores ...store) {
	t.Helper()
	type cell struct {
		store
		lastRun
		messages, kill bool
	}
	var cells []cell
	for _, s := range stores {
		for _, run := range lastRuns[:2] {
			if s.remembers() || run.disturbed {
				cells = append(cells, cell{s, run, false, false}, cell{s, run, true, false}, cell{s, run, false, true})
			}
		}
	}
	for _, c := range everyNth(t, envRounds, 4, cells) {
		t.Run(fmt.Sprintf("%s, %s, messages=%t, CLI killed in the write=%t", c.store, c.name, c.messages, c.kill), func(t *testing.T) {
			t.Parallel()
			w := newWorkingDir(t, simulator.Script{}, "")
			w.keepJournal(c.store)
			w.storeRemotely()
			w.prepare(c.messages)
			var refused atomic.Bool
			w.remote.setOnWrite(func() bool {
				refused.Store(true)
				if c.kill {
					w.running.Load().signalGroup(syscall.SIGKILL)
				}
				return false
			})
			c.apply(w)
			w.remote.setOnWrite(nil)
			if !refused.Load() {
				t.Error("nothing was refused, so this proves nothing")
			}
			w.assertTakenOver(c.messages)
		})
	}
}

// The same with runs that end in any way at any moment.
func TestX09_state_from_before_any_moment(t *testing.T) {
	inRounds(t, 3, mode{store: namedFolder, endings: anyEnding, before: true})
}

func TestX10_S3_disk_is_wiped_at_any_moment(t *testing.T) {
	needsBucket(t)
	inRounds(t, 3, mode{store: bucket, endings: anyEnding, before: true, wiped: true})
}
