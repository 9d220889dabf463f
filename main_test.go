// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"strings"
	"syscall"
	"testing"
)

// envPlugin makes the test binary the plugin.
const envPlugin = "AGENT_TEST_IS_PLUGIN"

func TestMain(m *testing.M) {
	if os.Getenv(envPlugin) != "" {
		main()
		limits := []metrics.Sample{{Name: "/gc/gogc:percent"}, {Name: "/gc/gomemlimit:bytes"}}
		metrics.Read(limits)
		fmt.Println("limits", limits[0].Value.Uint64(), limits[1].Value.Uint64())
		return
	}
	os.Exit(m.Run())
}

// A plugin for a debugger ends when somebody closes its terminal, or asks it to. It has the limits that main sets, or
// those of the environment.
//
// Red without: WithManagedDebugStopSignals, SetGCPercent, SetMemoryLimit, and the condition of each.
func TestDebug_stops(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("these signals cannot be sent there")
	}
	for signal, test := range map[os.Signal]struct{ env, limits string }{
		os.Interrupt:    {"GOGC=", "limits 400 134217728"},
		syscall.SIGTERM: {"GOGC=50", "limits 50 134217728"},
		syscall.SIGHUP:  {"GOMEMLIMIT=1GiB", "limits 400 1073741824"},
	} {
		plugin := exec.CommandContext(t.Context(), os.Args[0], "-debug")
		plugin.Env = append(os.Environ(), envPlugin+"=1", "GOGC=", "GOMEMLIMIT=", test.env)
		stdout, err := plugin.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := plugin.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(stdout)
		for lines.Scan() && !strings.Contains(lines.Text(), "TF_REATTACH_PROVIDERS") {
		}
		if err := plugin.Process.Signal(signal); err != nil {
			t.Errorf("%v: %v", signal, err)
		}
		last := ""
		for lines.Scan() { // until it has ended
			last = lines.Text()
		}
		if last != test.limits {
			t.Errorf("%s: %q, want %q", test.env, last, test.limits)
		}
		if err := plugin.Wait(); err != nil {
			t.Errorf("%v: %v", signal, err)
		}
	}
}

// A process that cannot serve says why, although nobody has asked for a log. Red without: SetOutput in main.
func TestFailure_isShown(t *testing.T) {
	t.Parallel() // go-plugin takes two seconds
	if runtime.GOOS == "windows" {
		t.Skip("TMPDIR means nothing there")
	}
	plugin := exec.CommandContext(t.Context(), os.Args[0], "-debug")
	plugin.Env = append(os.Environ(), envPlugin+"=1", "TMPDIR="+t.TempDir()+"/missing")
	if shown, err := plugin.CombinedOutput(); err == nil || !strings.Contains(string(shown), "timeout waiting on reattach configuration") {
		t.Errorf("%v\n%s", err, shown)
	}
}
