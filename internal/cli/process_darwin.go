// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func bootID() string {
	session, _ := unix.Sysctl("kern.bootsessionuuid")
	return session
}

// startTime is empty when there is no such process.
func startTime(pid int) string {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(info.Proc.P_pid) != pid {
		return ""
	}
	return fmt.Sprint(info.Proc.P_starttime.Sec, ".", info.Proc.P_starttime.Usec)
}
