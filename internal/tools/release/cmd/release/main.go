// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Command release checks what a release would be, and tells what is new in one.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/release"
)

var errUsage = errors.New(`usage: release <command>

  check           make a release of the last commit, without publishing it, and install it
  notes VERSION   print what CHANGELOG.md says of a version, such as v1.2.3`)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	switch {
	case len(args) == 1 && args[0] == "check":
		return release.Check(ctx, out)
	case len(args) == 2 && args[0] == "notes":
		changelog, err := os.ReadFile("CHANGELOG.md")
		if err != nil {
			return err
		}
		notes, err := release.Notes(string(changelog), strings.TrimPrefix(args[1], "v"))
		if err != nil {
			return err
		}
		_, err = io.WriteString(out, notes)
		return err
	default:
		return errUsage
	}
}
