// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What a process cannot find out, because it has no free file descriptor, does not end a wait. What /proc does not show may exist: it
// can hide the processes of other users, for which process 0 stands.
func TestThis_unknown(t *testing.T) {
	if start, err := startTime(0); err == nil {
		t.Errorf("hidden: start time %q without an error", start)
	}
	child, _, _ := startChild(t, "plugin")
	process, alive := This(), sender(t, child)
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	if err = errors.Join(err, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Max: limit.Max})); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit) })
	if start, err := startTime(alive.PID); err == nil || process.CLIEnded() || process.Ended(alive) {
		t.Errorf("start time %q, %v; the CLI, or a running process, counts as ended", start, err)
	}
}

// A boot id without the pid namespace, or the other way round, could be that of several machines.
func TestReadBootID(t *testing.T) {
	for _, test := range []struct{ boot, namespace, want string }{
		{"boot", "pid:[1]", "bootpid:[1]"}, {"boot", "", ""}, {"", "pid:[1]", ""},
	} {
		proc := t.TempDir()
		random, namespaces := filepath.Join(proc, "sys/kernel/random"), filepath.Join(proc, "self/ns")
		err := errors.Join(os.MkdirAll(random, 0o700), os.MkdirAll(namespaces, 0o700))
		if test.boot != "" {
			err = errors.Join(err, os.WriteFile(filepath.Join(random, "boot_id"), []byte(test.boot), 0o600))
		}
		if test.namespace != "" {
			err = errors.Join(err, os.Symlink(test.namespace, filepath.Join(namespaces, "pid")))
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := readBootID(proc); got != test.want {
			t.Errorf("%+v: %q", test, got)
		}
	}
}
