// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build linux || darwin

package cli

import "os"

// startIsAbsolute is false: a start time counts from the boot, or moves with the clock (macOS).
const startIsAbsolute = false

// cliEnded returns CLIEnded: an orphan gets another parent.
func cliEnded(parent int) func() bool {
	return func() bool { return os.Getppid() != parent }
}
