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

	"github.com/agentjobs/terraform-provider-agent/internal/bench"
)

func main() {
	var o bench.Options
	flag.IntVar(&o.Repeat, "repeat", 3, "measure each figure `n` times and take the median")
	flag.IntVar(&o.Most, "most", 1000, "the largest `number` of jobs")
	flag.StringVar(&o.JSON, "json", "bin/bench.json", "`file` for the figures")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := bench.Run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
