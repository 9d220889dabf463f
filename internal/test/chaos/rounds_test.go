// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// tally counts what the rounds have shown.
//
// "unpersisted" are requests in the default folder whose outcome the provider had
// handed to the CLI, and had ended well, before the CLI was ended: OpenTofu, and
// every remote backend, persists the state after that, and nothing of ours is
// there any more to remember them. A named journal keeps them.
//
// "torn" are rounds with the default folder in which the CLI was killed while it
// wrote its state, which Terraform empties first: all jobs in it are gone,
// however long ago they finished.
type tally map[string]int

// mode says what becomes of the runs in some rounds.
type mode struct {
	store   store
	endings []ending
	before  bool // the state from before the run comes back
	wiped   bool // and nothing else on the disk does
}

// ending is a way in which a run ends.
type ending struct {
	end func(*process, *rand.Rand)
	// cut is an end that does not let the provider await a response.
	cut bool
	// latency is the longest between a POST and its response.
	latency time.Duration
}

// single is one signal at any moment.
func single(send func(*process, syscall.Signal), signal syscall.Signal) ending {
	return ending{cut: signal == syscall.SIGKILL, latency: 200 * time.Millisecond, end: func(p *process, random *rand.Rand) {
		if random.IntN(3) == 0 {
			time.Sleep(100*time.Millisecond + moment(random, 1200*time.Millisecond))
		} else { // on a busy machine that is too early
			p.awaitPOST()
			time.Sleep(moment(random, 700*time.Millisecond))
		}
		send(p, signal)
	}}
}

// twice interrupts while POSTs are in flight, and again 0 to 3 s later.
func twice(send func(*process, syscall.Signal)) ending {
	return ending{cut: true, latency: 3 * time.Second, end: func(p *process, random *rand.Rand) {
		p.awaitPOST()
		time.Sleep(moment(random, 500*time.Millisecond))
		send(p, syscall.SIGINT)
		select {
		case <-p.done:
		case <-time.After(moment(random, 3*time.Second)):
			send(p, syscall.SIGINT)
		}
	}}
}

// awaitPOST waits until the service has read a POST of the command.
func (p *process) awaitPOST() {
	p.until("a POST is read", func() bool { return p.sent() > p.sentBefore || p.ended() })
}

var (
	kills = []ending{
		single((*process).signal, syscall.SIGKILL), // the CLI alone: the plugin is left behind
		single((*process).signalGroup, syscall.SIGKILL),
	}
	interrupts = []ending{
		single((*process).signalGroup, syscall.SIGINT),
		twice((*process).signalGroup),
		single((*process).signal, syscall.SIGTERM),
		single((*process).signal, syscall.SIGINT),
		single((*process).signalGroup, syscall.SIGTERM),
		twice((*process).signal),
	}
	undisturbed = ending{latency: 200 * time.Millisecond, end: func(*process, *rand.Rand) {}}
	anyEnding   = slices.Concat([]ending{undisturbed}, kills, interrupts)
)

// inRounds ends many runs, each at a moment of its own.
func inRounds(t *testing.T, few int, m mode) {
	t.Helper()
	var mu sync.Mutex
	sum := tally{}
	first := seed(t)
	t.Run("rounds", func(t *testing.T) {
		for i := range rounds(t, few) {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				got := endAtAnyMoment(t, i, rand.New(rand.NewPCG(first, uint64(i))), m)
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

// moment is a random time below limit.
func moment(random *rand.Rand, limit time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(limit)))
}

// endAtAnyMoment ends a run of creates or messages, applies until all is well,
// and compares what was asked for with what reached the service.
func endAtAnyMoment(t *testing.T, round int, random *rand.Rand, m mode) tally {
	t.Helper()
	sum := tally{"rounds": 1}
	w := newWorkingDir(t, quick, jobs(canaryPrompt))
	w.keepJournal(m.store)
	// Few rounds have many endings, each with both requests in turn.
	how, messages := m.endings[round%len(m.endings)], (round+round/len(m.endings))%2 == 1
	if messages {
		w.run("apply")
		w.write(jobs(canaryPrompt + " more"))
	}
	before := w.stateText()
	// Slow responses, before and after the effect, widen the moments that matter.
	for _, kind := range []simulator.Kind{simulator.KindCreate, simulator.KindMessage} {
		w.sim.Inject(simulator.Fault{Kind: kind, Times: 3, Delay: moment(random, how.latency), AfterEffect: random.IntN(2) == 1})
	}
	p := w.start("apply")
	how.end(p, random)
	output := p.wait()
	story := []string{output, w.journalText()}
	defer func() {
		if t.Failed() {
			t.Logf("what happened:\n%s", strings.Join(story, "\n--- "))
		}
	}()
	switch {
	case m.before:
		w.putBack(before, m.wiped)
		plan, ok := w.try("plan -json")
		if !ok {
			t.Errorf("no plan with the state from before")
		}
		story = append(story, string(before), plan, w.journalText())
	case w.stateTorn(messages):
		sum["torn"] = 1
		return sum
	}
	handed := w.handedOver(output)
	if m.before && len(handed) > 0 {
		t.Fatal("a named journal has forgotten what was handed over")
	}
	sum["unpersisted"] = len(handed)

	for try := 0; ; try++ {
		output, ok := w.try("apply -json")
		story = append(story, output)
		sum["reported"] += count(output, createUnknown, messageUnknown)
		sum["taken over"] += count(output, createTakenOver, messageTakenOver)
		if ok {
			break
		}
		if try == 5 {
			t.Fatal("no apply succeeds")
		}
	}
	if sum["reported"] > 0 && !how.cut {
		t.Errorf("%d outcomes were unknown although the provider could await the responses", sum["reported"])
	}
	sum.check(w, messages, handed)
	w.assertNothingToDo()
	return sum
}

// check compares what was asked for with what the service and the state have.
func (s tally) check(w *workingDir, messages bool, handed map[string]bool) {
	w.t.Helper()
	state := map[string]bool{}
	for _, i := range w.state() {
		if i.Tainted {
			s["tainted"]++
			w.t.Errorf("%s is tainted", i.ID)
		}
		state[i.ID] = true
	}
	if len(state) != 3 {
		w.t.Errorf("the state holds %d jobs, want 3", len(state))
	}
	for _, j := range w.sim.Jobs() {
		if sent := len(j.Prompts) - 1; messages && sent > 1 && !handed[j.ID] {
			s["duplicates"] += sent - 1
			w.t.Errorf("%s got the message %d times", j.ID, sent)
		}
	}
	// A job that the state does not hold must have been reported.
	allowed := 3
	if !messages {
		allowed += s["reported"] + len(handed)
	}
	if started := len(w.sim.Jobs()); started > allowed {
		s["lost"] += started - allowed
		w.t.Errorf("%d jobs were started for 3; %d outcomes were reported as unknown, %d not persisted", started, s["reported"], len(handed))
	}
}
