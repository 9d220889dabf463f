// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package plugin is the process: it serves a provider, drains it when the CLI
// ends, and works around bugs in the framework and the CLIs.
package plugin

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

const (
	// parentCheck is how often the plugin checks whether its CLI is still running.
	parentCheck = 200 * time.Millisecond
	// shutdownDrain is how long a shutdown waits for responses to POSTs: the
	// CLI kills the plugin after two seconds.
	shutdownDrain = 1500 * time.Millisecond
	// cliGoneDrain is how long a plugin whose CLI has ended waits for them.
	cliGoneDrain = 2 * time.Minute
)

var errCLIGone = errors.New("the CLI is gone")

// Serve runs the plugin until the CLI shuts it down or ends. newProvider makes the provider that is
// published at the address, for the process whose journal it keeps. With debug, Serve prints how to
// attach a CLI instead of being started by one, and the process is nil.
func Serve(ctx context.Context, address string, newProvider func(*cli.Process) provider.Provider, debug bool) error {
	if debug {
		return tf6server.Serve(address, func() tfprotov6.ProviderServer {
			return NewServer(ctx, newProvider(nil))
		}, tf6server.WithManagedDebug(), tf6server.WithManagedDebugStopSignals([]os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}))
	}
	process := cli.This()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		served <- tf6server.Serve(address, func() tfprotov6.ProviderServer { return NewServer(ctx, newProvider(process)) })
	}()
	return End(ctx, process, served)
}

// End waits until the CLI shuts the plugin down, which served reports, or ends, and then
// until the journal has what the state may lack.
func End(ctx context.Context, process *cli.Process, served <-chan error) error {
	select {
	case err := <-served:
		drain(ctx, process, shutdownDrain)
		return err
	case <-cliGone(ctx, process):
		drain(ctx, process, cliGoneDrain)
		return errCLIGone
	}
}

func drain(ctx context.Context, p *cli.Process, longest time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	p.Drain(ctx)
}

// cliGone is closed when the CLI has ended.
func cliGone(ctx context.Context, p *cli.Process) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		for !p.CLIEnded() {
			if sleep.For(ctx, parentCheck) != nil {
				return
			}
		}
		close(gone)
	}()
	return gone
}
