// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package plugin is the process: it serves the provider, drains it when the CLI
// ends, and works around bugs in the framework and the CLIs.
package plugin

import (
	"context"
	"errors"
	"log"
	"os"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/provider"
)

const (
	// parentCheck is how often the plugin looks whether its CLI is still there.
	parentCheck = 200 * time.Millisecond
	// shutdownDrain is how long a shutdown waits for the answers of POSTs: the
	// CLI kills the plugin after two seconds.
	shutdownDrain = 1500 * time.Millisecond
	// orphanDrain is how long a plugin whose CLI is gone waits for them.
	orphanDrain = 2 * time.Minute
)

var errOrphaned = errors.New("the CLI is gone")

// Options say how the plugin is served.
type Options struct {
	// Debug prints how to attach a CLI instead of being started by one; no journal is kept.
	Debug bool
	// Recording wraps each write to the journal; nil: nothing does.
	Recording func(write func() error) error
}

// Serve runs the plugin until the CLI ends it, or is gone.
func Serve(ctx context.Context, version string, options Options) error {
	if err := silenceUnreadLog(); err != nil {
		return err
	}
	if options.Debug {
		return tf6server.Serve(provider.Address, func() tfprotov6.ProviderServer { return NewServer(provider.New(version, provider.Options{})) }, tf6server.WithManagedDebug())
	}
	// The CLI reads a level at the start of a line of the process's first stderr.
	warnings := log.New(os.Stderr, "[WARN] ", log.Lmsgprefix)
	process := journal.NewProcess(journal.CurrentRun(), func(err error) { warnings.Printf("agent: %v", err) })
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		served <- tf6server.Serve(provider.Address, func() tfprotov6.ProviderServer {
			return withJournal(NewServer(provider.New(version, provider.Options{Process: process, Recording: options.Recording})), process)
		})
	}()
	select {
	case err := <-served:
		drain(ctx, process, shutdownDrain)
		closing, cancel := context.WithTimeout(ctx, shutdownDrain)
		defer cancel()
		process.Close(closing)
		return err
	case <-orphaned(ctx, process):
	case <-process.Lost():
	}
	drain(ctx, process, orphanDrain) // and leave the journal to the next run
	return errOrphaned
}

func drain(ctx context.Context, p *journal.Process, longest time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	p.Drain(ctx)
}

// orphaned is closed when the CLI has ended.
func orphaned(ctx context.Context, p *journal.Process) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		ticker := time.NewTicker(parentCheck)
		defer ticker.Stop()
		for !p.CLIEnded() {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
		close(gone)
	}()
	return gone
}

// journalServer tells the journal when the CLI asks for a stop: from then on
// cancelled calls are answered nevertheless.
type journalServer struct {
	tfprotov6.ProviderServerWithActions // all that the framework's server can do
	process                             *journal.Process
}

func withJournal(server tfprotov6.ProviderServer, p *journal.Process) tfprotov6.ProviderServer {
	all, ok := server.(tfprotov6.ProviderServerWithActions)
	if !ok {
		return server
	}
	return journalServer{ProviderServerWithActions: all, process: p}
}

func (s journalServer) StopProvider(ctx context.Context, req *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	s.process.Stopping()
	return s.ProviderServerWithActions.StopProvider(ctx, req)
}
