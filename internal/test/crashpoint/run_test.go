// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package crashpoint

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// prepared is what each cell begins with, made once: an initialised backend, and
// a state with a job.
type prepared struct{ backend, state, url, jobID string }

func prepare(t *testing.T) prepared {
	t.Helper()
	w := newWorld(t, folder{})
	w.writeFile("main.tf", "terraform {\n  backend \"http\" {}\n}\n")
	w.run("init", "-no-color")
	w.configure(firstPrompt)
	w.run("apply", "-auto-approve", "-no-color")
	backend, err := os.ReadFile(w.dir + "/.terraform/terraform.tfstate")
	if err != nil {
		t.Fatal(err)
	}
	return prepared{string(backend), w.saved(), w.url, w.sim.Jobs()[0].ID}
}

// run runs a command that must succeed.
func (w *world) run(args ...string) string {
	w.t.Helper()
	output, code := w.start(args...).wait()
	if code != 0 {
		w.t.Fatalf("%v failed:\n%s", args, output)
	}
	return output
}

func (c cell) run(t *testing.T, j store, from prepared) {
	w := newWorld(t, j)
	w.writeFile(".terraform/terraform.tfstate", strings.ReplaceAll(from.backend, from.url, w.url))
	w.configure(firstPrompt)
	state := ""
	if c.message {
		state = strings.ReplaceAll(from.state, from.jobID, w.sim.Create(project, firstPrompt).ID)
		w.configure(secondPrompt)
	}
	w.arm(c.step, state)
	p := w.start("apply", "-auto-approve", "-no-color", "-input=false")
	select {
	case <-w.reached:
	case <-p.done:
		t.Fatalf("the step was never reached:\n%s", p.out.String())
	}
	c.ending.end(w, p)
	for name, text := range j.entries(w) {
		if strings.Contains(text, canaryKey) || strings.Contains(text, "canary prompt") {
			t.Errorf("the key or a prompt is in the journal: %s: %s", name, text)
		}
	}

	prompt, accepted := firstPrompt, c.step >= requestWritten
	if c.message {
		prompt = secondPrompt
	}
	if c.ending == between { // the step may win the race
		accepted = w.posts() > 0
	}
	saved := strings.Contains(w.saved(), prompt)
	if saved && (c.ending == killCLI || c.ending == killBoth || c.ending == lingers) {
		t.Error("the state was written before the CLI was killed, so the cell proves nothing")
	}
	want := c.want(j, accepted, saved)
	got := c.follow(w)
	w.checkEnd(prompt)
	got.Creates, got.Messages, got.Left = w.sim.Counts().Create, w.sim.Counts().Message, len(j.entries(w))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("accepted %t, in the state %t; want -, got +:\n%s\nthe run that was ended:\n%s", accepted, saved, diff, withoutLog(p.out.String()))
	}
}

// posts is how many the service has read.
func (w *world) posts() int { return w.sim.Counts().Create + w.sim.Counts().Message }

// follow runs what follows, and applies until nothing fails.
func (c cell) follow(w *world) (got outcome) {
	if c.follower == destroy {
		before := w.posts()
		w.run("destroy", "-auto-approve", "-no-color")
		if w.posts() != before {
			w.t.Error("the destroy has sent something")
		}
	}
	for range 3 {
		args, announced := []string{"apply", "-auto-approve", "-no-color", "-input=false"}, ""
		if c.follower == planAndApply {
			announced = w.run("plan", "-out=saved", "-no-color")
			args = []string{"apply", "-no-color", "saved"}
		}
		p := w.start(args...)
		p.printed("agent_job.test: Creating...", "agent_job.test: Modifying...")
		w.resume(false)
		output, code := p.wait()
		takenOver := strings.Count(output, "Warning: Agent job of an earlier run taken over") + strings.Count(output, "Warning: Message of an earlier run found")
		reported := strings.Count(output, "Error: Outcome of an earlier create unknown") + strings.Count(output, "Error: Outcome of message to agent job unknown")
		if c.follower == planAndApply && takenOver+reported > 0 &&
			!strings.Contains(announced, "earlier run will be taken over") && !strings.Contains(announced, "Outcome of an earlier request unknown") {
			w.t.Errorf("the plan does not announce it:\n%s", withoutLog(announced))
		}
		got.TakenOver += takenOver
		got.Reported += reported
		if code == 0 {
			return got
		}
		if reported == 0 {
			w.t.Errorf("the apply fails:\n%s", withoutLog(output))
		}
	}
	w.t.Error("no apply succeeds")
	return got
}

// checkEnd checks that all is well and nothing is left to do, and that the key
// is nowhere.
func (w *world) checkEnd(prompt string) {
	w.t.Helper()
	if output, code := w.start("plan", "-no-color", "-detailed-exitcode").wait(); code != 0 {
		w.t.Errorf("the plan after it is not empty (%d):\n%s", code, withoutLog(output))
	}
	jobs, state := w.sim.Jobs(), w.saved()
	if last := jobs[len(jobs)-1]; !strings.Contains(state, last.ID) || !strings.Contains(state, prompt) || strings.Contains(state, `"tainted"`) {
		w.t.Errorf("the state does not hold job %s with its prompt:\n%s", last.ID, state)
	}
	if strings.Contains(state, canaryKey) {
		w.t.Error("the key is in the state")
	}
	for _, name := range w.files() {
		if text, _ := os.ReadFile(name); strings.Contains(string(text), canaryKey) {
			w.t.Errorf("the key is in %s", name)
		}
	}
}

// withoutLog leaves out the lines of the log.
func withoutLog(output string) string {
	var kept strings.Builder
	for line := range strings.Lines(output) {
		if !strings.Contains(line, " [TRACE] ") && !strings.Contains(line, " [DEBUG] ") && !strings.HasPrefix(line, "  | ") {
			fmt.Fprint(&kept, line)
		}
	}
	return kept.String()
}
