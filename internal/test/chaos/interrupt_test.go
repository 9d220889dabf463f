// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// Red without: the queue of the limiter that a cancelled context leaves.
func TestX03_interrupt_while_paused_by_a_limit(t *testing.T) {
	t.Parallel()
	w := newWorkingDir(t, simulator.Script{}, oneJob)
	w.sim.Inject(simulator.Fault{Kind: simulator.KindCreate, Status: 429, RetryAfter: "600"})
	p := w.start("apply")
	w.until("the POST is refused", func() bool { return w.sim.Counts().Create == 1 })
	time.Sleep(200 * time.Millisecond)
	p.signal(syscall.SIGINT)
	output := p.wait()
	if !strings.Contains(output, "rate limit refused") {
		t.Errorf("the output does not say that the request was refused:\n%s", output)
	}
	if got := w.state(); len(got) != 0 {
		t.Errorf("the state holds %+v", got)
	}
	w.posts(1, 0) // the one that was refused
	if jobs := w.sim.Jobs(); len(jobs) != 0 {
		t.Errorf("%d jobs were started", len(jobs))
	}
	w.run("apply")
	w.assertEachJobOnce()
}

// What the default folder cannot do is in the CLI's log. Red without: the report
// that stands in for an error of the journal.
func TestX05_journal_not_usable(t *testing.T) {
	t.Parallel()
	w := newWorkingDir(t, simulator.Script{}, oneJob)
	w.writeFile(".terraform/agent", "") // not a folder
	w.env = []string{"TF_LOG=WARN"}
	if output := w.run("apply"); !strings.Contains(output, "the journal in .terraform/agent could not be read") {
		t.Errorf("no warning in the log:\n%s", output)
	}
	w.onlyInstance()
	w.posts(1, 0)
}

// A plugin whose CLI is gone does not live on for a refresh. Red without: orphaned.
func TestX04_CLI_gone_while_a_job_is_read(t *testing.T) {
	t.Parallel()
	w := newWorkingDir(t, simulator.Script{}, oneJob)
	w.run("apply")
	sockets, err := os.MkdirTemp("", "x04") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(sockets) }()
	w.env = []string{"TMPDIR=" + sockets}
	read := w.sim.Counts().Get
	w.sim.Inject(simulator.Fault{Kind: simulator.KindGet, Delay: time.Minute})
	p := w.start("plan")
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

// Red without: a StopProvider that returns only when the actions have reported their
// end; the detached context of a POST on its way.
func TestA02_interrupt_an_action(t *testing.T) {
	needsActions(t)
	for _, test := range []struct {
		name   string
		send   func(*process)
		inWait bool
	}{
		{"SIGINT to the group", group(syscall.SIGINT), true},
		{"SIGINT", alone(syscall.SIGINT), true},
		{"SIGINT while the POST is in flight", alone(syscall.SIGINT), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorkingDir(t, simulator.Script{Duration: time.Hour}, startJob)
			if !test.inWait {
				w.sim.Inject(simulator.Fault{Kind: simulator.KindCreate, Delay: time.Second})
			}
			p := w.start("apply", "-invoke=action.agent_start_job.test")
			p.awaitPOSTs(1)
			if test.inWait {
				p.awaits("the job is polled", func() bool { return w.sim.Counts().Get > 1 })
			}
			test.send(p)
			output := p.wait()
			id := w.sim.Jobs()[0].ID
			if p.ok() || !strings.Contains(output, id) {
				t.Errorf("an interrupted action succeeds or does not name job %s:\n%s", id, output)
			}
			if test.inWait && (strings.Count(output, id) < 2 || !strings.Contains(output, "Error: Agent job still running")) {
				t.Errorf("the output does not say that job %s is still running:\n%s", id, output)
			}
			w.posts(1, 0)
		})
	}
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
