// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package plugin

import (
	"cmp"
	"os"
	"runtime"
	"strings"
)

// TakeEnvironment removes the variables that can have the key or a prompt from the environment, and
// returns what reads these and all others from now on. The libraries of the clouds start processes for credentials,
// such as az or a profile's credential_process, which inherit the rest.
func TakeEnvironment() (getenv func(string) string) {
	spelled := func(name string) string {
		if runtime.GOOS == "windows" { // where case does not count
			name = strings.ToUpper(name)
		}
		return name
	}
	taken := map[string]string{}
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		if key := spelled(name); strings.HasPrefix(key, "AGENT_") || strings.HasPrefix(key, "TF_VAR_") {
			taken[key] = value
			_ = os.Unsetenv(name)
		}
	}
	return func(name string) string { return cmp.Or(taken[spelled(name)], os.Getenv(name)) }
}
