// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"os"
	"strings"

	"github.com/shirou/gopsutil/v4/process"
)

// startedByCLI is the environment variable that a CLI sets for its plugins. Without it, the parent is something else, for
// example "go test".
const startedByCLI = "TF_PLUGIN_MAGIC_COOKIE"

// runsTest reports whether the parent is a CLI that runs "terraform test" or "tofu test". A command line that cannot be read
// counts as another command.
func runsTest(parent int) bool {
	if os.Getenv(startedByCLI) == "" {
		return false
	}
	arguments, err := (&process.Process{Pid: int32(parent)}).CmdlineSlice() //nolint:gosec // a process id fits
	return err == nil && isTest(arguments)
}

// isTest reports whether a command line, which starts with the program, runs the command "test". The flags before a command
// have their values in the same argument.
func isTest(arguments []string) bool {
	for _, argument := range arguments[min(1, len(arguments)):] {
		if !strings.HasPrefix(argument, "-") {
			return argument == "test"
		}
	}
	return false
}
