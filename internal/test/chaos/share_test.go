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
	eachJobOnce(t, defaultFolder, namedFolder)
}

func TestX07_S3_each_job_belongs_to_one_resource(t *testing.T) {
	needsBucket(t)
	eachJobOnce(t, bucket)
}

func eachJobOnce(t *testing.T, stores ...store) {
	t.Helper()
	t.Parallel()
	for _, s := range everyNth(t, envRounds, 2, stores) {
		for name, scenario := range map[string]func(*testing.T, store){
			"two workspaces, one killed": twoWorkspaces, "two configurations, one killed": twoConfigurations,
		} {
			t.Run(string(s)+", "+name, func(t *testing.T) {
				t.Parallel()
				scenario(t, s)
			})
		}
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
	for _, name := range []string{"a", "b"} { // the journal that they share is empty when each has seen its state
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
