// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package faultmix plays a random mix of the faults of the matrix.
package faultmix

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/faultserver"
	"github.com/agentjobs/terraform-provider-agent/internal/test/matrix"
)

type attrs = fakecli.Attrs

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
		sum.wrong(goroutines, strings.Count(err.Error(), "[Goroutine "))
		t.Error(err)
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

// rowID is a row of the matrix. The tests that are counted for the matrix's
// coverage name theirs in full; the mix is no substitute for one of them.
func rowID(family byte, n int) string { return fmt.Sprintf("%c%02d", family, n) }

// overHTTP2 plays jobs and messages whose polls meet the faults of HTTP/2. They are
// no part of the mix but on sockets: HTTP/2 needs a connection that buffers, which a
// pipe in memory does not.
func overHTTP2(t *testing.T, times int, random *rand.Rand, sum *tally) {
	t.Helper()
	faults := []faultserver.StreamFault{
		faultserver.GoAway, faultserver.GoAwayProtocolError, faultserver.RefuseStream, faultserver.ProtocolErrorStream,
	}
	t.Run("over HTTP2", func(t *testing.T) {
		for range times {
			script := make([]faultserver.StreamFault, 1+random.IntN(6))
			for i := range script {
				if i == 0 || random.IntN(2) == 0 {
					script[i] = faults[random.IntN(len(faults))]
				}
			}
			matrix.Row{Serve: faultserver.Options{Certificate: faultserver.GoodCertificate, HTTP2: script}, Test: func(m *matrix.Matrix) {
				m.OK(m.Run(matrix.Job1()))
				m.WantState("completed")
				m.WantPosts(1, 0)
				if diags := m.Run(matrix.Job2()); fakecli.Failed(diags) {
					m.Error(fakecli.Text(diags))
				}
				m.WantPosts(1, 1)
				if len(m.Sim.Jobs()) != 1 || len(m.Sim.Jobs()[0].Prompts) != 2 {
					sum.wrong(duplicates, 1)
					m.Errorf("jobs: %+v", m.Sim.Jobs())
				}
			}}.Run(t, t.TempDir())
			sum.fault(rowID('C', 11))
			for _, name := range []string{"jobs asked for", "jobs started", "messages asked for", "messages delivered"} {
				sum.number(name, 1)
			}
		}
	})
}
