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
	if ok || !strings.Contains(output, "The request was not sent") || !strings.Contains(output, "rate limit") {
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

// What one run may start. A plan and its apply are two processes, and the apply
// plans each resource again.
func TestRunLimits(t *testing.T) {
	const (
		tooManyJobs     = "Error: Too many new agent jobs"
		tooManyMessages = "Error: Too many messages to agent jobs"
		noJobs          = "AGENT_MAX_NEW_JOBS=0"
		noMessages      = "AGENT_MAX_MESSAGES=0"
	)
	type limitedCommand struct {
		command
		limit  string
		errors int // how often says must be in the output; 0: the command succeeds
		says   string
	}
	const unchanged = ""
	three := use("test", "write", "count = 3", "wait = { enabled = false }")
	reworded := strings.Replace(three, "write", "write more", 1)
	six := strings.Replace(three, "3", "6", 1)
	replaceFirst := use("test", "write", "count = 3", `triggers = { week = "2" }`, "lifecycle { create_before_destroy = true }", "wait = { enabled = false }")
	for _, test := range []struct {
		name     string
		commands []limitedCommand
	}{
		{"jobs", []limitedCommand{
			{command{three, "plan", 0, 0}, noJobs, 1, tooManyJobs},
			{command{unchanged, "apply", 0, 0}, "AGENT_MAX_NEW_JOBS=2", 1, tooManyJobs},
			{command{unchanged, "apply -target=agent_job.test[0]", 0, 0}, noJobs, 1, tooManyJobs},
			{command{unchanged, "apply -target=agent_job.test[0] -target=agent_job.test[1]", 2, 0}, "AGENT_MAX_NEW_JOBS=2", 0, ""},
			{command{unchanged, "apply", 3, 0}, "AGENT_MAX_NEW_JOBS=1", 0, ""},
			{command{six, "destroy", 3, 0}, noJobs, 1, "add -refresh=false"},
			{command{unchanged, "destroy -refresh=false", 3, 0}, noJobs, 0, ""},
		}},
		{"replacements count once", []limitedCommand{
			{command{three, "apply", 3, 0}, "AGENT_MAX_NEW_JOBS=3", 0, ""},
			{command{unchanged, "apply -replace=agent_job.test[0] -replace=agent_job.test[1]", 3, 0}, "AGENT_MAX_NEW_JOBS=1", 1, tooManyJobs},
			{command{unchanged, "apply -replace=agent_job.test[0] -replace=agent_job.test[1]", 5, 0}, "AGENT_MAX_NEW_JOBS=2", 0, ""},
			{command{replaceFirst, "apply", 8, 0}, "AGENT_MAX_NEW_JOBS=3", 0, ""},
			{command{unchanged, "taint agent_job.test[0]", 8, 0}, noJobs, 0, ""},
			{command{unchanged, "apply", 8, 0}, noJobs, 1, tooManyJobs},
			{command{unchanged, "apply", 9, 0}, "AGENT_MAX_NEW_JOBS=1", 0, ""},
		}},
		{"messages", []limitedCommand{
			{command{three, "apply", 3, 0}, noMessages, 0, ""},
			{command{reworded, "plan", 3, 0}, noMessages, 1, tooManyMessages},
			{command{unchanged, "apply", 3, 0}, "AGENT_MAX_MESSAGES=2", 1, tooManyMessages},
			{command{unchanged, "destroy", 3, 0}, noMessages, 1, "add -refresh=false"},
			{command{unchanged, "apply", 3, 3}, "AGENT_MAX_MESSAGES=3", 0, ""},
			{command{unchanged, "apply", 3, 3}, noMessages, 0, ""},
		}},
		{"saved plans", []limitedCommand{
			{command{three, "plan -out=saved", 0, 0}, "", 0, ""},
			{command{unchanged, "apply saved", 1, 0}, "AGENT_MAX_NEW_JOBS=1", 2, tooManyJobs},
			{command{unchanged, "apply", 3, 0}, "AGENT_MAX_NEW_JOBS=2", 0, ""},
			{command{reworded, "plan -out=saved", 3, 0}, "", 0, ""},
			{command{unchanged, "apply saved", 3, 1}, "AGENT_MAX_MESSAGES=1", 2, tooManyMessages},
			{command{unchanged, "apply", 3, 3}, "AGENT_MAX_MESSAGES=2", 0, ""},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorkingDir(t, simulator.Script{}, "")
			for _, c := range test.commands {
				if c.write != unchanged {
					w.write(c.write)
				}
				w.env = strings.Fields(c.limit)
				output, ok := w.try(c.args)
				if ok != (c.errors == 0) || !ok && strings.Count(output, c.says) != c.errors {
					t.Fatalf("%s with %s, want %d times %q:\n%s", c.args, c.limit, c.errors, c.says, output)
				}
				w.posts(c.creates, c.messages)
			}
		})
	}
}
