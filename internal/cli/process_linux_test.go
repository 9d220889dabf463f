// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"syscall"
	"testing"
)

// What a process cannot find out, because it has no free file descriptor, does not end a wait.
func TestThis_noFileDescriptor(t *testing.T) {
	child, _, _ := startChild(t, "plugin")
	process, alive := This(), sender(t, child)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit) })
	if process.CLIEnded() {
		t.Error("the CLI counts as ended")
	}
	if process.Ended(alive) {
		t.Error("a running process counts as ended")
	}
	if start, err := startTime(alive.PID); err == nil {
		t.Errorf("start time %q without an error", start)
	}
}
