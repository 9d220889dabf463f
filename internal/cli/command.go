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

// commandOf returns the command that the parent runs, for example "test", if the parent is a CLI whose command line can be read.
func commandOf(parent int) string {
	if os.Getenv(startedByCLI) == "" {
		return ""
	}
	arguments, err := (&process.Process{Pid: int32(parent)}).CmdlineSlice() //nolint:gosec // a process id fits
	if err != nil {
		return ""
	}
	return command(arguments)
}

// command returns the command of a command line, which starts with the program. The flags before a command have their values in the same
// argument.
func command(arguments []string) string {
	for _, argument := range arguments[min(1, len(arguments)):] {
		if !strings.HasPrefix(argument, "-") {
			return argument
		}
	}
	return ""
}
