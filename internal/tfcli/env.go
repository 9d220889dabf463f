// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package tfcli

import (
	"os"
	"slices"
	"strings"
)

// TestEnv returns the variables, as KEY=VALUE, that make acceptance tests run
// on this CLI. Unset first what ForeignEnv names.
func (c CLI) TestEnv() []string {
	env := append(neutralEnv(),
		"TF_ACC=1",
		"TF_ACC_TERRAFORM_PATH="+c.Path,
		// Without effect beside a path, but read: so Go's test cache forgets
		// results when another version is installed under the same path.
		"TF_ACC_TERRAFORM_VERSION="+c.Version.String(),
	)
	if c.Product == Tofu {
		// A provider without a source address belongs to another registry there;
		// with Terraform's, OpenTofu would not find the provider under test.
		env = append(env,
			"TF_ACC_PROVIDER_HOST=registry.opentofu.org",
			"TF_ACC_PROVIDER_NAMESPACE=hashicorp",
		)
	}
	return env
}

// ForeignEnv returns the names of those variables in environ (KEY=VALUE, as
// os.Environ gives them) that belong to somebody's own work with Terraform or
// with the provider and would change what a test sees: logging, arguments,
// data folder, workspace, input variables, and where a real key may be sent.
func ForeignEnv(environ []string) []string {
	var names []string
	for _, entry := range environ {
		if isForeign(entry) {
			name, _, _ := strings.Cut(entry, "=")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func isForeign(entry string) bool {
	name, _, _ := strings.Cut(entry, "=")
	if name == EnvCLI {
		return false // ours: it says which CLI to use
	}
	return strings.HasPrefix(name, "TF_") || strings.HasPrefix(name, "AGENT_")
}

// neutralEnv keeps a CLI from reading the user's configuration, whose
// dev_overrides or mirrors would change results, and from calling home.
func neutralEnv() []string {
	return []string{"CHECKPOINT_DISABLE=1", "TF_CLI_CONFIG_FILE=" + os.DevNull}
}
