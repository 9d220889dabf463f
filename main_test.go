// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
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
