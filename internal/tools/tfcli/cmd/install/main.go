// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Command install builds the provider for the user's own CLI, and tells how to
// use it. The current folder must be inside the provider's repository.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := tfcli.UserFolder()
	if err == nil {
		err = tfcli.InstallForUser(ctx, dir, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "install:", err)
		os.Exit(1)
	}
}
