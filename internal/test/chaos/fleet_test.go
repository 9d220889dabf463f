// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

// A run of thirty creates or messages is killed at any moment, also while a rate limit pauses it. What waited for its
// turn was not sent, and is not taken for sent: no such create is unknown, and every message is delivered once. Two
// moments are too short for any record: between the write that says that the request is about to be sent (Sent) and its first
// byte, and between a 429 on its way and its arrival.
//
// Red without: the claim at the connection (delivery.connect), written before the slot or the pause; Unsent in settle.
func TestFleet_X20(t *testing.T) {
	t.Parallel()
	rounds := harness.Number(t, envRounds, 2)
	moments := rand.New(rand.NewPCG(seed(t), 20))
	for _, kind := range []simulator.Kind{simulator.KindCreate, simulator.KindMessage} {
		for _, limit := range []string{"no limit", "a limit"} {
			for range rounds {
				moment := time.Duration(moments.IntN(1200)) * time.Millisecond
				t.Run(fmt.Sprintf("%s, %s, %v", kind, limit, moment), func(t *testing.T) {
					t.Parallel()
					killFleet(t, kind, limit == "a limit", moment)
				})
			}
		}
	}
}

// claims is how many requests were about to be sent, or sent, and have no outcome in the journal.
func (w *workingDir) claims() (n int) {
	w.t.Helper()
	for _, text := range w.records() {
		var r journal.Record
		if json.Unmarshal([]byte(text), &r) == nil && r.Claim != nil && !r.Claim.Unsent { // else it is not whole
			n++
		}
	}
	return n
}

func killFleet(t *testing.T, kind simulator.Kind, isLimited bool, moment time.Duration) {
	const size = 30
	w := newWorkingDir(t, simulator.Script{Duration: 3 * time.Second}, "") // so that later runs see it active
	w.args, w.env = "-parallelism=30", []string{"AGENT_MAX_NEW_JOBS=1000", "AGENT_MAX_MESSAGES=1000"}
	fleet := func(prompt string) { w.write(use("test", prompt+" ${count.index}", fmt.Sprint("count = ", size))) }
	prompts := []string{"Write page "}
	fleet("Write page")
	if kind == simulator.KindMessage {
		w.run("apply")
		fleet("Write page again")
		prompts = append(prompts, "Write page again ")
	}
	last := prompts[len(prompts)-1]
	if isLimited {
		w.sim.Inject(simulator.Fault{Kind: kind, Skip: 4, Times: 20, Status: 429, RetryAfter: "1"})
	}
	w.sim.Inject(simulator.Fault{Kind: kind, Times: -1, Delay: 100 * time.Millisecond, AfterEffect: true})
	p := w.start("apply")
	p.awaitPOSTs(1)
	time.Sleep(moment)
	p.signalGroup(syscall.SIGKILL)
	p.wait()
	if text := w.stateText(); !json.Valid(text) && (len(text) > 0 || kind == simulator.KindMessage) {
		t.Skip("the CLI was killed while it wrote its state, which it empties first")
	}
	sent, refused := map[string]bool{}, map[string]bool{}
	for _, r := range w.sim.Requests() {
		if r.Kind == kind {
			sent[r.Prompt], refused[r.Prompt] = true, r.Status == http.StatusTooManyRequests
		}
	}
	claims := w.claims()
	w.sim.ClearFaults()
	unknown, unsent, lost := 0, 0, 0
	for try := range 3 {
		output, ok := w.try("apply -json")
		if ok {
			break
		}
		for _, d := range diagnostics(output, createUnknown, messageUnknown) {
			if !sent[last+regexp.MustCompile(`\d+`).FindString(d.Address)] {
				t.Logf("%s was not sent, but its outcome is unknown", d.Address)
				unsent++
			}
		}
		n := count(output, createUnknown)
		if unknown += n; n > 0 {
			w.forget(output)
		}
		if try == 2 {
			t.Fatalf("the apply fails:\n%s", output)
		}
	}
	delivered := map[string]int{}
	for _, j := range w.sim.Jobs() {
		for _, prompt := range j.Prompts {
			delivered[prompt]++
		}
	}
	for _, prompt := range prompts {
		for i := range size {
			text := prompt + strconv.Itoa(i)
			n, most := delivered[text], 1+min(unknown, 1)
			switch {
			case n == 0 && kind == simulator.KindMessage && refused[text]:
			case n == 0 && kind == simulator.KindMessage && !sent[text]:
				lost++
			case n < 1 || n > most:
				t.Errorf("%q was delivered %d times, want 1 to %d", text, n, most)
			}
		}
	}
	if unsent > claims || lost > unsent {
		t.Errorf("%d unsent outcomes are unknown, and %d messages are lost; at most %d can have been about to be sent", unsent, lost, claims)
	}
	if unknown == 0 && len(w.sim.Jobs()) != size || len(w.sim.Jobs()) > size+unknown {
		t.Errorf("%d jobs, want %d; %d were unknown", len(w.sim.Jobs()), size, unknown)
	}
}
