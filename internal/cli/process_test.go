// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	switch os.Getenv(childEnv) {
	case "cli": // has a plugin, until it is killed
		plugin := childCommand(context.Background(), "plugin")
		plugin.Stdout = os.Stdout
		panic(plugin.Run())
	case "plugin": // tells what it is, and when its CLI has ended
		p := This()
		fmt.Println(p.Run, p.CLIEnded(), "runs:", p.Command, p.State)
		for !p.CLIEnded() {
			time.Sleep(time.Millisecond)
		}
		fmt.Println("ended")
	default:
		os.Exit(m.Run())
	}
}

const childEnv = "CLI_TEST_CHILD"

func childCommand(ctx context.Context, what string, arguments ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], arguments...)
	cmd.Env = append(os.Environ(), childEnv+"="+what, "TF_CLI_ARGS=", "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	return cmd
}

// startChild starts a child, which is killed in the end, and returns the first line of its output, and the rest.
func startChild(t *testing.T, what string, arguments ...string) (child *exec.Cmd, first string, rest *bufio.Scanner) {
	t.Helper()
	child = childCommand(t.Context(), what, arguments...)
	stdout, err := child.StdoutPipe()
	if err = errors.Join(err, child.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
	rest = bufio.NewScanner(stdout)
	rest.Scan()
	return child, rest.Text(), rest
}

// sender is a running child.
func sender(t *testing.T, child *exec.Cmd) ProcessID {
	t.Helper()
	start, err := startTime(child.Process.Pid)
	if start == "" || err != nil {
		t.Fatalf("start time %q: %v", start, err)
	}
	return ProcessID{Machine: machine(), PID: child.Process.Pid, Start: start}
}

// The processes of one CLI are one run, and only they: a process id that is used again has another start time. A process looks
// at the command of what started it only if that was a CLI.
func TestThis(t *testing.T) {
	for cookie, command := range map[string]string{"a": "apply s", "": " "} {
		t.Setenv(startedByCLI, cookie)
		parent, got, plugin := startChild(t, "cli", "apply", "-state=s", "test")
		pid := parent.Process.Pid
		run := hash(fmt.Sprintln(machine(), pid, sender(t, parent).Start))
		if want := run + " false runs: " + command; got != want || len(run) != len("0123456789abcdef") { // an entry's name has room for that
			t.Errorf("run and end of the CLI: %q, want %q", got, want)
		}
		if err := parent.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if plugin.Scan(); plugin.Text() != "ended" {
			t.Errorf("%q: %v", plugin.Text(), plugin.Err())
		}
	}
}

func TestEnded(t *testing.T) {
	self := This().Self
	child, _, _ := startChild(t, "plugin")
	alive := sender(t, child)
	for _, state := range []string{"running", "killed", "reaped"} {
		switch state {
		case "killed": // a zombie where there are some
			_ = child.Process.Kill()
			for start, left := alive.Start, 1000; start != "" && left > 0; left-- {
				time.Sleep(time.Millisecond)
				start, _ = startTime(alive.PID)
			}
		case "reaped":
			_ = child.Wait()
		}
		hasEnded := state != "running"
		if start, err := startTime(alive.PID); (start != alive.Start) != hasEnded || err != nil {
			t.Errorf("%s: start time %q, %v; it was %q", state, start, err, alive.Start)
		}
		// Without a boot id, as on Windows, nothing is known.
		if ended := This().Ended; ended(self) || ended(alive) != (hasEnded && bootID() != "") {
			t.Errorf("child %s: ended %t, and this process %t", state, ended(alive), ended(self))
		}
	}
}

// What is unknown never ends a wait.
func TestEnded_unknown(t *testing.T) {
	s := ProcessID{Machine: "here", PID: 1, Start: "10"}
	noStart, elsewhere := s, s
	noStart.Start, elsewhere.Machine = "", "other"
	for name, test := range map[string]struct {
		boot   string
		sender ProcessID
		start  string
		err    error
		want   bool
	}{
		"reused id":                  {"boot", s, "11", nil, true},
		"no boot id":                 {"", s, "", nil, false},
		"no start time":              {"boot", noStart, "11", nil, false},
		"another machine":            {"boot", elsewhere, "", nil, false},
		"a start time without right": {"boot", s, "", errors.ErrUnsupported, false},
	} {
		startTime := func(int) (string, error) { return test.start, test.err }
		if got := ended(test.boot, "here", startTime)(test.sender); got != test.want {
			t.Errorf("%s: ended %t", name, got)
		}
	}
}

// A run that cannot be told from others has a name that no other has.
func TestNewRun(t *testing.T) {
	for _, test := range []struct {
		boot, began string
		isKnown     bool
	}{
		{"boot", "10", true}, {"boot", "", false}, {"", "", false}, {"", "10", startIsAbsolute},
	} {
		one, two := newRun(test.boot, 1, test.began), newRun(test.boot, 1, test.began)
		if (one == two) != test.isKnown {
			t.Errorf("%+v: %s, %s", test, one, two)
		}
		if len(one) != hashLength || strings.Trim(string(one), "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			t.Errorf("%+v: %q", test, one)
		}
	}
	if newRun("boot", 1, "10") == newRun("boot", 1, "11") || newRun("boot", 1, "10") == newRun("boot", 2, "10") {
		t.Error("two processes are one run")
	}
}

func TestCommand(t *testing.T) {
	for arguments, want := range map[string]string{
		"/usr/bin/tofu plan -out=a":               "plan",
		"terraform -chdir=live -no-color test -v": "test",
		"terraform -chdir=test apply":             "apply",
		"terraform apply test":                    "apply",
		"test":                                    "", // the program
		"terraform -version":                      "",
		"":                                        "",
	} {
		if got := command(strings.Fields(arguments)); got != want {
			t.Errorf("%q: %q", arguments, got)
		}
	}
}

// A flag of the command line counts before one of the variables, as in the CLI, and where the state is written before
// where it is read. (N29)
func TestStateFile(t *testing.T) {
	for _, test := range []struct{ arguments, ofCommand, ofAll, want string }{
		{"terraform apply -state=a.tfstate", "", "", "a.tfstate"},
		{"terraform apply --state a.tfstate -no-color", "", "", "a.tfstate"},
		{"terraform apply -state=a -state=b", "", "", "b"},
		{"terraform apply -state=a -state-out=b", "", "", "b"},
		{"terraform apply -state", "", "", ""},
		{"terraform apply -statex=a -var=-state=b", "", "", ""},
		{"terraform apply", "", "-state=a", "a"},
		{"terraform apply", "-state=a", "-state=b", "b"},
		{"terraform plan", "-state=a", "", ""},
		{"terraform apply -state=c", "-state=a", "-state=b", "c"},
		{"terraform apply", `-state="my state" -no-color`, "", "my state"},
		{"terraform apply", `'-state=my state'`, "", "my state"},
	} {
		t.Setenv("TF_CLI_ARGS_apply", test.ofCommand)
		t.Setenv("TF_CLI_ARGS", test.ofAll)
		if got := stateFile(strings.Fields(test.arguments)); got != test.want {
			t.Errorf("%+v: %q", test, got)
		}
	}
}
