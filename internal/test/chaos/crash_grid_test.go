// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"strings"
	"syscall"
	"testing"
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

var steps = map[step]string{
	journalBegun: "journal_begun", journalDone: "journal_done", requestWritten: "request_written", responseRead: "response_read",
	idRecorded: "id_recorded", stateHandedOver: "state_handed_over", processEnd: "process_end", stateWrite: "state_write",
}

// crash is how a run that was stopped at a step ends.
type crash int

const (
	killCLI   crash = iota // the plugin continues
	killBoth               // nothing continues
	ctrlC                  // twice; the step continues after the second
	between                // Ctrl-C twice; the step continues between the two
	stuck                  // Ctrl-C twice; the step does not continue before the CLI kills the plugin
	lingers                // as killCLI, but the plugin continues once the next apply has come to the resource
	lastCrash = lingers
)

var crashes = map[crash]string{
	killCLI: "kill_CLI", killBoth: "kill_both", ctrlC: "double_Ctrl-C", between: "between_two_Ctrl-Cs",
	stuck: "double_Ctrl-C_stuck", lingers: "kill_CLI_plugin_lingers",
}

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
		for e := killCLI; e <= lastCrash; e++ {
			for _, message := range []bool{false, true} {
				for _, f := range []follower{apply, planAndApply, destroy} {
					all = append(all, crashPoint{s, e, message, f})
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
	forgotten := accepted && !saved && c.step >= processEnd && !s.remembers()
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
func TestX17_crash_points(t *testing.T) {
	t.Parallel()
	atCrashPoints(t, defaultFolder)
}

// In a bucket, which forgets nothing. Red without: Seen.
func TestX17_S3_crash_points(t *testing.T) {
	needsBucket(t)
	t.Parallel()
	atCrashPoints(t, bucket)
}

// atCrashPoints runs one cell of 29 in make test: steps, endings, requests and
// followers take turns.
func atCrashPoints(t *testing.T, s store) {
	t.Helper()
	some := everyNth(t, envCrash, 29, crashPoints())
	applied := newSteppedDir(t, s)
	applied.run("apply")
	for _, c := range some {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			c.run(t, s, applied)
		})
	}
}
