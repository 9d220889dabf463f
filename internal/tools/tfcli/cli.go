// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package tfcli finds, downloads or builds a Terraform-compatible CLI for this
// project's tests and demo. Nothing of it is part of the provider.
package tfcli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/hashicorp/go-version"
)

// The products that CLI.Product names; also the names of their executables.
const (
	Terraform = "terraform"
	Tofu      = "tofu"
)

// CLI is an executable that has told its version.
type CLI struct {
	Path    string           // absolute
	Product string           // Terraform or Tofu
	Version *version.Version // never nil
	Origin  string           // where it was found, for people: "$TF_CLI", "PATH", "cache", "downloaded" or "built"
}

// Name is product and version, such as "terraform 1.16.3".
func (c CLI) Name() string { return c.Product + " " + c.Version.String() }

// String names the CLI in one line.
func (c CLI) String() string { return fmt.Sprintf("%s (%s, from %s)", c.Name(), c.Path, c.Origin) }

// HasActions says whether the CLI knows actions: Terraform does since 1.14.
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

// inspect asks the executable who it is.
func inspect(ctx context.Context, path, origin string) (CLI, error) {
	cli := CLI{Path: path, Origin: origin}
	text, err := output(cli.Command(ctx, os.DevNull, "version"))
	if err != nil {
		return CLI{}, err
	}
	var name, number string // "Terraform v1.16.3"
	_, _ = fmt.Sscan(text, &name, &number)
	cli.Product = map[string]string{"Terraform": Terraform, "OpenTofu": Tofu}[name]
	cli.Version, err = version.NewVersion(number)
	if cli.Product == "" || err != nil {
		return CLI{}, fmt.Errorf("%s is neither Terraform nor OpenTofu: its version is %q", path, text)
	}
	return cli, nil
}

// output runs a command and returns what it prints; a failure tells what it
// wrote to stderr.
func output(cmd *exec.Cmd) (string, error) {
	out, err := cmd.Output()
	if err != nil {
		var said []byte
		if exit := new(exec.ExitError); errors.As(err, &exit) {
			said = exit.Stderr
		}
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(said))
	}
	return strings.TrimSpace(string(out)), nil
}
