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
	eachJobOnce(t, defaultFolder, namedFolder)
}

func TestX07_S3_each_job_belongs_to_one_resource(t *testing.T) {
	needsBucket(t)
	t.Parallel()
	eachJobOnce(t, bucket)
}

// Red without: the entries removed at an undisturbed end.
func TestX07_identical_prompts_under_count(t *testing.T) {
	t.Parallel()
	w := newWorkingDir(t, quick, jobs(canaryPrompt))
	w.run("apply")
	w.assertEachJobOnce()
	w.posts(3, 0)
	w.run("state rm agent_job.test[1]")
	w.run("apply")
	w.posts(4, 0) // what was forgotten is started again, nothing is taken over
}

func eachJobOnce(t *testing.T, stores ...store) {
	t.Helper()
	type scenario struct {
		name string
		test func(*testing.T, store)
	}
	type cell struct {
		store
		scenario
	}
	var cells []cell
	for _, s := range stores {
		for _, scenario := range []scenario{
			{"two workspaces, one killed", twoWorkspaces},
			{"two configurations, one killed", twoConfigurations},
			{"two aliases at once", func(t *testing.T, s store) { twoAliases(t, s, "") }},
			{"two aliases in turn", func(t *testing.T, s store) { twoAliases(t, s, "depends_on = [agent_job.a]") }},
			{"two aliases, killed", twoAliasesKilled},
		} {
			cells = append(cells, cell{s, scenario})
		}
	}
	for _, c := range everyNth(t, envRounds, 3, cells) {
		t.Run(string(c.store)+", "+c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, c.store)
		})
	}
}

// killWhilePolled ends the run when the service has so many jobs, and they are polled.
func (w *workingDir) killWhilePolled(p *process, jobs int) {
	w.t.Helper()
	polls := w.sim.Counts().Get
	w.until("the jobs are polled", func() bool { return len(w.sim.Jobs()) == jobs && w.sim.Counts().Get > polls })
	p.signalGroup(syscall.SIGKILL)
	<-p.done
}

// finish completes all jobs.
func (w *workingDir) finish() {
	for _, j := range w.sim.Jobs() {
		w.sim.SetStatus(j.ID, "completed")
	}
}

// Red without: the workspace in the key.
func twoWorkspaces(t *testing.T, s store) {
	t.Helper()
	w := newWorkingDir(t, simulator.Script{Duration: time.Hour}, oneJob)
	w.keepJournal(s)
	for _, name := range []string{"a", "b"} {
		w.run("workspace new " + name)
	}
	w.env = []string{"TF_WORKSPACE=a"}
	w.killWhilePolled(w.start("apply"), 1)
	killed := w.sim.Jobs()[0].ID

	w.env = []string{"TF_WORKSPACE=b"}
	other := w.start("apply", "-json")
	w.until("a second job is started", func() bool { return len(w.sim.Jobs()) == 2 })
	w.finish()
	if output := other.wait(); !other.ok() || count(output, createTakenOver, createAnnounced) > 0 {
		t.Errorf("workspace b took over the job of a:\n%s", output)
	}
	w.env = []string{"TF_WORKSPACE=a"}
	// Terraform writes the state when the job has an id, so it may hold the job already.
	if out := w.run("apply"); !strings.Contains(out, killed) && !strings.Contains(out, "No changes") {
		t.Errorf("workspace a did not get its job back:\n%s", out)
	}
	w.posts(2, 0)
	w.assertNothingToDoIn("a", "b")
}

// assertNothingToDoIn asserts that the journal that workspaces share is empty
// when each has seen its state.
func (w *workingDir) assertNothingToDoIn(workspaces ...string) {
	w.t.Helper()
	for _, name := range workspaces {
		w.env = []string{"TF_WORKSPACE=" + name}
		w.run("plan")
	}
	w.assertNothingToDo()
}

// Two configurations have a journal each. Red without: the journal in the data
// folder of the configuration.
func twoConfigurations(t *testing.T, s store) {
	t.Helper()
	a := newWorkingDir(t, simulator.Script{Duration: time.Hour}, oneJob)
	a.keepJournal(s)
	b := newWorkingDirAt(t, a.sim, a.sim, oneJob)
	b.keepJournal(s)
	a.killWhilePolled(a.start("apply"), 1)
	p := b.start("apply")
	a.until("a second job is started", func() bool { return len(a.sim.Jobs()) == 2 })
	a.finish()
	p.wait()
	a.run("apply")
	if a.onlyInstance().ID == b.onlyInstance().ID {
		t.Error("two configurations share a job")
	}
	a.posts(2, 0)
	a.assertNothingToDo()
	b.assertNothingToDo()
}

// aliases are two provider processes of one run, with the same prompt.
func aliases(more string) string {
	return otherAlias + use("a", canaryPrompt) + use("b", canaryPrompt, "provider = agent.other", more)
}

// Red without: the owner compared in wanted.
func twoAliases(t *testing.T, s store, more string) {
	t.Helper()
	w := newWorkingDir(t, simulator.Script{}, aliases(more))
	w.keepJournal(s)
	w.sim.Inject(simulator.Fault{Kind: simulator.KindCreate, Times: 2, Delay: 300 * time.Millisecond})
	if output := w.run("apply -json"); count(output, createAnnounced, createTakenOver) > 0 {
		t.Errorf("the apply took over a job of its own run:\n%s", output)
	}
	w.posts(2, 0)
	w.assertEachJobOnce()
}

// Both processes of the next run see both entries. Red without: a claim that only one
// can win, and the owner compared before it.
func twoAliasesKilled(t *testing.T, s store) {
	t.Helper()
	w := newWorkingDir(t, simulator.Script{Duration: time.Hour}, aliases(""))
	w.keepJournal(s)
	w.killWhilePolled(w.start("apply"), 2)
	w.putBack(nil, false)
	w.finish()
	if output := w.run("apply -json"); count(output, createTakenOver) != 2 {
		t.Errorf("not both jobs were taken over:\n%s", output)
	}
	w.posts(2, 0)
	w.assertEachJobOnce()
}
