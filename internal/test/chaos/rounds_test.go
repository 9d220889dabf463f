// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// round is a run of three creates or messages that a signal ends, and the runs that follow until nothing fails.
type round struct {
	name     string
	when     func(*process) // waits until the moment of the end
	messages bool
	env      []string
	late     []time.Duration // the responses to its POSTs, in the order in which they arrive
	effect   bool            // the service has accepted them before
	hold     bool            // no wait finishes during the run
	ends     []ending        // a round for each

	awaited bool // the provider can await every response, so no outcome is unknown
	kept    bool // after the run the state holds all jobs, active
}

// ending is the signal that ends a run.
type ending struct {
	signal syscall.Signal
	group  bool          // the plugin gets the signal too
	again  time.Duration // that long after the first one comes a second one; 0: none
}

func (e ending) String() string {
	return map[bool]string{true: "group ", false: "CLI "}[e.group] + e.signal.String()
}

func (e ending) send(p *process) {
	p.signal(e.signal, e.group)
	if e.again > 0 {
		select {
		case <-p.done:
		case <-time.After(e.again):
			p.signal(e.signal, e.group)
		}
	}
}

const longerThanDrain = 5 * time.Second // shutdownDrain

// TestRounds plays a round for each signal, and each moment at which it matters. What explore cuts at every step is here for what only
// a real CLI and real signals show. make chaos repeats it, because some moments are random.
//
// Red without:
//   - X01: the detached context of a POST on its way.
//   - X02: the state saved before the wait; a warning, not an error, after an
//     interrupt. That the provider's part takes no 2 s is shown on fake clocks
//     (TestAction_A02_interrupted).
//   - X04: the claim before the POST, the id after it, Adopted in judge, the wait for the
//     response of a living sender; cliGone, cliGoneDrain, and each signal that main ignores.
//   - X08: the records that stay.
func TestRounds(t *testing.T) {
	late := func(d time.Duration) []time.Duration { return slices.Repeat([]time.Duration{d}, 3) }
	posted := func(p *process) { p.awaitPOSTs(3) }
	polled := func(p *process) { p.awaits("all are polled", func() bool { return p.sim.Counts().Get >= 3 }) }
	randomly := func(p *process) { // on a busy machine any moment before a POST is too early
		p.awaitPOSTs(1)
		time.Sleep(rand.N(700 * time.Millisecond))
	}
	interrupt, interruptAll := ending{signal: syscall.SIGINT}, ending{signal: syscall.SIGINT, group: true}
	terminate, terminateAll := ending{signal: syscall.SIGTERM}, ending{signal: syscall.SIGTERM, group: true}
	kill, killAll := ending{signal: syscall.SIGKILL}, ending{signal: syscall.SIGKILL, group: true}
	hangUp := ending{signal: syscall.SIGHUP, group: true} // a terminal is closed
	twice, twiceAll := interrupt, interruptAll
	twice.again, twiceAll.again = rand.N(3*time.Second), rand.N(3*time.Second)

	killed := round{name: "X04 at any moment", when: randomly, late: late(rand.N(time.Second)), effect: true, ends: []ending{kill}}
	interruptedTwice := round{name: "X08 twice", when: randomly, late: late(rand.N(3 * time.Second)), ends: []ending{twiceAll}}
	killedMessages, interruptedMessages := killed, interruptedTwice
	killedMessages.messages, killedMessages.ends = true, []ending{killAll}
	interruptedMessages.messages, interruptedMessages.ends = true, []ending{twice}
	for _, r := range []round{
		{
			name: "X01 POSTs in flight", when: posted, hold: true, late: late(1500 * time.Millisecond), kept: true, awaited: true,
			ends: []ending{interrupt},
		},
		{
			name: "X02 in the wait", when: polled, hold: true, kept: true, awaited: true,
			ends: []ending{interrupt, interruptAll, terminate, terminateAll},
		},
		{ // The plugin stays until the responses are on disk, although nobody reads its log, and the next apply waits for them.
			name: "X04 CLI gone, POSTs in flight", when: posted, env: []string{"TF_LOG=DEBUG"},
			late: []time.Duration{time.Second / 2, time.Second / 2, longerThanDrain}, awaited: true, ends: []ending{hangUp, kill},
		},
		killed, killedMessages, interruptedTwice, interruptedMessages,
	} {
		for _, end := range r.ends {
			t.Run(r.name+", "+end.String(), func(t *testing.T) {
				t.Parallel()
				r.run(t, end)
			})
		}
	}
}

// run compares what was requested with what the service and the state have.
func (r round) run(t *testing.T, end ending) {
	w := newWorkingDir(t, use("test", canaryPrompt, "count = 3")) // with the same prompt, each with its own name
	if r.messages {
		w.run("apply")
		w.write(use("test", canaryPrompt+" more", "count = 3"))
	}
	before := w.stateText()
	output := r.disturbed(w, end)
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
	reported := w.applyUntilGreen()
	t.Logf("%d reported", reported)
	if r.awaited && reported > 0 {
		t.Errorf("%d outcomes were unknown although the provider could await the responses", reported)
	}
	ids := map[string]bool{}
	for _, i := range w.state() {
		ids[i.ID] = true
		if i.Tainted {
			t.Errorf("%s is tainted", i.ID)
		}
	}
	if len(ids) != 3 {
		t.Errorf("the state holds the jobs %v, want 3", ids)
	}
	for _, j := range w.sim.Jobs() {
		if sent := len(j.Prompts) - 1; sent > 1 {
			t.Errorf("%s got the message %d times", j.ID, sent)
		}
	}
	allowed := 3
	if !r.messages { // a job that the state does not hold must have been reported
		allowed += reported
	}
	if started := len(w.sim.Jobs()); started > allowed {
		t.Errorf("%d jobs were started for 3; %d outcomes were reported as unknown", started, reported)
	}
	w.run("plan -detailed-exitcode") // fails unless there is nothing to do
}

// disturbed is the run that is disturbed.
func (r round) disturbed(w *workingDir, end ending) (output string) {
	w.t.Helper()
	if r.hold {
		w.sim.Inject(simulator.Fault{Kind: simulator.KindGet, Times: -1, Delay: time.Hour})
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
	end.send(p)
	output = p.wait()
	w.env = nil
	w.sim.ClearFaults()
	return output
}

// applyUntilGreen applies until nothing fails, and gives up what blocks it. It returns how many unknown outcomes were reported.
func (w *workingDir) applyUntilGreen() (reported int) {
	w.t.Helper()
	for range 5 {
		output, ok := w.try("apply -json")
		creates, messages := unknown(output, "Outcome of agent job create unknown"), unknown(output, "Outcome of message to agent job unknown")
		reported += len(creates) + len(messages)
		if ok {
			return reported
		}
		if len(creates) > 0 {
			w.env = append(w.env, "AGENT_JOURNAL_FORGET="+strings.Join(creates, ","))
		}
	}
	w.t.Fatal("the apply fails")
	return 0
}

// unknown are the ids of the requests that errors with this summary name. Only with -json does a CLI show each of several.
func unknown(output, summary string) (ids []string) {
	for line := range strings.Lines(output) {
		var message struct {
			Diagnostic struct{ Severity, Summary, Detail string }
		}
		d := &message.Diagnostic
		if json.Unmarshal([]byte(line), &message) == nil && d.Summary == summary && d.Severity == "error" {
			ids = append(ids, regexp.MustCompile(`AGENT_JOURNAL_FORGET=(\w+)|$`).FindStringSubmatch(d.Detail)[1])
		}
	}
	return ids
}
