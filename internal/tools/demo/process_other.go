// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !unix

package main

import (
	"errors"
	"os/exec"
	"syscall"
)

// There is no way to press Ctrl-C for a child here.
const canInterrupt = false

func leadGroup(*exec.Cmd) {}

func signalGroup(*exec.Cmd, syscall.Signal) error { return errors.ErrUnsupported }
