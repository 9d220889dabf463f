// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Command build builds terraform, opentofu, minio or versitygw from source, unless it is in
// the cache folder already, and prints its path.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/source"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for _, name := range os.Args[1:] {
		command, ok := map[string]source.Command{
			"terraform": source.Terraform(),
			"opentofu":  source.OpenTofu(),
			"minio":     source.MinIO(),
			"versitygw": source.Versitygw(),
		}[name]
		if !ok {
			fmt.Fprintln(os.Stderr, "usage: build terraform|opentofu|minio|versitygw ...")
			os.Exit(2)
		}
		exe, err := command.Build(ctx, os.Stderr)
		if err != nil {
			fmt.Fprintln(os.Stderr, "build:", err)
			os.Exit(1)
		}
		fmt.Println(exe)
	}
}
