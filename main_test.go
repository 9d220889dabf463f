// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
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

// A check needs no CLI and no configuration. A signal ends it.
func TestCheckJournal(t *testing.T) {
	requested := make(chan struct{}, 100)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requested <- struct{}{}
		<-r.Context().Done()
	}))
	defer silent.Close()
	dir := t.TempDir()
	for _, test := range []struct {
		url, want string
		works     bool
	}{
		{"", ".agent-journal", true},
		{dir, "All is well", true},
		{filepath.Join(dir, "missing"), "FAILED", false},
		{"s3://user@bucket", "the journal's URL must be", false},
		{"s3://bucket?endpoint=" + silent.URL, "Interrupted", false},
	} {
		if test.want == "Interrupted" && runtime.GOOS == "windows" {
			continue // it has no such signal
		}
		check := exec.CommandContext(t.Context(), os.Args[0], "-check-journal", test.url)
		check.Dir = dir
		check.Env = append(os.Environ(), envPlugin+"=1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_CA_BUNDLE=")
		var printed strings.Builder
		check.Stdout, check.Stderr = &printed, &printed
		if err := check.Start(); err != nil {
			t.Fatal(err)
		}
		if test.want == "Interrupted" {
			<-requested
			_ = check.Process.Signal(os.Interrupt)
		}
		err := check.Wait()
		if !strings.Contains(printed.String(), test.want) || (err == nil) != test.works || !test.works && check.ProcessState.ExitCode() != 1 {
			t.Errorf("%q: %v\n%s", test.url, err, &printed)
		}
	}
}
