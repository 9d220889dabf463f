// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// secondInterrupt is a cell of X08's grid, in seconds: when the second signal
// comes after the first, and the responses after the requests. Between the two
// are the CLI's own limit of 2 s and what the provider does within it.
type secondInterrupt struct {
	gap, latency float64
	messages     bool
}

func secondInterrupts() (cells []secondInterrupt) {
	for _, gap := range []float64{0.3, 0.05, 1, 1.4, 1.6, 2.1, 3} {
		for _, latency := range []float64{0.8, 0.2, 1.4, 1.6, 2.1, 3} {
			cells = append(cells, secondInterrupt{gap, latency, false}, secondInterrupt{gap, latency, true})
		}
	}
	return cells
}

// Red without: the stop that makes an end disturbed, so that the entries stay.
func TestX08_second_interrupt(t *testing.T) {
	t.Parallel()
	inGrid(t, defaultFolder)
}

func TestX08_S3_second_interrupt(t *testing.T) {
	needsBucket(t)
	t.Parallel()
	inGrid(t, bucket)
}

func inGrid(t *testing.T, s store) {
	t.Helper()
	for _, cell := range everyNth(t, envRounds, 29, secondInterrupts()) {
		name := fmt.Sprintf("messages=%t gap=%v latency=%v", cell.messages, cell.gap, cell.latency)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cell.run(t, s)
		})
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func (cell secondInterrupt) run(t *testing.T, s store) {
	t.Helper()
	w := newWorkingDir(t, simulator.Script{}, jobs(canaryPrompt))
	w.keepJournal(s)
	if cell.messages {
		w.run("apply")
		w.write(jobs(canaryPrompt + " more"))
	}
	// The effect comes at once, so the service has accepted all.
	for _, kind := range []simulator.Kind{simulator.KindCreate, simulator.KindMessage} {
		w.sim.Inject(simulator.Fault{Kind: kind, Times: 3, AfterEffect: true, Delay: seconds(cell.latency)})
	}
	before := w.sent()
	p := w.start("apply")
	w.until("all POSTs are read", func() bool { return w.sent() == before+3 })
	p.signal(syscall.SIGINT)
	select {
	case <-p.done:
	case <-time.After(seconds(cell.gap)):
		p.signal(syscall.SIGINT)
	}
	first := p.wait()
	if w.stateTorn(cell.messages) {
		t.Skip("the CLI was ended while it wrote its state, which it empties first")
	}

	sent := w.sent()
	output, ok := w.try("apply -json")
	if w.sent() != sent {
		t.Errorf("the next apply sent %d requests again", w.sent()-sent)
	}
	takenOver, reported := count(output, createTakenOver, messageTakenOver), count(output, createUnknown, messageUnknown)
	t.Logf("%d taken over, %d reported as unknown", takenOver, reported)
	if ok != (reported == 0) {
		t.Errorf("%d outcomes reported as unknown, success %t:\n%s\nafter\n%s", reported, ok, output, first)
	}
	inState := map[string]bool{}
	for _, i := range w.state() {
		inState[i.ID] = true
		if i.Tainted {
			t.Errorf("%s is tainted", i.ID)
		}
	}
	want := 3
	if !cell.messages { // an unknown create leaves nothing in the state
		want -= reported
	}
	if len(inState) != want {
		t.Errorf("the state holds %d jobs, want %d: %d outcomes are unknown\n%s\nafter\n%s", len(inState), want, reported, output, first)
	}
	// Responses that come this long before the end of the drain are never unknown.
	if cell.latency+0.5 < cell.gap+1.5 && reported > 0 {
		t.Errorf("%d outcomes are unknown although the responses were in time", reported)
	}
	if reported == 0 {
		w.assertEachJobOnce()
	}
}
