// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Command demo shows the provider at work: a real CLI, the real plugin, and a
// simulated service.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/demo"
)

func main() {
	// SIGPIPE too: `make demo | head` must not leave a CLI and its files behind.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	err := demo.Run(ctx, os.Stdout, colored(os.Stdout))
	stop()
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "demo:", err)
	if errors.Is(err, demo.ErrInterrupted) {
		os.Exit(130) // as a shell has it after Ctrl-C
	}
	os.Exit(1)
}

// colored tells whether the file is a terminal whose user wants colors.
func colored(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
