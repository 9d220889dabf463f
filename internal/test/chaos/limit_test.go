// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// newLimited is a working directory with more jobs than the service takes in its hour.
func newLimited(t *testing.T, fleet int, limit simulator.Limit) *workingDir {
	t.Helper()
	sim := simulator.New(simulator.Options{
		Key:    canaryKey,
		Script: func(string, int) simulator.Script { return simulator.Script{} },
		Limit:  &limit,
	})
	return newWorkingDirAt(t, sim, sim, use("test", "write", fmt.Sprintf("count = %d", fleet), `timeouts = { create = "10m" }`))
}

// refusedAfterFirst is the share of the POSTs that came after the first 429
// was answered and were answered 429 too.
func refusedAfterFirst(all []simulator.Request) (refused, sent int) {
	limited := false
	for _, r := range all {
		if r.Kind != simulator.KindCreate {
			continue
		}
		if limited {
			sent++
		}
		if r.Status == 429 {
			if limited {
				refused++
			}
			limited = true
		}
	}
	return refused, sent
}

// Red without: the limiter's pause or its width. (Its probe: TestLimiter_first429.)
func TestFleetUnderAnHourlyLimit(t *testing.T) {
	const fleet = 300
	if os.Getenv(envRounds) == "" {
		t.Skipf("runs only with %s, which make chaos sets", envRounds)
	}
	t.Parallel()
	for _, retryAfter := range []bool{true, false} {
		t.Run(fmt.Sprintf("Retry-After=%t", retryAfter), func(t *testing.T) {
			t.Parallel()
			w := newLimited(t, fleet, simulator.Limit{Uses: fleet / 3, Per: 10 * time.Second, RetryAfter: retryAfter})
			w.run("apply -parallelism=300")
			if jobs := len(w.sim.Jobs()); jobs != fleet {
				t.Errorf("%d jobs were started, want %d", jobs, fleet)
			}
			w.assertEachJobOnce()
			refused, sent := refusedAfterFirst(w.sim.Requests())
			t.Logf("%d of %d POSTs after the first 429 were answered 429", refused, sent)
			if refused*20 >= sent {
				t.Errorf("%d of %d POSTs after the first 429 were answered 429, want less than 5%%", refused, sent)
			}
		})
	}
}

// Red without: ErrPauseTooLong.
func TestFleetThatCannotWaitForItsTurn(t *testing.T) {
	t.Parallel()
	const fleet = 60
	w := newLimited(t, fleet, simulator.Limit{Uses: fleet * 2 / 3, Per: time.Hour, RetryAfter: true})
	output, ok := w.try("apply -parallelism=300")
	if ok || !strings.Contains(output, "Nothing was sent") || !strings.Contains(output, "rate limit") {
		t.Fatalf("the rest did not fail as not sent:\n%s", output[max(0, len(output)-3000):])
	}
	for _, i := range w.state() {
		if i.Tainted {
			t.Errorf("%s is tainted", i.ID)
		}
	}
	w.sim.EndWindows() // an hour later
	w.run("apply -parallelism=300")
	if jobs := len(w.sim.Jobs()); jobs != fleet {
		t.Errorf("%d jobs were started, want %d", jobs, fleet)
	}
	w.assertEachJobOnce()
}
