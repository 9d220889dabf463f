// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// run stops an apply at the step, ends it, and lets the follower run. The apply
// of a message starts from the state of another working directory.
func (c crashPoint) run(t *testing.T, s store, applied *steppedDir) {
	w := newSteppedDir(t, s)
	prompt, accepted := canaryPrompt, c.step >= requestWritten
	if c.message {
		prompt += " more"
		id := w.sim.Create(project, canaryPrompt).ID
		w.remote.state = []byte(strings.ReplaceAll(string(applied.stateText()), applied.sim.Jobs()[0].ID, id))
		w.write(stepConfiguration(prompt))
	}
	w.arm(c.step)
	p := w.start("apply")
	select {
	case <-w.reached:
	case <-p.done:
		t.Fatalf("the step was never reached:\n%s", p.output())
	}
	c.crash.end(w, p)
	if c.crash == between { // the step may win the race
		accepted = w.sent() > 0
	}
	saved := strings.Contains(string(w.stateText()), prompt)
	if saved && (c.crash == killCLI || c.crash == killBoth || c.crash == lingers) {
		t.Error("the state was written before the CLI was killed, so the cell proves nothing")
	}
	want := c.want(s, accepted, saved)
	got := c.follow(w)
	w.checkEnd(prompt)
	got.Creates, got.Messages, got.Entries = w.sim.Counts().Create, w.sim.Counts().Message, len(w.entries())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("accepted %t, in the state %t; want -, got +:\n%s\nthe run that was ended:\n%s", accepted, saved, diff, p.output())
	}
}

// follow runs what follows, and applies until nothing fails.
func (c crashPoint) follow(w *steppedDir) (got outcome) {
	if c.follower == destroy {
		before := w.sent()
		w.run("destroy")
		if w.sent() != before {
			w.t.Error("the destroy has sent something")
		}
	}
	for range 3 {
		command, plan := "apply -json", ""
		if c.follower == planAndApply {
			plan = w.run("plan -json -out=saved")
			command = "apply -json saved"
		}
		p := w.start(command)
		p.awaitOutput("agent_job.test: Creating...", "agent_job.test: Modifying...")
		w.resume(false)
		output := p.wait()
		takenOver, reported := count(output, createTakenOver, messageTakenOver), count(output, createUnknown, messageUnknown)
		if c.follower == planAndApply && takenOver+reported > 0 && count(plan, createAnnounced, messageAnnounced, unknownAnnounced) == 0 {
			w.t.Errorf("the plan does not announce it:\n%s", plan)
		}
		got.TakenOver += takenOver
		got.Reported += reported
		if p.ok() {
			return got
		}
		if reported == 0 {
			w.t.Errorf("the apply fails:\n%s", output)
		}
	}
	w.t.Error("no apply succeeds")
	return got
}

// checkEnd checks that nothing remains to be done, and that the state holds the
// last job.
func (w *steppedDir) checkEnd(prompt string) {
	w.t.Helper()
	w.run("plan -detailed-exitcode")
	jobs, state := w.sim.Jobs(), string(w.stateText())
	if last := jobs[len(jobs)-1]; !strings.Contains(state, last.ID) || !strings.Contains(state, prompt) || strings.Contains(state, `"tainted"`) {
		w.t.Errorf("the state does not hold job %s with its prompt:\n%s", last.ID, state)
	}
}
