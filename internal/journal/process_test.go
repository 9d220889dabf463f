// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
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
		wantTakeOver(t, next(t, l, "next"), childKey, "job-1", "unknown", "none") // the earlier calls
	})
}

func TestCurrentRun(t *testing.T) {
	if startTime(os.Getpid()) == "" {
		t.Skip("the start times of processes are unknown on this system")
	}
	one, two := startChild(t, "run", Location{}).line(), startChild(t, "run", Location{}).line()
	if one != two || one == string(ThisHost().Run) {
		t.Errorf("the children are in the runs %s and %s, this process in %s", one, two, ThisHost().Run)
	}
}

func TestSender_ended(t *testing.T) {
	self := ThisHost().Self
	if self.Start == "" || bootID() == "" {
		t.Skip("the ends of processes are unknown on this system")
	}
	child := startChild(t, "pending", Location{Folder: t.TempDir()})
	child.line()
	pid := child.cmd.Process.Pid
	alive := Sender{Machine: machine(), PID: pid, Start: startTime(pid)}
	reused, elsewhere, unknown := alive, alive, alive
	reused.Start, elsewhere.Machine, unknown.Start = "1", "other", ""
	wantEnded := func(want ...string) {
		t.Helper()
		var got []string
		for name, sender := range map[string]Sender{"self": self, "child": alive, "reused id": reused, "elsewhere": elsewhere, "no start time": unknown} {
			if ended()(sender) {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ended (-want +got):\n%s", diff)
		}
	}
	wantEnded("reused id")
	child.kill()
	wantEnded("child", "reused id")
}

func TestProcess_drain(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		j := open(t, Location{Folder: t.TempDir()}, "run")
		p := j.process
		ctx, cancel := context.WithCancel(t.Context())
		c := sendIn(ctx, t, j, create, "")
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
		before := p.hasLost.Load()
		c.Accepted("job-1")
		c.End()
		lost := false
		select {
		case <-p.Lost():
			lost = true
		default:
		}
		if before || lost == stopped {
			t.Errorf("stopped is %t; lost before the call returned: %t, after it: %t", stopped, before, lost)
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
			end(j.Begin(ctx, Request{Key: create}), cancel)
			if diff := cmp.Diff([]int{1, 0}, append(posted, j.process.posted())); diff != "" {
				t.Errorf("calls that are waited for during the removal, and after it: %s", diff)
			}
		})
	}
}

const childEnv = "JOURNAL_TEST_CHILD"

var childKey = newKey(createPrefix, "of a child")

var children = map[string]func(){
	// pending is about to POST until it is killed.
	"pending": func() {
		_, j := childJournal()
		fmt.Println(j.Begin(context.Background(), Request{Key: childKey}).Sending())
		_, _ = io.ReadAll(os.Stdin)
	},
	// run tells what it is.
	"run": func() { fmt.Println(ThisHost().Run) },
	// parent lives as long as nobody kills it, and its child longer.
	"parent": func() {
		cmd := childCommand(context.Background(), "orphan")
		cmd.Stdout = os.Stdout
		if _, err := cmd.StdinPipe(); err != nil {
			panic(err)
		}
		panic(cmd.Run())
	},
	// orphan wants to POST when its parent is gone.
	"orphan": func() {
		p, j := childJournal()
		first := j.Begin(context.Background(), Request{Key: childKey})
		fmt.Println(first.Sending(), p.CLIEnded())
		answered := j.Begin(context.Background(), Request{Key: childKey})
		_ = answered.Sending()
		answered.Accepted("job-1")
		answered.End()
		_, _ = io.ReadAll(os.Stdin)
		for !p.CLIEnded() { // on Windows the parent's id stays
			time.Sleep(time.Millisecond)
		}
		second := j.Begin(context.Background(), Request{Key: childKey})
		fmt.Println(second.Sending(), p.CLIEnded())
		first.Unknown()
		first.End()
		p.Close(context.Background())
		fmt.Println("closed")
	},
}

// childJournal opens the journal that the test has named.
func childJournal() (*Process, *Journal) {
	var l Location
	location, _ := os.LookupEnv(childEnv + "_LOCATION")
	if err := json.Unmarshal([]byte(location), &l); err != nil {
		panic(err)
	}
	p := NewProcess(ThisHost(), func(err error) { fmt.Println("reported:", err) })
	j, err := p.Open(Options{Location: l, RequestTimeout: time.Hour})
	if err != nil {
		panic(err)
	}
	return p, j
}

// child is a process that does what children says.
type child struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout *bufio.Scanner
}

func startChild(t *testing.T, what string, l Location) *child {
	t.Helper()
	location, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: childCommand(t.Context(), what)}
	c.cmd.Env = append(c.cmd.Env, childEnv+"_LOCATION="+string(location))
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	c.stdout = bufio.NewScanner(stdout)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	return c
}

func childCommand(ctx context.Context, what string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+what, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	return cmd
}

// wantLines asserts what the child prints next.
func (c *child) wantLines(want ...string) {
	c.t.Helper()
	for _, want := range want {
		if got := c.line(); got != want {
			c.t.Errorf("printed %q, want %q", got, want)
		}
	}
}

// line is what the child prints next.
func (c *child) line() string {
	c.t.Helper()
	if !c.stdout.Scan() {
		c.t.Fatalf("the child printed nothing: %v", c.stdout.Err())
	}
	return c.stdout.Text()
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}
