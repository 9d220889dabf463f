// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

const canInterrupt = true

// leadGroup makes a command that was not started yet the leader of a process
// group: a terminal sends Ctrl-C to a group, the CLI with its plugins.
func leadGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// signalGroup sends a signal to the command's group.
func signalGroup(cmd *exec.Cmd, signal syscall.Signal) error {
	return syscall.Kill(-cmd.Process.Pid, signal)
}
