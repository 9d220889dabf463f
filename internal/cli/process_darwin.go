// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

func bootID() string {
	session, _ := unix.Sysctl("kern.bootsessionuuid")
	return session
}

// zombie is SZOMB of sys/proc.h.
const zombie = 5

// startTime is empty when the process has ended. An error means that this is unknown.
func startTime(pid int) (string, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	switch {
	case errors.Is(err, unix.ESRCH), errors.Is(err, unix.EIO): // EIO is what x/sys returns for an empty result
		return "", nil
	case err != nil:
		return "", err
	case info.Proc.P_stat == zombie:
		return "", nil
	}
	return fmt.Sprint(info.Proc.P_starttime.Sec, ".", info.Proc.P_starttime.Usec), nil
}

// argumentsOf returns the arguments of a process, the program first; nil if they cannot be read.
func argumentsOf(pid int) []string {
	found, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil || len(found) < 4 {
		return nil
	}
	// Their number, the program's path and zeros precede them. The environment follows.
	_, rest, _ := strings.Cut(string(found[4:]), "\x00")
	all := strings.Split(strings.TrimLeft(rest, "\x00"), "\x00")
	return all[:min(uint64(len(all)), uint64(binary.LittleEndian.Uint32(found)))]
}
