// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package tfcli

import (
	"os"
	"strings"
)

// TestEnv returns the variables, as KEY=VALUE, that make acceptance tests run
// on this CLI. Unset first what IsForeign names.
func (c CLI) TestEnv() []string {
	env := []string{
		"CHECKPOINT_DISABLE=1",
		"TF_CLI_CONFIG_FILE=" + os.DevNull, // whatever dev_overrides or mirrors the user has
		"TF_ACC=1",
		"TF_ACC_TERRAFORM_PATH=" + c.Path,
		// Without effect beside a path, but read: so Go's test cache forgets
		// results when another version is installed under the same path.
		"TF_ACC_TERRAFORM_VERSION=" + c.Version.String(),
	}
	if c.Product == Tofu {
		// A provider without a source address belongs to another registry there;
		// with Terraform's, OpenTofu would not find the provider under test.
		env = append(env,
			"TF_ACC_PROVIDER_HOST="+tofuRegistry,
			"TF_ACC_PROVIDER_NAMESPACE=hashicorp",
		)
	}
	return env
}

// IsForeign says whether a variable (KEY=VALUE, as os.Environ gives it) belongs
// to somebody's own work with Terraform or with the provider and would change
// what a test sees: logging, arguments, data folder, workspace, input variables,
// and where a real key may be sent. EnvCLI is ours.
func IsForeign(entry string) bool {
	name, _, _ := strings.Cut(entry, "=")
	return name != EnvCLI && (strings.HasPrefix(name, "TF_") || strings.HasPrefix(name, "AGENT_"))
}
