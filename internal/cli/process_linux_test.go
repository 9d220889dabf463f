// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"
	"testing/fstest"
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
		files := fstest.MapFS{}
		if test.boot != "" {
			files["sys/kernel/random/boot_id"] = &fstest.MapFile{Data: []byte(test.boot)}
		}
		if test.namespace != "" {
			files["self/ns/pid"] = &fstest.MapFile{Data: []byte(test.namespace), Mode: fs.ModeSymlink}
		}
		if err := os.CopyFS(proc, files); err != nil {
			t.Fatal(err)
		}
		if got := readBootID(proc); got != test.want {
			t.Errorf("%+v: %q", test, got)
		}
	}
}
