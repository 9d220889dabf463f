// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// step is where a run is stopped.
type step int

const (
	nowhere step = iota
	journalBegun
	journalDone
	requestWritten // and the service has accepted it
	responseRead
	idRecorded
	stateHandedOver
	processEnd
	stateWrite // the CLI's own, to a remote backend
)

var steps = []string{
	"nowhere", "journal_begun", "journal_done", "request_written", "response_read", "id_recorded", "state_handed_over", "process_end", "state_write",
}

// crash is how a run that was stopped at a step ends.
type crash int

const (
	killCLI  crash = iota // the plugin continues
	killBoth              // nothing continues
	ctrlC                 // twice; the step continues after the second
	between               // Ctrl-C twice; the step continues between the two
	stuck                 // Ctrl-C twice; the step does not continue before the CLI kills the plugin
	lingers               // as killCLI, but the plugin continues once the next apply has come to the resource
)

var crashes = []string{"kill_CLI", "kill_both", "double_Ctrl-C", "between_two_Ctrl-Cs", "double_Ctrl-C_stuck", "kill_CLI_plugin_lingers"}

func (c crash) end(w *steppedDir, p *process) {
	switch c {
	case killCLI, lingers:
		p.signal(syscall.SIGKILL)
	case killBoth:
		p.signalGroup(syscall.SIGKILL)
	default:
		p.signalGroup(syscall.SIGINT)
		p.awaitOutput("Interrupt received")
		if c == between {
			w.resume(true)
		}
		p.signalGroup(syscall.SIGINT)
		p.awaitOutput("Two interrupts received")
		if c != stuck {
			w.resume(false)
		}
	}
	p.wait()
	if c != lingers {
		w.resume(false)
	}
}

// follower is what runs after that, again and again until nothing fails.
type follower string

const (
	apply        follower = "apply"
	planAndApply follower = "plan_and_apply"
	destroy      follower = "destroy" // and apply
)

// crashPoint is a cell of X17's grid.
type crashPoint struct {
	step     step
	crash    crash
	message  bool // or a create
	follower follower
}

func (c crashPoint) String() string {
	request := "create"
	if c.message {
		request = "message"
	}
	return strings.Join([]string{steps[c.step], crashes[c.crash], request, string(c.follower)}, "/")
}

func crashPoints() (all []crashPoint) {
	for s := journalBegun; s <= stateWrite; s++ {
		for e := range crashes {
			for _, message := range []bool{false, true} {
				for _, f := range []follower{apply, planAndApply, destroy} {
					all = append(all, crashPoint{s, crash(e), message, f})
				}
			}
		}
	}
	return all
}

// outcome is what became of a request.
type outcome struct {
	Creates, Messages int
	Reported          int // as unknown
	TakenOver         int
	Entries           int // in the journal, when all is done
}

// want derives the outcome from what is known of the run that was ended: the
// service has accepted its request, and the state shows that.
func (c crashPoint) want(s store, accepted, saved bool) (o outcome) {
	destroyed := c.follower == destroy && (c.message || saved)
	posts := &o.Creates
	if c.message {
		posts = &o.Messages
	}
	if accepted {
		*posts = 1
	}
	// Documented: the default folder remembers nothing once a provider has ended well.
	forgotten := accepted && !saved && c.step >= processEnd && s == defaultFolder
	// Only a plugin that ended between the two records cannot tell what became of the request.
	unknown := (c.crash == killBoth || c.crash == stuck) && c.step >= journalDone && c.step <= responseRead
	switch {
	case destroyed: // with all that the journal knows of it
		o.Creates++
		if c.message && c.crash == lingers && (c.step == requestWritten || c.step == responseRead) {
			o.Entries = 1 // the response came after that; no request asks for the entry again, until it is too old
		}
	case saved:
	case unknown:
		o.Reported = 1
		if !c.message { // after the report the user decides: an apply sends the prompt, a message needs a new one
			o.Creates++
		}
	case !accepted || forgotten:
		*posts++
	default:
		o.TakenOver = 1
	}
	return o
}

// In the folder. Red without each of: the record before the POST, the one after
// it, the cancelled context that keeps a recorded request from being sent, the
// entries that a disturbed process leaves, the takeover, the wait for a plugin
// that still lives, Seen, and Forget.
func TestX17_crash_points(t *testing.T) { atCrashPoints(t, defaultFolder) }

// In a bucket, which forgets nothing. Red without: Seen.
func TestX17_S3_crash_points(t *testing.T) {
	needsBucket(t)
	atCrashPoints(t, bucket)
}

// atCrashPoints runs one cell of 41 in make test: one for each step; endings,
// requests and followers take turns.
func atCrashPoints(t *testing.T, s store) {
	t.Helper()
	t.Parallel()
	applied := newSteppedDir(t, s, nowhere)
	applied.run("apply")
	for _, c := range everyNth(t, envCrash, 41, crashPoints()) {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			c.run(t, s, applied)
		})
	}
}

// run stops an apply at the step, ends it, and lets the follower run. The apply
// of a message starts from the state of another working directory.
func (c crashPoint) run(t *testing.T, s store, applied *steppedDir) {
	w := newSteppedDir(t, s, c.step)
	prompt, accepted := canaryPrompt, c.step >= requestWritten
	if c.message {
		prompt += " more"
		id := w.sim.Create(project, canaryPrompt).ID
		w.remote.state = []byte(strings.ReplaceAll(string(applied.stateText()), applied.sim.Jobs()[0].ID, id))
		w.write(stepConfiguration(prompt))
	}
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
		if count(output, createUnknown) > 0 {
			w.forget(output)
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
