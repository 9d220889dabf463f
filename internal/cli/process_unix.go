// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build linux || darwin

package cli

import "os"

// cliEnded returns CLIEnded: an orphan gets another parent.
func cliEnded(parent int) func() bool {
	return func() bool { return os.Getppid() != parent }
}
