// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Command testmatrix runs the tests that use a CLI on every CLI there is.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/testmatrix"
)

func main() {
	others := flag.Bool("others", false, "leave out the CLI that make test uses")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := testmatrix.Run(ctx, os.Stdout, *others); err != nil {
		fmt.Fprintln(os.Stderr, "testmatrix:", err)
		os.Exit(1)
	}
}
