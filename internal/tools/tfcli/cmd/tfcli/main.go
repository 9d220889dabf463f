// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Command tfcli finds or builds a Terraform-compatible CLI for this project's
// tests. Progress goes to stderr, the answer to stdout.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

var (
	shellName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

	errUsage = errors.New(`usage: tfcli <command>

  find                      print the path of the CLI to test with
  env                       print shell lines that make tests run on it
  list                      print every CLI that is there already
  build terraform|opentofu  build one from source, print its path

TF_CLI chooses the CLI: a path, or a name on PATH`)
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "tfcli:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, log io.Writer) error {
	var cli tfcli.CLI
	var err error
	command := strings.Join(args, " ")
	switch command {
	case "find", "env":
		cli, err = tfcli.Find(ctx, log)
	case "list":
		for _, cli := range tfcli.All(ctx, log) {
			fmt.Fprintln(out, cli)
		}
		return nil
	case "build terraform":
		cli, err = tfcli.Build(ctx, tfcli.Terraform, log)
	case "build opentofu":
		cli, err = tfcli.Build(ctx, tfcli.Tofu, log)
	default:
		return errUsage
	}
	if err != nil {
		return err
	}
	answer := cli.Path + "\n"
	if command == "env" {
		answer = shellEnv(cli, os.Environ())
	}
	_, err = io.WriteString(out, answer)
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
		fmt.Fprintf(&lines, "export %s=%s\n", name, quote(value))
	}
	return lines.String()
}

// quote makes one word of a POSIX shell out of any text.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
