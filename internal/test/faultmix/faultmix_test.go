// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package faultmix plays a random mix of the faults of the matrix.
package faultmix

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
)

type attrs = fakecli.Attrs

const (
	// shortMix is how many faults every run of the tests injects; CHAOS_FAULTS asks for more.
	shortMix = 200
	// batch is how many modules are begun before the faults are counted again.
	batch = 4
)

// TestChaosFaults plays many users, whose jobs and messages hit a random mix of
// faults and interrupts on a fake clock, and compares what reached the service
// with what they asked for. CHAOS_FAULTS says how many faults, with a random
// seed; CHAOS_SEED repeats a run. A goroutine left behind ends the test in a panic.
//
// Seen red: with 5xx taken for "not sent" in classifyPost (sent again: duplicates),
// without the out.save before the wait in Create (lost ids), without the
// out.save of an unknown outcome in sendMessage (a message sent twice), with an
// interrupt as an error in cutShort (tainted), without WithoutCancel in
// delivery.detach (lost ids), and without key.mask in Client.newError (key bytes).
func TestChaosFaults(t *testing.T) {
	t.Setenv("TF_LOG", "TRACE")
	wanted, seed := shortMix, uint64(1)
	if os.Getenv("CHAOS_FAULTS") != "" {
		wanted, seed = int(harness.Number(t, "CHAOS_FAULTS", shortMix)), rand.Uint64()
	}
	seed = harness.Number(t, "CHAOS_SEED", seed)
	fmt.Printf("CHAOS_SEED=%d CHAOS_FAULTS=%d\n", seed, wanted) // at once: a run may end in a panic
	sum := &tally{faults: map[string]int{}, numbers: map[string]int{}}
	for first := uint64(0); sum.injected() < wanted && !t.Failed(); first += batch {
		t.Run("modules", func(t *testing.T) {
			for n := first; n < first+batch; n++ {
				t.Run(strconv.FormatUint(n, 10), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { newModule(t, rand.New(rand.NewPCG(seed, n)), sum).play() })
				})
			}
		})
	}
	t.Log(sum)
	if t.Failed() {
		t.Logf("again with CHAOS_SEED=%d CHAOS_FAULTS=%d", seed, wanted)
		return
	}
	for _, row := range slices.Concat(postRows, getRows) {
		if got, least := sum.faults[row.name], wanted/200; wanted >= 1000 && got < least { // few faults are no mix
			t.Errorf("%q was played %d times, want at least %d", row.name, got, least)
		}
	}
}

// What must never happen; each is counted.
const (
	duplicates = "duplicates"
	lostIDs    = "lost ids"
	tainted    = "tainted without a failed job"
	keyBytes   = "key bytes found"
	other      = "other"
)

// What else is counted.
const (
	jobs     = "jobs started"
	messages = "messages delivered"
	reported = "outcomes reported as unknown"
)

// tally adds up what all modules have shown.
type tally struct {
	mu      sync.Mutex
	faults  map[string]int // by row; a spell of one fault counts once
	numbers map[string]int
}

func (s *tally) fault(row string) { s.add(s.faults, row, 1) }

func (s *tally) number(name string, n int) { s.add(s.numbers, name, n) }

func (s *tally) add(to map[string]int, name string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to[name] += n
}

func (s *tally) injected() (n int) {
	for times := range maps.Values(s.faults) {
		n += times
	}
	return n
}

func (s *tally) String() string {
	var b strings.Builder
	for _, row := range slices.Sorted(maps.Keys(s.faults)) {
		fmt.Fprintf(&b, "\n%6d  %s", s.faults[row], row)
	}
	fmt.Fprintf(&b, "\n%6d  faults injected (a spell of one fault counts once)\n", s.injected())
	for _, name := range []string{jobs, messages, reported, duplicates, lostIDs, tainted, keyBytes, other} {
		fmt.Fprintf(&b, "\n%6d  %s", s.numbers[name], name)
	}
	return b.String()
}
