// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"cmp"
	"os"
	"regexp"
	"strings"
)

// startedByCLI is the environment variable that a CLI sets for its plugins. Without it, the parent
// is something else, for example "go test".
const startedByCLI = "TF_PLUGIN_MAGIC_COOKIE"

// commandLine returns that of the parent, if it is a CLI whose command line can be read.
func commandLine(parent int) []string {
	if os.Getenv(startedByCLI) == "" {
		return nil
	}
	return argumentsOf(parent)
}

// command returns the command of a command line, which starts with the program. The flags before a
// command have their values in the same argument.
func command(arguments []string) string {
	for _, argument := range arguments[min(1, len(arguments)):] {
		if !strings.HasPrefix(argument, "-") {
			return argument
		}
	}
	return ""
}

var (
	shellWord = regexp.MustCompile(`(?:[^\s"']|"[^"]*"|'[^']*')+`)
	stateFlag = regexp.MustCompile(`^--?(state|state-out)(?:=(.*))?$`)
)

// stateFile returns the file that -state or -state-out names, or an empty text. The CLI puts the
// flags of its variables before those of the command line, of which the last one counts.
func stateFile(arguments []string) string {
	var all []string
	for _, variable := range []string{"TF_CLI_ARGS_" + command(arguments), "TF_CLI_ARGS"} {
		for _, word := range shellWord.FindAllString(os.Getenv(variable), -1) {
			all = append(all, strings.NewReplacer(`"`, "", "'", "").Replace(word))
		}
	}
	all = append(all, arguments...)
	files := map[string]string{} // the last of each flag counts
	for i, argument := range all {
		switch flag := stateFlag.FindStringSubmatch(argument); {
		case flag == nil:
		case strings.Contains(argument, "="):
			files[flag[1]] = flag[2]
		case i+1 < len(all):
			files[flag[1]] = all[i+1]
		}
	}
	return cmp.Or(files["state-out"], files["state"])
}
