// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// needsActions skips a test on a CLI that has no actions.
func needsActions(t *testing.T) {
	t.Helper()
	if !cli.HasActions() {
		t.Skipf("actions need Terraform 1.14 or later, this is %s", cli.Name())
	}
}

const startJob = `
action "agent_start_job" "test" {
  config {
    prompt = "write"
  }
}
`

// Red without: a StopProvider that returns only when the actions have told their end.
func TestA02_interrupt_in_the_wait_of_an_action(t *testing.T) {
	needsActions(t)
	for _, test := range everyNth(t, envRounds, 3, signals[:2]) {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorkingDir(t, simulator.Script{Duration: time.Hour}, startJob)
			p := w.start("apply", "-invoke=action.agent_start_job.test")
			w.until("the job is polled", func() bool { return w.sim.Counts().Get > 1 })
			test.send(p)
			output := p.wait()
			if p.ok() {
				t.Error("an interrupted action succeeds")
			}
			if id := w.sim.Jobs()[0].ID; strings.Count(output, id) < 2 || !strings.Contains(output, "Error: Agent job still running") {
				t.Errorf("the output does not say that job %s goes on:\n%s", id, output)
			}
			w.posts(1, 0)
		})
	}
}

func TestA02_interrupt_while_the_POST_of_an_action_is_in_flight(t *testing.T) {
	needsActions(t)
	t.Parallel()
	w := newWorkingDir(t, simulator.Script{Duration: time.Hour}, startJob)
	w.sim.Inject(simulator.Fault{Kind: simulator.KindCreate, Delay: time.Second})
	p := w.start("apply", "-invoke=action.agent_start_job.test")
	w.until("the POST is read", func() bool { return w.sim.Counts().Create == 1 })
	p.signal(syscall.SIGINT)
	output := p.wait()
	if id := w.sim.Jobs()[0].ID; p.ok() || !strings.Contains(output, id) {
		t.Errorf("the output does not name job %s:\n%s", id, output)
	}
	w.posts(1, 0)
}

func TestA03_invoked_job_fails(t *testing.T) {
	needsActions(t)
	t.Parallel()
	script := simulator.Script{Status: "failed"}
	w := newWorkingDir(t, script, startJob)
	output, ok := w.try("apply -invoke=action.agent_start_job.test")
	id := w.sim.Jobs()[0].ID
	if ok || !strings.Contains(output, "Agent job failed") || strings.Count(output, id) < 2 {
		t.Errorf("the output does not say that job %s failed:\n%s", id, output)
	}
	w.posts(1, 0)
}
