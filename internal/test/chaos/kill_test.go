// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// rounds is how many kills and how many interrupts are tried; CHAOS_CLI asks
// for more than every commit needs.
func rounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("CHAOS_CLI")
	if text == "" {
		return 20
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("CHAOS_CLI: %v", err)
	}
	return n
}

// seed is CHAOS_SEED, or a new one; it is printed, so that a run can be repeated.
func seed(t *testing.T) uint64 {
	t.Helper()
	s := rand.Uint64()
	if text := os.Getenv("CHAOS_SEED"); text != "" {
		var err error
		if s, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("CHAOS_SEED: %v", err)
		}
	}
	t.Logf("CHAOS_SEED=%d", s)
	return s
}

func jobs(prompt string) string {
	return fmt.Sprintf("resource \"agent_job\" \"test\" {\n  count  = 3\n  prompt = %q\n}\n", prompt)
}

// tally adds up what the rounds have shown.
//
// unpersisted are jobs that the provider had told the CLI of, and had ended
// well, before the CLI was killed: OpenTofu, and every remote backend, persists
// the state after that, and nothing of ours is there any more to remember them.
//
// torn are rounds in which the CLI was killed while it wrote its own state, which
// Terraform empties first: all jobs in it are gone, however long ago they ended.
type tally struct{ rounds, reported, adopted, unpersisted, torn, lost, duplicates, tainted int }

func (s *tally) add(o tally) {
	s.rounds += o.rounds
	s.reported += o.reported
	s.adopted += o.adopted
	s.unpersisted += o.unpersisted
	s.torn += o.torn
	s.lost += o.lost
	s.duplicates += o.duplicates
	s.tainted += o.tainted
}

// endings are the ways in which a run ends before its time.
var endings = map[string][]func(*process){
	"kill": {
		func(p *process) { p.signal(syscall.SIGKILL) },      // the CLI alone: the plugin is left behind
		func(p *process) { p.signalGroup(syscall.SIGKILL) }, // both
	},
	"interrupt": {
		func(p *process) { p.signal(syscall.SIGINT) },
		func(p *process) { p.signalGroup(syscall.SIGINT) },
		func(p *process) { p.signal(syscall.SIGTERM) },
		func(p *process) { p.signalGroup(syscall.SIGTERM) },
	},
}

// Red without: the intent before the POST, the id after it, the adoption, the
// look at a living orphan's journal, or the orphan's own end.
func TestX04_kill_at_any_moment(t *testing.T) {
	sum := inRounds(t, endings["kill"])
	if sum.reported > sum.rounds {
		t.Errorf("more unknown outcomes than one in each round")
	}
}

// A plugin whose CLI is gone stays until the answers are on disk, although
// nobody reads its log, and the next apply waits for them. Red without:
// parentGone, orphanDrain, answerGrace, and each signal that main ignores.
func TestX04_CLI_gone_while_POSTs_are_in_flight(t *testing.T) {
	for name, end := range map[string]func(*process){
		"killed":          func(p *process) { p.signal(syscall.SIGKILL) },
		"terminal closed": func(p *process) { p.signalGroup(syscall.SIGHUP) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, simulator.Script{}, "resource \"agent_job\" \"test\" {\n  count  = 2\n  prompt = \"write\"\n}\n")
			w.env = []string{"TF_LOG=DEBUG"}
			w.sim.Inject(
				simulator.Fault{Kind: simulator.KindCreate, Delay: 500 * time.Millisecond},
				simulator.Fault{Kind: simulator.KindCreate, Delay: 5 * time.Second}, // longer than shutdownDrain
			)
			p := w.startApply()
			w.until("the POSTs are read", func() bool { return w.sim.Counts().Create == 2 })
			end(p)
			<-p.done
			w.env = nil // and at once
			w.applied()
			w.posts(2, 0)
			w.assertEachJobOnce()
		})
	}
}

// A plugin whose CLI is gone does not live on for a refresh. Red without: parentGone.
func TestX04_CLI_gone_while_a_job_is_read(t *testing.T) {
	w := newWorld(t, simulator.Script{}, oneJob)
	w.applied()
	sockets, err := os.MkdirTemp("", "x04") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(sockets) }()
	w.env = []string{"TMPDIR=" + sockets}
	read := w.sim.Counts().Get
	w.sim.Inject(simulator.Fault{Kind: simulator.KindGet, Delay: time.Minute})
	p := w.start("plan", "-no-color")
	w.until("the job is read", func() bool { return w.sim.Counts().Get > read })
	p.signal(syscall.SIGKILL)
	<-p.done
	listening := func() bool {
		files, err := filepath.Glob(filepath.Join(sockets, "plugin*"))
		if err != nil || len(files) != 1 {
			t.Fatalf("sockets: %q, %v", files, err)
		}
		conn, err := net.Dial("unix", files[0])
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}
	w.until("the plugin has ended", func() bool { return !listening() })
}

