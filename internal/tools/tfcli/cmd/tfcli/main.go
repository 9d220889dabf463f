// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Command tfcli finds a Terraform-compatible CLI for this project's tests, or
// installs the provider for the user's own.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/source"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

var (
	shellName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

	errUsage = errors.New(`usage: tfcli <command>

  find     print the path of the CLI to test with
  docs     print the path of one whose schema output is complete
  env      print shell lines that make tests run on the CLI to test with
  list     print every CLI that is there already: product, version, path
  install  build the provider for your own CLI, and print how to use it there

TF_CLI chooses the CLI: a path, or a name on PATH`)
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, strings.Join(os.Args[1:], " "), os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "tfcli:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, command string, out, log io.Writer) error {
	find := tfcli.Find
	switch command {
	case "list":
		for _, cli := range tfcli.All(ctx, log) {
			fmt.Fprintln(out, cli)
		}
		return nil
	case "install":
		dir, err := source.CacheDir()
		if err != nil {
			return err
		}
		fmt.Fprintln(log, "building the provider; the first time this takes a minute or more")
		return tfcli.InstallForUser(ctx, filepath.Join(dir, "installed"), out)
	case "find", "env":
	case "docs":
		find = tfcli.FindWithActions
	default:
		return errUsage
	}
	cli, err := find(ctx, log)
	if err != nil {
		return err
	}
	text := cli.Path + "\n"
	if command == "env" {
		text = shellEnv(cli, os.Environ())
	}
	_, err = io.WriteString(out, text)
	return err
}

// shellEnv returns lines for a POSIX shell's eval.
func shellEnv(cli tfcli.CLI, environ []string) string {
	var lines strings.Builder
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if tfcli.IsForeign(entry) && shellName.MatchString(name) { // TF_VAR_a-b is legal for Terraform, and fatal in an unset
			fmt.Fprintf(&lines, "unset %s\n", name)
		}
	}
	for _, entry := range cli.TestEnv() {
		name, value, _ := strings.Cut(entry, "=")
		fmt.Fprintf(&lines, "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
	}
	return lines.String()
}
