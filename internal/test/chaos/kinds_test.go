// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// kind is one kind of rounds.
type kind struct {
	name   string
	stores []store
	nth    int // cell that make test runs; 0: the rounds are at any moment, and it runs some
	cells  func(store) []round
	moment moments
}

var (
	folders   = []store{defaultFolder, namedFolder, bucket}
	unnamed   = []store{defaultFolder}
	anyDisk   = []store{namedFolder, bucket} // a named folder may be on another disk
	oneBucket = []store{defaultFolder, bucket}
)

// Red without:
//   - X01: the detached context of a POST on its way.
//   - X02: the state saved before the wait; a warning, not an error, after an
//     interrupt. That the provider's part takes no 2 s is shown on fake clocks
//     (checkStop in TestChaosFaults, TestAction_A02_interrupted).
//   - X04: the entry before the POST, the id after it, the takeover, the look at a
//     living orphan's lock; cliGone, cliGoneDrain, and each signal that main ignores.
//   - X07: a claim that only one can win, and the owner compared before it.
//   - X08: the stop that makes an end disturbed, so that the entries stay.
//   - X09, X10: the entries that stay until the state was seen; in the default
//     folder, without the stop and the lost connection that make an end disturbed.
var kinds = []kind{
	{name: "X01_interrupt_while_POSTs_are_in_flight", stores: unnamed, nth: 1, cells: interruptedPOSTs},
	{name: "X02_interrupt_in_the_wait", stores: unnamed, nth: 3, cells: interruptedWaits},
	{name: "X02_interrupt_at_any_moment", stores: oneBucket, moment: moments{endings: interrupts}},
	{name: "X04_kill_at_any_moment", stores: oneBucket, moment: moments{endings: kills}},
	{name: "X04_CLI_gone_while_POSTs_are_in_flight", stores: unnamed, nth: 1, cells: goneInFlight},
	{name: "X07_two_aliases_killed", stores: folders, nth: 2, cells: aliasesKilled},
	{name: "X08_second_interrupt", stores: oneBucket, nth: 29, cells: secondInterrupts},
	{name: "X09_state_from_before_comes_back", stores: folders, nth: 3, cells: func(s store) []round { return lastRuns(s, theState) }},
	{name: "X09_backend_does_not_store", stores: folders, nth: 4, cells: notStored},
	{name: "X09_state_from_before_any_moment", stores: []store{namedFolder}, moment: moments{anyEnding, theState}},
	{name: "X10_disk_is_wiped", stores: anyDisk, nth: 3, cells: func(s store) []round { return lastRuns(s, theDisk) }},
	{name: "X10_disk_is_wiped_any_moment", stores: []store{bucket}, moment: moments{anyEnding, theDisk}},
}

func TestRounds(t *testing.T) { playKinds(t, defaultFolder, namedFolder) }

func TestRounds_S3(t *testing.T) {
	needsBucket(t)
	playKinds(t, bucket)
}

// playKinds plays all kinds with some of the stores.
func playKinds(t *testing.T, stores ...store) {
	t.Helper()
	for _, k := range kinds {
		var cells []round
		for _, s := range k.stores {
			switch {
			case !slices.Contains(stores, s):
			case k.nth == 0:
				cells = append(cells, k.moment.draw(t, s)...)
			default:
				cells = append(cells, k.cells(s)...)
			}
		}
		if len(cells) == 0 {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			play(t, everyNth(t, envRounds, max(1, k.nth), cells))
		})
	}
}

func alone(s syscall.Signal) func(*process) { return func(p *process) { p.signal(s) } }
func group(s syscall.Signal) func(*process) { return func(p *process) { p.signalGroup(s) } }

// whenPosted and whenPolled disturb when all three requests are there.
func whenPosted(send func(*process)) func(*process) {
	return func(p *process) { p.awaitPOSTs(3); send(p) }
}

func whenPolled(send func(*process)) func(*process) {
	return func(p *process) { p.awaitPolls(); send(p) }
}

// signals are the ways in which a run is interrupted.
var signals = []struct {
	name string
	send func(*process)
}{
	{"SIGINT to the group", group(syscall.SIGINT)},
	{"SIGINT", alone(syscall.SIGINT)},
	{"SIGTERM to the group", group(syscall.SIGTERM)},
	{"SIGTERM", alone(syscall.SIGTERM)},
}

// delayed are the responses to three POSTs.
func delayed(afterEffect bool, delays ...time.Duration) (faults []simulator.Fault) {
	for _, d := range delays {
		faults = append(faults, simulator.Fault{Delay: d, AfterEffect: afterEffect})
	}
	return faults
}

func interruptedPOSTs(s store) []round {
	const latency = 1500 * time.Millisecond
	return []round{{name: "SIGINT", store: s, hold: true, posts: delayed(false, latency, latency, latency),
		disturb: whenPosted(alone(syscall.SIGINT)), kept: true, awaited: true}}
}

func interruptedWaits(s store) (cells []round) {
	for _, signal := range signals {
		cells = append(cells, round{name: signal.name, store: s, hold: true, disturb: whenPolled(signal.send), kept: true, awaited: true})
	}
	return cells
}

// A plugin whose CLI is gone stays until the responses are on disk, although
// nobody reads its log, and the next apply waits for them.
func goneInFlight(s store) (cells []round) {
	const longerThanDrain = 5 * time.Second // shutdownDrain
	for name, send := range map[string]func(*process){"killed": alone(syscall.SIGKILL), "terminal closed": group(syscall.SIGHUP)} {
		cells = append(cells, round{name: name, store: s, env: []string{"TF_LOG=DEBUG"},
			posts: delayed(false, time.Second/2, time.Second/2, longerThanDrain), disturb: whenPosted(send), awaited: true})
	}
	return cells
}

