// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// bootID is empty: start times on Windows are absolute.
func bootID() string { return "" }

// startTime is empty when there is no such process.
func startTime(pid int) string {
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid)) //nolint:gosec // a process id fits
	if err != nil {
		return ""
	}
	defer func() { _ = windows.CloseHandle(process) }()
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(process, &created, &exited, &kernel, &user); err != nil || exited.HighDateTime != 0 {
		return ""
	}
	return fmt.Sprint(created.Nanoseconds())
}
