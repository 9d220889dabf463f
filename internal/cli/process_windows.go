// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// bootID is empty: no documented call returns one, and a machine's id is the same in its clones.
func bootID() string { return "" }

// startIsAbsolute means that a start time is a date, with a resolution of 100 ns. Together with the
// process id and the name of the host, it identifies a process across boots.
const startIsAbsolute = true

// startTime is empty when the process has ended. An error means that this is unknown.
func startTime(pid int) (string, error) {
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid)) //nolint:gosec // a process id fits
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
		return "", nil // no process has this id
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = windows.CloseHandle(process) }()
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(process, &created, &exited, &kernel, &user); err != nil || exited.HighDateTime != 0 {
		return "", err
	}
	return fmt.Sprint(created.Nanoseconds()), nil
}

// cliEnded returns CLIEnded. An orphan keeps its parent's id, so this waits for the
// parent's handle, which stays open: until then, no other process gets that id.
func cliEnded(parent int) func() bool {
	process, _ := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(parent)) //nolint:gosec // a process id fits
	return func() bool {
		event, err := windows.WaitForSingleObject(process, 0) // fails without a handle
		return err == nil && event == windows.WAIT_OBJECT_0
	}
}

// argumentsOf returns the arguments of a process, the program first; nil if they cannot be read.
func argumentsOf(pid int) []string {
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid)) //nolint:gosec // a process id fits
	if err != nil {
		return nil
	}
	defer func() { _ = windows.CloseHandle(process) }()
	var found struct {
		windows.NTUnicodeString

		text [1 << 15]uint16 // no command line is longer
	}
	var length uint32
	err = windows.NtQueryInformationProcess(process, windows.ProcessCommandLineInformation,
		unsafe.Pointer(&found), uint32(unsafe.Sizeof(found)), &length) //nolint:gosec // the call needs a pointer
	if err != nil {
		return nil
	}
	all, _ := windows.DecomposeCommandLine(found.String())
	return all
}