// The moments of X01 to X03, spread over the whole run.
func TestX02_interrupt_at_any_moment(t *testing.T) {
	if sum := inRounds(t, endings["interrupt"]); sum.reported > 0 {
		t.Errorf("%d outcomes were unknown after an interrupt", sum.reported)
	}
}

// inRounds ends many runs, two at a time, each at a moment of its own.
func inRounds(t *testing.T, how []func(*process)) tally {
	t.Helper()
	var mu sync.Mutex
	var sum tally
	first := seed(t)
	t.Run("rounds", func(t *testing.T) {
		for i := range rounds(t) {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				got := endAtAnyMoment(t, rand.New(rand.NewPCG(first, uint64(i))), how)
				mu.Lock()
				defer mu.Unlock()
				sum.add(got)
			})
		}
	})
	t.Logf("%+v", sum)
	return sum
}

// toldButNotPersisted are the jobs whose end the killed CLI had printed although
// the state does not hold them so, where the plugin had ended well: it has left
// no journal.
func (w *world) toldButNotPersisted(output string) map[string]bool {
	if len(w.journals()) > 0 {
		return nil
	}
	text, _ := os.ReadFile(filepath.Join(w.dir, "terraform.tfstate"))
	told := map[string]bool{}
	for _, j := range w.sim.Jobs() {
		said := slices.ContainsFunc(strings.Split(output, "\n"), func(line string) bool {
			return strings.Contains(line, "complete after") && strings.Contains(line, "[id="+j.ID+"]")
		})
		if said && (!strings.Contains(string(text), j.ID) || !strings.Contains(string(text), strconv.Quote(j.Prompts[len(j.Prompts)-1]))) {
			told[j.ID] = true
		}
	}
	return told
}

// moment is a random time below limit.
func moment(random *rand.Rand, limit time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(limit)))
}

// endAtAnyMoment ends a run of creates or messages, applies until all is well,
// and compares what was asked for with what reached the service.
func endAtAnyMoment(t *testing.T, random *rand.Rand, how []func(*process)) (sum tally) {
	t.Helper()
	w := newWorld(t, simulator.Script{Duration: 300 * time.Millisecond}, jobs("write"))
	messages := random.IntN(2) == 1
	if messages {
		w.applied()
		w.write(jobs("write more"))
	}
	// Slow answers, before and after the effect, widen the moments that matter.
	w.sim.Inject(
		simulator.Fault{Kind: simulator.KindCreate, Times: 3, Delay: moment(random, 200*time.Millisecond), AfterEffect: random.IntN(2) == 1},
		simulator.Fault{Kind: simulator.KindMessage, Times: 3, Delay: moment(random, 200*time.Millisecond), AfterEffect: random.IntN(2) == 1},
	)
	p := w.startApply()
	time.Sleep(100*time.Millisecond + moment(random, 1200*time.Millisecond))
	how[random.IntN(len(how))](p)
	<-p.done
	text, _ := os.ReadFile(filepath.Join(w.dir, "terraform.tfstate"))
	if !json.Valid(text) && (messages || len(text) > 0) { // of creates it is empty until one has ended
		return tally{rounds: 1, torn: 1}
	}
	unpersisted := w.toldButNotPersisted(p.out.String())

	reported, adopted := 0, 0
	for try := 0; ; try++ {
		output, ok := w.apply()
		reported += strings.Count(output, "Outcome of an earlier create unknown") + strings.Count(output, "Outcome of message to agent job unknown")
		adopted += strings.Count(output, "of an earlier run")
		if ok {
			break
		}
		if try == 5 {
			t.Fatalf("no apply succeeds:\n%s", output)
		}
	}
	sum = tally{rounds: 1, reported: reported, adopted: adopted, unpersisted: len(unpersisted)}

	state := map[string]bool{}
	for _, i := range w.state() {
		if i.Tainted {
			sum.tainted++
			t.Errorf("%s is tainted", i.ID)
		}
		state[i.ID] = true
	}
	if len(state) != 3 {
		t.Errorf("the state holds %d jobs, want 3", len(state))
	}
	for _, j := range w.sim.Jobs() {
		if sent := len(j.Prompts) - 1; messages && sent > 1 && !unpersisted[j.ID] {
			sum.duplicates += sent - 1
			t.Errorf("%s got the message %d times", j.ID, sent)
		}
	}
	// A job that the state does not hold must have been reported.
	allowed := 3
	if !messages {
		allowed += reported + len(unpersisted)
	}
	if started := len(w.sim.Jobs()); started > allowed {
		sum.lost += started - allowed
		t.Errorf("%d jobs were started for 3; %d outcomes were reported as unknown, %d not persisted", started, reported, len(unpersisted))
	}
	if left := w.journals(); len(left) > 0 {
		t.Errorf("the crash journal is left: %v", left)
	}
	return sum
}