// Both processes of the next run see all entries.
func aliasesKilled(s store) []round {
	return []round{{name: string(s), store: s, hold: true, disturb: whenPolled(group(syscall.SIGKILL)), loss: theState, awaited: true, all: true,
		config: func(prompt string) string {
			return otherAlias + use("a", prompt) + use("b", prompt, "provider = agent.other", "count = 2")
		}}}
}

// secondInterrupts are gaps between two signals and latencies of the responses,
// in seconds, around the CLI's own limit of 2 s and what the provider does within it.
func secondInterrupts(s store) (cells []round) {
	for _, gap := range []float64{0.3, 0.05, 1, 1.4, 1.6, 2.1, 3} {
		for _, latency := range []float64{0.8, 0.2, 1.4, 1.6, 2.1, 3} {
			for _, messages := range []bool{false, true} {
				cells = append(cells, round{
					name: fmt.Sprintf("messages=%t gap=%v latency=%v", messages, gap, latency), store: s, messages: messages,
					posts:   delayed(true, seconds(latency), seconds(latency), seconds(latency)), // the service has accepted all
					disturb: whenPosted(func(p *process) { p.signalTwice((*process).signal, seconds(gap)) }),
					// Responses that come this long before the end of the drain are never unknown.
					awaited: latency+0.5 < gap+1.5,
				})
			}
		}
	}
	return cells
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// lastRuns are runs whose end the state does not show. The default folder
// remembers only what was disturbed.
func lastRuns(s store, l loss) (cells []round) {
	for i, end := range []struct {
		name string
		end  func(*process)
	}{
		{"undisturbed", nil},
		{"interrupted", alone(syscall.SIGINT)},
		{"interrupted twice", func(p *process) { p.signal(syscall.SIGINT); p.signal(syscall.SIGINT) }},
		{"CLI killed", alone(syscall.SIGKILL)},
		{"killed", group(syscall.SIGKILL)},
	} {
		r := round{store: s, loss: l, awaited: true, all: true}
		if end.end != nil {
			r.hold, r.disturb = true, whenPolled(end.end)
		} else if !s.remembers() {
			continue
		}
		for _, r.messages = range []bool{false, true} {
			if r.messages && i > 1 { // of messages two ends are enough
				break
			}
			r.name = fmt.Sprintf("%s, %s, messages=%t", s, end.name, r.messages)
			cells = append(cells, r)
		}
	}
	return cells
}

// notStored are such runs with a backend that responds 500, or a CLI that is
// killed in its write there.
func notStored(s store) (cells []round) {
	for _, r := range lastRuns(s, theWrites) {
		if strings.Contains(r.name, "killed") || strings.Contains(r.name, "twice") {
			continue
		}
		cells = append(cells, r)
		if !r.messages {
			r.loss, r.name = killed, r.name+", CLI killed in the write"
			cells = append(cells, r)
		}
	}
	return cells
}

// moments draws rounds whose run ends in any of some ways at any moment.
type moments struct {
	endings []ending
	loss    loss
}

// ending is a way in which a run ends.
type ending struct {
	send   func(*process, syscall.Signal)
	signal syscall.Signal // 0: it ends by itself
	twice  bool
}

var (
	kills = []ending{
		{send: (*process).signal, signal: syscall.SIGKILL}, // the CLI alone: the plugin is left behind
		{send: (*process).signalGroup, signal: syscall.SIGKILL},
	}
	interrupts = []ending{
		{send: (*process).signalGroup, signal: syscall.SIGINT},
		{send: (*process).signalGroup, signal: syscall.SIGINT, twice: true},
		{send: (*process).signal, signal: syscall.SIGTERM},
		{send: (*process).signal, signal: syscall.SIGINT},
		{send: (*process).signalGroup, signal: syscall.SIGTERM},
		{send: (*process).signal, signal: syscall.SIGINT, twice: true},
	}
	anyEnding = slices.Concat([]ending{{}}, kills, interrupts)
)

func (m moments) draw(t *testing.T, s store) (drawn []round) {
	t.Helper()
	first := seed(t)
	for i := range rounds(t, 3) {
		random := rand.New(rand.NewPCG(first, uint64(i)))
		// Few rounds have many endings, each with both requests in turn.
		r := m.endings[i%len(m.endings)].draw(random)
		r.name, r.store, r.loss = fmt.Sprintf("%s %d", s, i), s, m.loss
		r.messages = (i+i/len(m.endings))%2 == 1
		drawn = append(drawn, r)
	}
	return drawn
}

func (e ending) draw(random *rand.Rand) round {
	within := func(limit time.Duration) time.Duration { return time.Duration(random.Int64N(int64(limit))) }
	latency := 200 * time.Millisecond
	if e.twice {
		latency = 3 * time.Second
	}
	// Slow responses, before or after the effect, widen the moments that matter.
	latency = within(latency)
	r := round{posts: delayed(random.IntN(2) == 1, latency, latency, latency), awaited: !e.twice && e.signal != syscall.SIGKILL}
	atPOST, early, late, gap := e.twice || random.IntN(3) > 0, within(1200*time.Millisecond), within(700*time.Millisecond), within(3*time.Second)
	if e.signal == 0 {
		return r
	}
	r.disturb = func(p *process) {
		if atPOST { // on a busy machine any other moment is too early
			p.awaitPOSTs(1)
			time.Sleep(late)
		} else {
			time.Sleep(100*time.Millisecond + early)
		}
		if e.twice {
			p.signalTwice(e.send, gap)
		} else {
			e.send(p, e.signal)
		}
	}
	return r
}
