// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"errors"
	"fmt"

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
