// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bufio"
	"math"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
)

// envPlugin makes the test binary the plugin.
const envPlugin = "AGENT_TEST_IS_PLUGIN"

func TestMain(m *testing.M) {
	if os.Getenv(envPlugin) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// A plugin for a debugger ends when somebody closes its terminal, or asks it to. Red
// without: WithManagedDebugStopSignals.
func TestDebug_stops(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("these signals cannot be sent there")
	}
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		plugin := exec.CommandContext(t.Context(), os.Args[0], "-debug")
		plugin.Env = append(os.Environ(), envPlugin+"=1")
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
		for lines.Scan() { // until it has ended
		}
		if err := plugin.Wait(); err != nil {
			t.Errorf("%v: %v", signal, err)
		}
	}
}

func TestTuneMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	for _, test := range []struct {
		gogc, gomemlimit string // what Go itself has made of them is not touched
		percent          int
		limit            int64
	}{
		{"", "", 400, 100 << 20},
		{"100", "", 100, 100 << 20},
		{"", "off", 400, math.MaxInt64},
	} {
		t.Setenv("GOGC", test.gogc)
		t.Setenv("GOMEMLIMIT", test.gomemlimit)
		debug.SetGCPercent(100)
		debug.SetMemoryLimit(math.MaxInt64)
		tuneMemory()
		if percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1); percent != test.percent || limit != test.limit {
			t.Errorf("GOGC=%q GOMEMLIMIT=%q: %d%%, %d bytes; want %d%%, %d", test.gogc, test.gomemlimit, percent, limit, test.percent, test.limit)
		}
	}
}
