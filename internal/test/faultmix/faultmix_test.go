// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package faultmix plays a random mix of the faults of the matrix.
package faultmix

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

const (
	// shortMix is how many faults every run of the tests injects; CHAOS_FAULTS asks for more.
	shortMix = 300
	// batch is how many modules are begun before the faults are counted again.
	batch = 8
)

// TestChaosFaults plays many users, whose jobs and messages meet a random mix of
// faults and interrupts on a fake clock, and holds what reached the service
// against what they asked for. CHAOS_FAULTS says how many faults, with a random
// seed; CHAOS_SEED repeats a run.
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
		wanted, seed = int(chaosNumber(t, "CHAOS_FAULTS", shortMix)), rand.Uint64()
	}
	seed = chaosNumber(t, "CHAOS_SEED", seed)
	fmt.Printf("CHAOS_SEED=%d CHAOS_FAULTS=%d\n", seed, wanted) // at once: a run may end in a panic
	before := goleak.IgnoreCurrent()
	sum := newTally()
	for first := uint64(0); sum.injected() < wanted && !t.Failed(); first += batch {
		t.Run("modules", func(t *testing.T) {
			for n := first; n < first+batch; n++ {
				t.Run(strconv.FormatUint(n, 10), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { newRootModule(t, n, rand.New(rand.NewPCG(seed, n)), sum).run() })
				})
			}
		})
	}
	mixed := sum.injected()
	overHTTP2(t, max(3, wanted/200), rand.New(rand.NewPCG(seed, 1<<63)), sum)
	if err := goleak.Find(before); err != nil {
		sum.goroutinesLeft(t, err)
	}
	t.Log(sum.table())
	sum.check(t, wanted, mixed)
	if t.Failed() {
		t.Logf("again with CHAOS_SEED=%d CHAOS_FAULTS=%d", seed, wanted)
	}
}

func chaosNumber(t *testing.T, variable string, byDefault uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return byDefault
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}
