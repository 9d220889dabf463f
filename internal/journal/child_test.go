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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const childEnv = "JOURNAL_TEST_CHILD"

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
		fmt.Println(first.Sending(), p.CLIEnded())
		answered := j.Begin(context.Background(), childKey, "")
		_ = answered.Sending()
		answered.Answered("job-1")
		answered.End()
		_, _ = io.ReadAll(os.Stdin)
		for os.Getppid() == p.parent {
			time.Sleep(time.Millisecond)
		}
		second := j.Begin(context.Background(), childKey, "")
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
	p := NewProcess(CurrentRun(), func(err error) { fmt.Println("reported:", err) })
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
	binary, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.CommandContext(ctx, binary)
	cmd.Env = append(os.Environ(), childEnv+"="+what, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	return cmd
}

// wantLines asserts what the child prints next.
func (c *child) wantLines(want ...string) {
	c.t.Helper()
	for _, want := range want {
		if diff := cmp.Diff(want, c.line()); diff != "" {
			c.t.Errorf("printed (-want +got):\n%s", diff)
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
