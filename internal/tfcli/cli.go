// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package tfcli finds, downloads or builds a Terraform-compatible CLI for this
// project's tests and demo. Nothing of it is part of the provider.
package tfcli

import (
	"context"
	"encoding/json"
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

// String names the CLI in one line.
func (c CLI) String() string {
	return fmt.Sprintf("%s %s (%s, from %s)", c.Product, c.Version, c.Path, c.Origin)
}

// inspect asks the executable who it is. The JSON form tells the version alone:
// OpenTofu and Terraform differ in the first word of the text form only.
func inspect(ctx context.Context, path, origin string) (CLI, error) {
	text, err := output(command(ctx, path, "version"))
	if err != nil {
		return CLI{}, err
	}
	cli := CLI{Path: path, Origin: origin}
	switch {
	case strings.HasPrefix(text, "Terraform v"):
		cli.Product = Terraform
	case strings.HasPrefix(text, "OpenTofu v"):
		cli.Product = Tofu
	default:
		return CLI{}, fmt.Errorf("%s is neither Terraform nor OpenTofu", path)
	}

	doc, err := output(command(ctx, path, "version", "-json"))
	if err != nil {
		return CLI{}, err
	}
	var answer struct {
		Version *version.Version `json:"terraform_version"`
	}
	if err := json.Unmarshal([]byte(doc), &answer); err != nil {
		return CLI{}, fmt.Errorf("%s version -json: %w", path, err)
	}
	if answer.Version == nil {
		return CLI{}, fmt.Errorf("%s version -json: no terraform_version", path)
	}
	cli.Version = answer.Version
	return cli, nil
}

// command prepares a call of the CLI that the user's own settings for Terraform
// do not reach: an argument or a log level there would change what it prints.
func command(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), isForeign), neutralEnv()...)
	return cmd
}

// output runs the command and returns what it prints; a failure tells the first
// line that it wrote to stderr.
func output(cmd *exec.Cmd) (string, error) {
	out, err := cmd.Output()
	if err != nil {
		line := err.Error()
		if exit := new(exec.ExitError); errors.As(err, &exit) {
			line = firstLine(string(exit.Stderr), line)
		}
		return "", fmt.Errorf("%s: %s", strings.Join(cmd.Args, " "), line)
	}
	return strings.TrimSpace(string(out)), nil
}

// firstLine returns the first line of text that is not blank, else fallback.
func firstLine(text, fallback string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return fallback
}
