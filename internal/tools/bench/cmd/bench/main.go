// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Command bench measures the provider, as it is released, with a real CLI
// against the simulator, beside the CLI's own floor in the same run.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/bench"
)

func main() {
	repeat := flag.Int("repeat", 3, "measure each figure `n` times and take the median")
	most := flag.Int("most", 1000, "the largest `number` of jobs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := bench.Run(ctx, *repeat, *most, os.Stdout, "bin/bench.json"); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
