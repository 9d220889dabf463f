// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// bootID changes with each boot and each pid namespace. It is empty if one of them is unknown.
func bootID() string { return readBootID("/proc") }

func readBootID(proc string) string {
	boot, err := os.ReadFile(filepath.Join(proc, "sys/kernel/random/boot_id")) //nolint:gosec // a constant but in tests
	namespace, err2 := os.Readlink(filepath.Join(proc, "self/ns/pid"))
	if err != nil || err2 != nil || len(boot) == 0 {
		return ""
	}
	return string(boot) + namespace
}

// startTime is empty when the process has ended, as a zombie has. An error means that this is
// unknown.
func startTime(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, fs.ErrNotExist) && errors.Is(unix.Kill(pid, 0), unix.ESRCH) { // /proc may hide processes of other users
		return "", nil
	}
	// The fields after the command's name, which may contain anything. State is field 3, the start
	// time field 22.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	switch {
	case err != nil:
		return "", err
	case len(fields) < 20:
		return "", fmt.Errorf("process %d has no start time: %q", pid, stat)
	case string(fields[0]) == "Z":
		return "", nil
	}
	return string(fields[19]), nil
}

// argumentsOf returns the arguments of a process, the program first; an empty one on failure.
func argumentsOf(pid int) []string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}
