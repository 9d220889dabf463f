// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"
)

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
	send := p.signal
	if e.group {
		send = p.signalGroup
	}
	send(e.signal)
	if e.again > 0 {
		select {
		case <-p.done:
		case <-time.After(e.again):
			send(e.signal)
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

	inFlight := round{name: "X01 POSTs in flight", when: posted, hold: true, late: late(1500 * time.Millisecond), kept: true, awaited: true}
	inWait := round{name: "X02 in the wait", when: (*process).awaitPolls, hold: true, kept: true, awaited: true}
	killed := round{name: "X04 at any moment", when: randomly, late: late(rand.N(time.Second)), effect: true}
	// A plugin whose CLI is gone stays until the responses are on disk, although nobody reads its log, and the next apply waits for them.
	gone := round{
		name: "X04 CLI gone, POSTs in flight", when: posted, env: []string{"TF_LOG=DEBUG"},
		late: []time.Duration{time.Second / 2, time.Second / 2, longerThanDrain}, awaited: true,
	}
	interruptedTwice := round{name: "X08 twice", when: randomly, late: late(rand.N(3 * time.Second))}
	for _, r := range []round{
		inFlight.by(interrupt),
		inWait.by(interrupt), inWait.by(interruptAll), inWait.by(terminate), inWait.by(terminateAll),
		killed.by(kill), killed.by(killAll).messaging().inBucket(),
		gone.by(hangUp), gone.by(kill),
		interruptedTwice.by(twiceAll), interruptedTwice.by(twice).messaging().inBucket(),
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.run(t)
		})
	}
}

// by is a round that ends like this.
func (r round) by(e ending) round {
	r.name, r.end = r.name+", "+e.String(), e
	return r
}

func (r round) messaging() round { r.messages = true; return r }
func (r round) inBucket() round  { r.bucket = true; return r }
