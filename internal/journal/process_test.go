// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var childKey = CreateKey("of a child")

var children = map[string]func(){
	// pending is about to POST until it is killed.
	"pending": func() {
		_, j := childJournal()
		fmt.Println(j.Begin(context.Background(), childKey, "").Sending())
		_, _ = io.ReadAll(os.Stdin)
	},
	// run tells what it is.
	"run": func() { fmt.Println(CurrentRun(), startTime(os.Getpid()) != "") },
	// parent lives as long as nobody kills it, and its child longer.
	"parent": func() {
		cmd := childCommand(context.Background(), "orphan")
		cmd.Stdout = os.Stdout
		if _, err := cmd.StdinPipe(); err != nil {
			panic(err)
		}
		if err := cmd.Run(); err != nil {
			panic(err)
		}
	},
	// orphan wants to POST when its parent is gone.
	"orphan": func() {
		p, j := childJournal()
		first := j.Begin(context.Background(), childKey, "")
		fmt.Println(first.Sending(), p.Orphaned())
		answered := j.Begin(context.Background(), childKey, "")
		_ = answered.Sending()
		answered.Answered("job-1")
		answered.End()
		_, _ = io.ReadAll(os.Stdin)
		for os.Getppid() == p.parent {
			time.Sleep(time.Millisecond)
		}
		second := j.Begin(context.Background(), childKey, "")
		fmt.Println(second.Sending(), p.Orphaned())
		first.Unknown()
		first.End()
		p.Close(context.Background())
		fmt.Println("closed")
	},
}

// The record was written after the CLI had ended, when the next run may have
// looked for it already: nothing is sent, and nothing is left of it.
func TestStores_parentGone(t *testing.T) {
	places(t, func(t *testing.T, l Location) {
		parent := startChild(t, "parent", l)
		if diff := cmp.Diff("<nil> false", parent.line()); diff != "" {
			t.Fatal(diff)
		}
		if err := parent.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{errNoCLI.Error() + " true", "closed"}, []string{parent.line(), parent.line()}); diff != "" {
			t.Error(diff)
		}
		_, next := open(t, l, "next")
		if got := takers(t, childKey, next, next); !cmp.Equal(got, []string{"job-1", "unknown"}) { // the earlier calls
			t.Errorf("took over %q", got)
		}
	})
}

func TestCurrentRun(t *testing.T) {
	if startTime(os.Getpid()) == "" {
		t.Skip("the start times of processes are unknown on this system")
	}
	first, second := startChild(t, "run", Location{}), startChild(t, "run", Location{})
	one, two := first.line(), second.line()
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
	if alive.Start == "" || alive.Start == self.Start || alive.ended() || self.ended() || thisProcess().Start != self.Start {
		t.Errorf("alive: %+v, this process: %+v", alive, self)
	}
	reused, elsewhere, unknown := alive, alive, alive
	reused.Start, elsewhere.Machine, unknown.Start = "1", "other", ""
	if !reused.ended() || unknown.ended() {
		t.Errorf("alive: ended with another start time is %t, without a start time %t", reused.ended(), unknown.ended())
	}
	child.kill()
	if !alive.ended() || elsewhere.ended() || unknown.ended() {
		t.Errorf("killed: ended is %t, on another machine %t, without a start time %t", alive.ended(), elsewhere.ended(), unknown.ended())
	}
}

func TestProcess_drain(t *testing.T) {
	p, j := open(t, Location{Folder: t.TempDir()}, "run")
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
	cancel()
	select {
	case <-p.Lost():
		t.Error("lost before the call returned")
	default:
	}
	c.Answered("job-1")
	c.End()
	<-p.Lost()
	p.Drain(t.Context())

	p, j = open(t, Location{Folder: t.TempDir()}, "run")
	ctx, cancel = context.WithCancel(t.Context())
	c = j.Begin(ctx, childKey, "")
	if err := c.Sending(); err != nil {
		t.Fatal(err)
	}
	p.Stopping()
	cancel()
	c.End()
	select {
	case <-p.Lost():
		t.Error("lost, although the CLI that asked for a stop still listens")
	default:
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
			p, j := open(t, Location{Named: true, Folder: t.TempDir()}, "run")
			removed := 0
			fail(j, func(_ context.Context, op string) error {
				if op == "remove" {
					if removed++; p.posted() != 1 {
						t.Error("the process would not wait for the removal")
					}
				}
				return nil
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			end(j.Begin(ctx, childKey, ""), cancel)
			if removed != 1 || p.posted() != 0 {
				t.Errorf("%d removals, then %d calls are waited for; want 1 and 0", removed, p.posted())
			}
		})
	}
}

func TestNil(t *testing.T) {
	var p *Process
	j, err := p.Open(Options{})
	if j != nil || err != nil {
		t.Fatal(j, err)
	}
	c := j.Begin(t.Context(), childKey, "")
	o, takeErr := j.TakeOver(t.Context(), childKey)
	announced, announceErr := j.Announce(t.Context(), childKey)
	for _, err := range []error{c.Sending(), c.Unrecorded(), takeErr, announceErr, j.Seen(t.Context(), "job", c.Ref()), j.Imported(t.Context(), "job"), j.Forget(t.Context(), "job")} {
		if err != nil {
			t.Error(err)
		}
	}
	c.Answered("job")
	c.Withdrawn()
	c.Unknown()
	c.End()
	if o != nil || announced != nil || j.TookOver(t.Context(), "job") {
		t.Error("a journal that keeps nothing knows something")
	}
}
