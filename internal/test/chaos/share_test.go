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

func TestX07_each_job_belongs_to_one_resource(t *testing.T) {
	t.Parallel()
	for _, s := range []store{defaultFolder, namedFolder} {
		t.Run(string(s), func(t *testing.T) {
			t.Parallel()
			eachJobOnce(t, s)
		})
	}
	// Red without: the entries removed at an undisturbed end.
	t.Run("identical prompts under count, state rm", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, simulator.Script{Duration: 100 * time.Millisecond}, jobs(canaryPrompt))
		w.applied()
		w.assertEachJobOnce()
		w.posts(3, 0)
		if p := w.start("state", "rm", "agent_job.test[1]"); !strings.Contains(p.wait(), "Successfully removed") {
			t.Fatal(p.out.String())
		}
		w.applied()
		w.posts(4, 0) // what was forgotten is started again, nothing is taken over
	})
}

func TestX07_S3_each_job_belongs_to_one_resource(t *testing.T) { eachJobOnce(t, bucket) }

func eachJobOnce(t *testing.T, s store) {
	t.Helper()
	t.Run("two workspaces, one killed", func(t *testing.T) { twoWorkspaces(t, s) })
	t.Run("two configurations, one killed", func(t *testing.T) { twoConfigurations(t, s) })
	t.Run("two aliases", func(t *testing.T) { twoAliases(t, s) })
	t.Run("two aliases, killed", func(t *testing.T) { twoAliasesKilled(t, s) })
}

// killWhilePolled ends the run when the service has so many jobs, and they are polled.
func (w *world) killWhilePolled(p *process, jobs int) {
	w.t.Helper()
	polls := w.sim.Counts().Get
	w.until("the jobs are polled", func() bool { return len(w.sim.Jobs()) == jobs && w.sim.Counts().Get > polls })
	p.signalGroup(syscall.SIGKILL)
	<-p.done
}

// finish completes all jobs.
func (w *world) finish() {
	for _, j := range w.sim.Jobs() {
		w.sim.SetStatus(j.ID, "completed")
	}
}

// Red without: the workspace in the key.
func twoWorkspaces(t *testing.T, s store) {
	t.Helper()
	w := newWorld(t, simulator.Script{Duration: time.Hour}, oneJob)
	w.keepJournal(s)
	for _, name := range []string{"a", "b"} {
		w.start("workspace", "new", name).wait()
	}
	w.env = []string{"TF_WORKSPACE=a"}
	w.killWhilePolled(w.startApply(), 1)
	killed := w.sim.Jobs()[0].ID

	w.env = []string{"TF_WORKSPACE=b"}
	other := w.startApply("-json")
	w.until("a second job is started", func() bool { return len(w.sim.Jobs()) == 2 })
	w.finish()
	if output := other.wait(); !other.ok() || count(output, createTakenOver, createAnnounced) > 0 {
		t.Errorf("workspace b took over the job of a:\n%s", output)
	}
	w.env = []string{"TF_WORKSPACE=a"}
	// Terraform writes the state when the job has an id, so it may hold the job already.
	if out := w.applied(); !strings.Contains(out, killed) && !strings.Contains(out, "No changes") {
		t.Errorf("workspace a did not get its job back:\n%s", out)
	}
	w.posts(2, 0)
	w.assertNothingLeftIn("a", "b")
}

// assertNothingLeftIn asserts that the journal that workspaces share is empty
// when each has seen its state.
func (w *world) assertNothingLeftIn(workspaces ...string) {
	w.t.Helper()
	for _, name := range workspaces {
		w.env = []string{"TF_WORKSPACE=" + name}
		if output, ok := w.planned(); !ok {
			w.t.Errorf("no plan in workspace %s:\n%s", name, output)
		}
	}
	w.assertNothingLeft()
}

// Two configurations have a journal each. Red without: the journal in the data
// folder of the configuration.
func twoConfigurations(t *testing.T, s store) {
	t.Helper()
	a := newWorld(t, simulator.Script{Duration: time.Hour}, oneJob)
	a.keepJournal(s)
	b := &world{t: t, sim: a.sim, url: a.url, dir: t.TempDir()}
	b.keepJournal(s)
	b.write(oneJob)
	a.killWhilePolled(a.startApply(), 1)
	p := b.startApply()
	a.until("a second job is started", func() bool { return len(a.sim.Jobs()) == 2 })
	a.finish()
	p.wait()
	a.applied()
	if a.onlyInstance().ID == b.onlyInstance().ID {
		t.Error("two configurations share a job")
	}
	a.posts(2, 0)
	a.assertNothingLeft()
	b.assertNothingLeft()
}

// aliases are two provider processes of one run, with the same prompt.
func aliases(more string) string {
	return `
provider "agent" {
  alias = "other"
  poll  = { min_interval = "50ms", max_interval = "200ms" }
}
resource "agent_job" "a" {
  prompt = "` + canaryPrompt + `"
}
resource "agent_job" "b" {
  provider = agent.other
  prompt   = "` + canaryPrompt + `"
` + more + `}
`
}

// Red without: the owner compared in wanted.
func twoAliases(t *testing.T, s store) {
	t.Helper()
	for name, more := range map[string]string{"at once": "", "in turn": "  depends_on = [agent_job.a]\n"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, simulator.Script{}, aliases(more))
			w.keepJournal(s)
			w.sim.Inject(simulator.Fault{Kind: simulator.KindCreate, Times: 2, Delay: 300 * time.Millisecond})
			if output, ok := w.appliedJSON(); !ok || count(output, createAnnounced, createTakenOver) > 0 {
				t.Errorf("the apply failed or took over a job of its own run:\n%s", output)
			}
			w.posts(2, 0)
			w.assertEachJobOnce()
		})
	}
}

// Both processes of the next run see both entries. Red without: a claim that only one
// can win, and the owner compared before it.
func twoAliasesKilled(t *testing.T, s store) {
	t.Helper()
	w := newWorld(t, simulator.Script{Duration: time.Hour}, aliases(""))
	w.keepJournal(s)
	p := w.startApply()
	w.killWhilePolled(p, 2)
	w.putBack(nil, false)
	w.finish()
	if output, ok := w.appliedJSON(); !ok || count(output, createTakenOver) != 2 {
		t.Errorf("not both jobs were taken over:\n%s", output)
	}
	w.posts(2, 0)
	w.assertEachJobOnce()
}
