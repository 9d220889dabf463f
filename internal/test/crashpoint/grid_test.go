// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package crashpoint

import (
	"os"
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

// ending is how a run that was stopped at a step ends.
type ending int

const (
	killCLI    ending = iota // the plugin continues
	killBoth                 // nothing continues
	twice                    // Ctrl-C twice; the step continues after the second
	between                  // Ctrl-C twice; the step continues between the two
	stuck                    // Ctrl-C twice; the step does not continue before the CLI kills the plugin
	lingers                  // as killCLI, but the plugin continues once the next apply has come to the resource
	lastEnding = lingers
)

var endings = map[ending]string{
	killCLI: "kill_CLI", killBoth: "kill_both", twice: "double_Ctrl-C", between: "between_two_Ctrl-Cs",
	stuck: "double_Ctrl-C_stuck", lingers: "kill_CLI_plugin_lingers",
}

func (e ending) end(w *world, p *process) {
	switch e {
	case killCLI, lingers:
		_ = p.cmd.Process.Kill()
		<-p.done
		if e == lingers {
			return
		}
	case killBoth:
		p.signal(syscall.SIGKILL)
		<-p.done
	default:
		p.signal(syscall.SIGINT)
		p.printed("Interrupt received")
		if e == between {
			w.resume(true)
		}
		p.signal(syscall.SIGINT)
		p.printed("Two interrupts received")
		if e == stuck {
			<-p.done
		}
	}
	w.resume(false)
	p.wait()
}

// follower is what runs after that, again and again until nothing fails.
type follower string

const (
	apply        follower = "apply"
	planAndApply follower = "plan_and_apply"
	destroy      follower = "destroy" // and apply
)

type cell struct {
	step     step
	ending   ending
	message  bool // or a create
	follower follower
}

func (c cell) String() string {
	request := "create"
	if c.message {
		request = "message"
	}
	return strings.Join([]string{steps[c.step], endings[c.ending], request, string(c.follower)}, "/")
}

func cells() (all []cell) {
	for s := journalBegun; s <= stateWrite; s++ {
		for e := killCLI; e <= lastEnding; e++ {
			for _, message := range []bool{false, true} {
				for _, f := range []follower{apply, planAndApply, destroy} {
					all = append(all, cell{s, e, message, f})
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
	Left              int // in the journal, when all is done
}

// want derives the outcome from what is known of the run that was ended: the
// service has accepted its request, and the state shows that.
func (c cell) want(j store, accepted, saved bool) (o outcome) {
	destroyed := c.follower == destroy && (c.message || saved)
	posts := &o.Creates
	if c.message {
		posts = &o.Messages
	}
	if accepted {
		*posts = 1
	}
	// Documented: the default folder remembers nothing once a provider has ended well.
	forgotten := accepted && !saved && c.step >= processEnd && !j.remembers()
	// Only a plugin that ended between the two records cannot tell what became of the request.
	unknown := (c.ending == killBoth || c.ending == stuck) && c.step >= journalDone && c.step <= responseRead
	switch {
	case destroyed: // with all that the journal knows of it
		o.Creates++
		if c.message && c.ending == lingers && (c.step == requestWritten || c.step == responseRead) {
			o.Left = 1 // the response came after that; no request asks for the entry again, until it is too old
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

// share is how much of the grid make test runs: one cell of 11, so that steps,
// endings, requests and followers take turns. The whole takes minutes.
const share = 11

// In the folder. Red without each of: the record before the POST, the one after
// it, the cancelled context that keeps a recorded request from being sent, the
// entries that a disturbed process leaves, the takeover, the wait for a plugin
// that still lives, Seen, and Forget.
func TestX17_crash_points(t *testing.T) {
	t.Parallel()
	runGrid(t, folder{})
}

// In a bucket, which forgets nothing. Red without: Seen.
func TestX17_crash_points_S3(t *testing.T) {
	t.Parallel()
	runGrid(t, openBucket(t))
}

func runGrid(t *testing.T, j store) {
	t.Helper()
	all := cells()
	t.Logf("the grid has %d cells", len(all))
	if os.Getenv("CRASH_POINTS") != "all" {
		var some []cell
		for i := 0; i < len(all); i += share {
			some = append(some, all[i])
		}
		all = some
	}
	prepared := prepare(t)
	for _, c := range all {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			c.run(t, j, prepared)
		})
	}
}
