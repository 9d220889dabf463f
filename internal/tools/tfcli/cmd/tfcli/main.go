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
	"strings"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/source"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

var errUsage = errors.New(`usage: tfcli <command>

  find                print the path of the CLI to test with
  docs                print the path of one whose schema output is complete
  list                print every CLI that is there already: product, version, path
  build VERSION FILE  build the provider as a release does
  install             build the provider for your own CLI, and print how to use it there

TF_CLI chooses the CLI: a path, or a name on PATH`)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "tfcli:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, log io.Writer) error {
	if len(args) == 3 && args[0] == "build" {
		root, err := tfcli.RepositoryRoot(ctx)
		if err != nil {
			return err
		}
		return tfcli.Build(ctx, root, args[1], args[2])
	}
	find := tfcli.Find
	switch strings.Join(args, " ") {
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
	case "find":
	case "docs":
		find = tfcli.FindWithActions
	default:
		return errUsage
	}
	cli, err := find(ctx, log)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, cli.Path)
	return err
}
