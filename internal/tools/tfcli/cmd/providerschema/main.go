// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Command providerschema prints the provider's schemas as tfplugindocs reads
// them, told by a real CLI.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "providerschema:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	cli, err := tfcli.FindForDocs(ctx, os.Stderr)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "providerschema-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	doc, err := cli.ProviderSchema(ctx, dir)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(doc)
	return err
}
