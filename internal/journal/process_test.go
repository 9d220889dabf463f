// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The record was written after the CLI had ended, when the next run may have
// looked for it already: nothing is sent, and nothing is left of it.
func TestStores_parentGone(t *testing.T) {
	stores(t, func(t *testing.T, l Location) {
		parent := startChild(t, "parent", l)
		parent.wantLines("<nil> false")
		if err := parent.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		parent.wantLines(errNoCLI.Error()+" true", "closed")
		wantTakeOver(t, open(t, l, "next"), childKey, "job-1", "unknown", "none") // the earlier calls
	})
}

func TestCurrentRun(t *testing.T) {
	if startTime(os.Getpid()) == "" {
		t.Skip("the start times of processes are unknown on this system")
	}
	one, two := startChild(t, "run", Location{}).line(), startChild(t, "run", Location{}).line()
	if one != two || one == fmt.Sprint(CurrentRun(), " true") {
		t.Errorf("the children are in the runs %s and %s, this process in %s", one, two, CurrentRun())
	}
}

func TestSender_ended(t *testing.T) {
	self := thisProcess()
	if self.Start == "" || bootID() == "" {
		t.Skip("the ends of processes are unknown on this system")
	}
	child := startChild(t, "pending", Location{Folder: t.TempDir()})
	child.line()
	pid := child.cmd.Process.Pid
	alive := sender{Machine: machine(), PID: pid, Start: startTime(pid)}
	if alive.Start == "" || alive.Start == self.Start || self.ended() || thisProcess().Start != self.Start {
		t.Errorf("alive: %+v, this process: %+v", alive, self)
	}
	reused, elsewhere, unknown := alive, alive, alive
	reused.Start, elsewhere.Machine, unknown.Start = "1", "other", ""
	ended := func() []bool { return []bool{alive.ended(), reused.ended(), elsewhere.ended(), unknown.ended()} }
	before := ended()
	child.kill()
	if diff := cmp.Diff([][]bool{{false, true, false, false}, {true, true, false, false}}, [][]bool{before, ended()}); diff != "" {
		t.Errorf("ended, of one that is killed, a reused id, another machine, no start time: %s", diff)
	}
}

func TestProcess_drain(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		j := open(t, Location{Folder: t.TempDir()}, "run")
		p := j.process
		ctx, cancel := context.WithCancel(t.Context())
		c := j.Begin(ctx, childKey, "")
		if err := c.Sending(); err != nil {
			t.Fatal(err)
		}
		short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer stop()
		p.Drain(short)
		if short.Err() == nil {
			t.Error("did not wait for a call that has posted")
		}
		if stopped { // the CLI still listens
			p.Stopping()
		}
		cancel()
		isLost := func() bool {
			select {
			case <-p.Lost():
				return true
			default:
				return false
			}
		}
		before := isLost()
		c.Answered("job-1")
		c.End()
		if before || isLost() == stopped {
			t.Errorf("stopped is %t; lost before the call returned: %t, after it: %t", stopped, before, isLost())
		}
		p.Drain(t.Context())
	}
}

// A process that ends waits until the record of a request that had no effect is
// removed: else the next run reports it as unknown. Red without: withdrawn after
// the removal, in Sending and in Withdrawn.
func TestProcess_drainAwaitsRemoval(t *testing.T) {
	for name, end := range map[string]func(c *Call, cancel func()){
		"refused":   func(c *Call, _ func()) { _ = c.Sending(); c.Withdrawn() },
		"cancelled": func(c *Call, cancel func()) { cancel(); _ = c.Sending() },
	} {
		t.Run(name, func(t *testing.T) {
			j := open(t, Location{Named: true, Folder: t.TempDir()}, "run")
			var posted []int
			fail(j, "remove", func(context.Context) error {
				posted = append(posted, j.process.posted())
				return nil
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			end(j.Begin(ctx, childKey, ""), cancel)
			if diff := cmp.Diff([]int{1, 0}, append(posted, j.process.posted())); diff != "" {
				t.Errorf("calls that are waited for during the removal, and after it: %s", diff)
			}
		})
	}
}
