// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/simulator"
)

// Red without: the detached context of a POST on its way.
func TestX01_interrupt_while_the_POST_is_in_flight(t *testing.T) {
	t.Parallel()
	w := newWorkingDir(t, simulator.Script{Duration: time.Hour}, oneJob)
	w.sim.Inject(simulator.Fault{Kind: simulator.KindCreate, Delay: 1500 * time.Millisecond})
	p := w.start("apply")
	w.until("the POST is read", func() bool { return w.sim.Counts().Create == 1 })
	p.signal(syscall.SIGINT)
	p.wait()
	if got := w.onlyInstance(); got.Status != "active" {
		t.Errorf("status %q, want active", got.Status)
	}
	w.sim.SetStatus(w.onlyInstance().ID, "completed")
	w.run("apply")
	w.posts(1, 0)
	w.assertEachJobOnce()
}

// signaled is one way in which a run is interrupted.
type signaled struct {
	name string
	send func(*process)
}

var signals = []signaled{
	{"SIGINT to the group", func(p *process) { p.signalGroup(syscall.SIGINT) }},
	{"SIGINT", func(p *process) { p.signal(syscall.SIGINT) }},
	{"SIGTERM to the group", func(p *process) { p.signalGroup(syscall.SIGTERM) }},
	{"SIGTERM", func(p *process) { p.signal(syscall.SIGTERM) }},
}

// Red without: the state saved before the wait; a warning, not an error, after an
// interrupt. That the provider's part takes no 2 s is shown on fake clocks
// (checkStop in TestChaosFaults, TestActionA02Interrupted).
func TestX02_interrupt_in_the_wait(t *testing.T) {
	for _, test := range everyNth(t, envRounds, 3, signals) {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorkingDir(t, simulator.Script{Duration: time.Hour}, oneJob)
			p := w.start("apply")
			w.until("the job is polled", func() bool { return w.sim.Counts().Get > 1 })
			start := time.Now()
			test.send(p)
			output := p.wait()
			t.Logf("stopped after %s", time.Since(start).Round(time.Millisecond))
			if got := w.onlyInstance(); got.Status != "active" {
				t.Errorf("status %q, want active", got.Status)
			}
			if !strings.Contains(output, w.onlyInstance().ID) {
				t.Errorf("the output does not name the job:\n%s", output)
			}
			w.sim.SetStatus(w.onlyInstance().ID, "completed")
			w.run("apply")
			w.posts(1, 0)
			w.assertEachJobOnce()
		})
	}
}

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
	if !strings.Contains(output, "Nothing was sent") {
		t.Errorf("the output does not say that nothing was sent:\n%s", output)
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

// Red without: the report that stands in for an error of the journal.
func TestX05_journal_not_usable(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(folder string) error
	}{
		{"not a folder", func(folder string) error { return os.WriteFile(folder, nil, 0o600) }},
		{"damaged file", func(folder string) error {
			if err := os.MkdirAll(folder, 0o700); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(folder, "aaaaaaaaaaaaaaaaaaaaaaaaaa-0123456789abcdef.json"), []byte("{\"n\":1,\x00\xff\n{\"n\":2}\n[1]\n"), 0o600)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorkingDir(t, simulator.Script{}, oneJob)
			if err := os.Mkdir(filepath.Join(w.dir, ".terraform"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := test.prepare(filepath.Join(w.dir, ".terraform", "agent")); err != nil {
				t.Fatal(err)
			}
			w.env = []string{"TF_LOG=WARN"}
			output := w.run("apply")
			if test.name == "not a folder" && !strings.Contains(output, "the journal in .terraform/agent could not be read") {
				t.Errorf("no warning in the log:\n%s", output)
			}
			w.onlyInstance()
			w.posts(1, 0)
		})
	}
}

// The moments of X01 to X03, and of X08, spread over the whole run.
func TestX02_interrupt_at_any_moment(t *testing.T) {
	inRounds(t, 3, mode{store: defaultFolder, endings: interrupts})
}

func TestX02_S3_interrupt_at_any_moment(t *testing.T) {
	needsBucket(t)
	inRounds(t, 3, mode{store: bucket, endings: interrupts})
}
