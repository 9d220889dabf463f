// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// kind is one kind of rounds.
type kind struct {
	name   string
	stores []store
	cells  func(*testing.T) []round
}

var (
	unnamed   = []store{defaultFolder}
	oneBucket = []store{defaultFolder, bucket}
)

const longerThanDrain = 5 * time.Second // shutdownDrain

// Red without:
//   - X01: the detached context of a POST on its way.
//   - X02: the state saved before the wait; a warning, not an error, after an
//     interrupt. That the provider's part takes no 2 s is shown on fake clocks
//     (TestAction_A02_interrupted).
//   - X04: the claim before the POST, the id after it, Adopt in judge, the wait for the
//     response of a living sender; cliGone, cliGoneDrain, and each signal that main ignores.
//   - X08: the records that stay.
var kinds = []kind{
	{"X01_interrupt_while_POSTs_are_in_flight", unnamed, each(round{
		hold: true, late: slices.Repeat([]time.Duration{1500 * time.Millisecond}, 3), kept: true, awaited: true,
	}, whenPosted, pressedAlone)},
	{"X02_interrupt_in_the_wait", unnamed, each(round{hold: true, kept: true, awaited: true}, whenPolled, interrupts...)},
	{"X02_interrupt_at_any_moment", oneBucket, atAnyMoment(interrupts)},
	{"X04_kill_at_any_moment", oneBucket, atAnyMoment(kills)},
	// A plugin whose CLI is gone stays until the responses are on disk, although
	// nobody reads its log, and the next apply waits for them.
	{"X04_CLI_gone_while_POSTs_are_in_flight", unnamed, each(round{
		env: []string{"TF_LOG=DEBUG"}, late: []time.Duration{time.Second / 2, time.Second / 2, longerThanDrain}, awaited: true,
	}, whenPosted, terminalClosed, killedAlone)},
	{"X08_second_interrupt_at_any_moment", oneBucket, atAnyMoment(twice)},
}

// TestRounds prints what each round has shown.
func TestRounds(t *testing.T) {
	for _, k := range kinds {
		var cells []round
		for _, s := range k.stores {
			for _, r := range k.cells(t) {
				r.store = s
				cells = append(cells, r)
			}
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			for _, r := range everyNth(t, 2, inCI, cells) {
				t.Run(fmt.Sprintf("%s, %s", r.store, r.name), func(t *testing.T) {
					t.Parallel()
					r.run(t)
				})
			}
		})
	}
}

// ending is the signal that ends a run.
type ending struct {
	signal syscall.Signal
	group  bool // the plugin gets the signal too
	twice  bool
}

func (e ending) String() string {
	return map[bool]string{true: "group ", false: "CLI "}[e.group] + e.signal.String()
}

func (e ending) send(p *process) {
	if e.group {
		p.signalGroup(e.signal)
	} else {
		p.signal(e.signal)
	}
}

var (
	killedAlone    = ending{signal: syscall.SIGKILL} // the plugin is left behind
	pressedAlone   = ending{signal: syscall.SIGINT}
	terminalClosed = ending{signal: syscall.SIGHUP, group: true}

	kills      = []ending{killedAlone, {signal: syscall.SIGKILL, group: true}}
	interrupts = []ending{{signal: syscall.SIGINT, group: true}, {signal: syscall.SIGTERM}, pressedAlone, {signal: syscall.SIGTERM, group: true}}
	twice      = []ending{{signal: syscall.SIGINT, group: true, twice: true}, {signal: syscall.SIGINT, twice: true}}
)

// whenPosted and whenPolled end a run when all three requests are there.
func whenPosted(p *process) { p.awaitPOSTs(3) }
func whenPolled(p *process) { p.awaitPolls() }

// each is a round with each of the endings.
func each(r round, when func(*process), endings ...ending) func(*testing.T) []round {
	return func(*testing.T) (cells []round) {
		for _, e := range endings {
			r.name, r.disturb = e.String(), func(p *process) { when(p); e.send(p) }
			cells = append(cells, r)
		}
		return cells
	}
}

// atAnyMoment draws rounds whose run ends in any of some ways at any moment.
func atAnyMoment(endings []ending) func(*testing.T) []round {
	return func(t *testing.T) (drawn []round) {
		t.Helper()
		first := seed(t)
		for i := range harness.Number(t, envRounds, 2) {
			n, ways := int(i), len(endings)
			// Few rounds have many endings, each with both requests in turn.
			r := endings[n%ways].draw(rand.New(rand.NewPCG(first, i)))
			r.name, r.messages = fmt.Sprint(i), (n+n/ways)%2 == 1
			drawn = append(drawn, r)
		}
		return drawn
	}
}

func (e ending) draw(random *rand.Rand) round {
	within := func(limit time.Duration) time.Duration { return time.Duration(random.Int64N(int64(limit))) }
	latency := 200 * time.Millisecond
	if e.twice {
		latency = 3 * time.Second
	}
	// Slow responses, before or after the effect, widen the moments that matter.
	r := round{
		late: slices.Repeat([]time.Duration{within(latency)}, 3), effect: random.IntN(2) == 1,
		awaited: !e.twice && e.signal != syscall.SIGKILL,
	}
	atPOST, early, late, gap := e.twice || random.IntN(3) > 0, within(1200*time.Millisecond), within(700*time.Millisecond), within(3*time.Second)
	r.disturb = func(p *process) {
		if atPOST { // on a busy machine any other moment is too early
			p.awaitPOSTs(1)
			time.Sleep(late)
		} else {
			time.Sleep(100*time.Millisecond + early)
		}
		e.send(p)
		if e.twice {
			select {
			case <-p.done:
			case <-time.After(gap):
				e.send(p)
			}
		}
	}
	return r
}
