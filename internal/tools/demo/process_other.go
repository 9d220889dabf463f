// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !unix

package demo

import (
	"errors"
	"os/exec"
)

// There is no way to press Ctrl-C for a child here.
const canInterrupt = false

func leadGroup(*exec.Cmd) {}

func interruptGroup(*exec.Cmd) error { return errors.ErrUnsupported }

func killGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }
