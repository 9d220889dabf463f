// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) {
	if what := os.Getenv(childEnv); what != "" {
		children[what]()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const childEnv = "CLI_TEST_CHILD"

var children = map[string]func(){
	// run tells what it is, and stays until its stdin is closed.
	"run": func() {
		fmt.Println(This().Run)
		_, _ = io.ReadAll(os.Stdin)
	},
	// cli has a plugin, until it is killed.
	"cli": func() {
		plugin := childCommand(context.Background(), "plugin")
		plugin.Stdout = os.Stdout
		panic(plugin.Run())
	},
	// plugin tells when its CLI has ended.
	"plugin": func() {
		p := This()
		fmt.Println(p.CLIEnded())
		for !p.CLIEnded() {
			time.Sleep(time.Millisecond)
		}
		fmt.Println(p.CLIEnded())
	},
}

func childCommand(ctx context.Context, what string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+what, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	return cmd
}

func startChild(t *testing.T, what string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := childCommand(t.Context(), what)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, bufio.NewScanner(stdout)
}

func line(t *testing.T, s *bufio.Scanner) string {
	t.Helper()
	if !s.Scan() {
		t.Fatalf("the child printed nothing: %v", s.Err())
	}
	return s.Text()
}

// The processes of one CLI are one run, and only they.
func TestThis_run(t *testing.T) {
	if startTime(os.Getpid()) == "" {
		t.Skip("the start times of processes are unknown on this system")
	}
	_, one := startChild(t, "run")
	_, two := startChild(t, "run")
	if one, two := line(t, one), line(t, two); one != two || one == string(This().Run) || len(one) != 16 {
		t.Errorf("the children are in the runs %s and %s, this process in %s", one, two, This().Run)
	}
}

// A process id that is used again is another run: it has another start time.
func TestThis_reusedID(t *testing.T) {
	parent := os.Getppid()
	if want := Run(hash(fmt.Sprintln(machine(), parent, startTime(parent)))); This().Run != want {
		t.Errorf("run %s, want that of the parent's id and start time, %s", This().Run, want)
	}
}

func TestThis_cliEnded(t *testing.T) {
	parent, plugin := startChild(t, "cli")
	if got := line(t, plugin); got != "false" {
		t.Errorf("ended before it was killed: %s", got)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := line(t, plugin); got != "true" {
		t.Error(got)
	}
}

func TestEnded(t *testing.T) {
	self := This().Self
	if self.Start == "" || bootID() == "" {
		t.Skip("the ends of processes are unknown on this system")
	}
	child, stdout := startChild(t, "run")
	line(t, stdout)
	alive := Sender{Machine: machine(), PID: child.Process.Pid, Start: startTime(child.Process.Pid)}
	reused, elsewhere, unknown := alive, alive, alive
	reused.Start, elsewhere.Machine, unknown.Start = "1", "other", ""
	wantEnded := func(want ...string) {
		t.Helper()
		var got []string
		for name, sender := range map[string]Sender{"self": self, "child": alive, "reused id": reused, "elsewhere": elsewhere, "no start time": unknown} {
			if This().Ended(sender) {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ended (-want +got):\n%s", diff)
		}
	}
	wantEnded("reused id")
	_ = child.Process.Kill()
	_ = child.Wait()
	wantEnded("child", "reused id")
}

func TestHold(t *testing.T) {
	p := new(Process)
	releases := []func(){p.Hold(), p.Hold()}
	for _, release := range releases {
		short, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if p.Drain(short); short.Err() == nil {
			t.Error("did not wait")
		}
		stop()
		release()
		release() // counts once
	}
	p.Drain(t.Context())
}
