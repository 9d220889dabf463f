// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package tfcli finds a Terraform-compatible CLI for this project's tests and
// demo, and installs the provider for it. It does not ship.
package tfcli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/go-version"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/source"
)

// The products that CLI.Product names.
const (
	Terraform = "terraform"
	Tofu      = "tofu"
)

// CLI is an executable that has reported its version.
type CLI struct {
	Path    string           // absolute
	Product string           // Terraform or Tofu
	Version *version.Version // never nil
}

// Name is product and version, such as "terraform 1.16.3".
func (c CLI) Name() string { return c.Product + " " + c.Version.String() }

// String is Name and Path, separated by a space.
func (c CLI) String() string { return c.Name() + " " + c.Path }

// HasActions says whether the CLI has actions: Terraform does since 1.14.
func (c CLI) HasActions() bool {
	return c.Product == Terraform && c.Version.Core().GreaterThanOrEqual(version.Must(version.NewVersion("1.14.0")))
}

// Command prepares a call of the CLI with a CLI configuration file, in the
// current folder. The user's own settings for Terraform and for the provider do
// not reach it: an argument or a log level there would change what it prints.
// Append to Env what it needs.
func (c CLI) Command(ctx context.Context, configFile string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.Path, args...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), IsForeign), "CHECKPOINT_DISABLE=1", "TF_CLI_CONFIG_FILE="+configFile)
	return cmd
}

// ForTests finds the CLI that the tests of this process use, as Find does, but downloads and builds nothing. It makes acceptance
// tests run on it, whatever the user's own settings are. Without one, the path is empty and NoCLI says why tests are skipped.
func ForTests(ctx context.Context) (CLI, error) {
	ClearEnv()
	c, err := there(ctx, os.Stderr)
	if errors.Is(err, errNone) {
		return CLI{}, nil
	}
	if err != nil {
		return CLI{}, err
	}
	env := map[string]string{
		EnvCLI:                  c.Path, // what the tests start finds it, too
		"CHECKPOINT_DISABLE":    "1",
		"TF_CLI_CONFIG_FILE":    os.DevNull, // no dev_overrides or mirrors of the user
		"TF_ACC":                "1",
		"TF_ACC_TERRAFORM_PATH": c.Path,
	}
	if c.Product == Tofu {
		// A provider without a source address belongs to another registry there;
		// with Terraform's, OpenTofu would not find the provider under test.
		env["TF_ACC_PROVIDER_HOST"], env["TF_ACC_PROVIDER_NAMESPACE"] = tofuRegistry, "hashicorp"
	}
	for name, value := range env {
		err = errors.Join(err, os.Setenv(name, value))
	}
	return c, err
}

// NoCLI is why a test that needs a CLI is skipped.
const NoCLI = "no terraform or tofu on PATH: make test downloads or builds one"

// ClearEnv removes from the environment of a test what IsForeign, but for the log level.
func ClearEnv() {
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if IsForeign(entry) && !strings.HasPrefix(name, "TF_LOG") {
			_ = os.Unsetenv(name)
		}
	}
}

// IsForeign says whether a variable (KEY=VALUE) belongs to somebody's own work
// with Terraform or with the provider and would change what a test sees: log
// level, arguments, workspace, input variables, the service and its key, and that it
// runs in a pipeline. What begins with AGENT_TEST_ is for the tests.
func IsForeign(entry string) bool {
	name, _, _ := strings.Cut(entry, "=")
	return slices.Contains(RunnerVariables(), name) || name != EnvCLI && !strings.HasPrefix(name, "AGENT_TEST_") && (strings.HasPrefix(name, "TF_") || strings.HasPrefix(name, "AGENT_"))
}

// RunnerVariables are those by which the provider knows that a pipeline runs, one of each host.
func RunnerVariables() []string {
	return []string{
		"CI", "TF_IN_AUTOMATION", "TF_BUILD", "TFC_RUN_ID", "TF_VAR_spacelift_run_id", "ENV0_ENVIRONMENT_ID", "SCALR_RUN_ID",
		"ATLANTIS_TERRAFORM_VERSION", "JENKINS_URL", "TEAMCITY_VERSION", "CODEBUILD_BUILD_ID",
	}
}

// inspect asks the executable, a path or a name on PATH, for its version.
func inspect(ctx context.Context, name string) (CLI, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return CLI{}, err
	}
	// Tests run in other folders, where a relative path leads nowhere.
	path, err = filepath.Abs(path)
	if err != nil {
		return CLI{}, err
	}
	cli := CLI{Path: path}
	text, err := source.Output(cli.Command(ctx, os.DevNull, "version"))
	if err != nil {
		return CLI{}, err
	}
	var title, number string // "Terraform v1.16.3"
	_, _ = fmt.Sscan(text, &title, &number)
	cli.Product = map[string]string{"Terraform": Terraform, "OpenTofu": Tofu}[title]
	cli.Version, err = version.NewVersion(number)
	if cli.Product == "" || err != nil {
		return CLI{}, fmt.Errorf("%s is neither Terraform nor OpenTofu: its version is %q", path, text)
	}
	return cli, nil
}
