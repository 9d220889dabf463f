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

// Serve runs the plugin until the CLI ends it, or is gone. With debug it prints
// how to attach a CLI instead, and keeps no crash journal.
func Serve(ctx context.Context, version string, debug bool) error {
	if err := silenceUnreadLog(); err != nil {
		return err
	}
	if debug {
		return tf6server.Serve(provider.Address, func() tfprotov6.ProviderServer { return NewServer(provider.New(version, provider.Options{})) }, tf6server.WithManagedDebug())
	}
	// The CLI reads a level at the start of a line of the process's first stderr.
	warnings := log.New(os.Stderr, "[WARN] ", log.Lmsgprefix)
	crashes := journal.Open(provider.JournalFolder(), func(err error) {
		warnings.Printf("agent: the crash journal cannot be used: %v", err)
	})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		served <- tf6server.Serve(provider.Address, func() tfprotov6.ProviderServer {
			return withJournal(NewServer(provider.New(version, provider.Options{Journal: crashes})), crashes)
		})
	}()
	select {
	case err := <-served:
		drain(ctx, crashes, shutdownDrain)
		crashes.Close()
		return err
	case <-parentGone(ctx):
	case <-crashes.Lost():
	}
	drain(ctx, crashes, orphanDrain) // and leave the journal to the next run
	return errOrphaned
}

func drain(ctx context.Context, j *journal.Journal, longest time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	j.Drain(ctx)
}

// parentGone is closed when another process has become our parent. Where the
// system does not say so (Windows) it never is, and Lost has to do.
func parentGone(ctx context.Context) <-chan struct{} {
	gone := make(chan struct{})
	parent := os.Getppid()
	go func() {
		ticker := time.NewTicker(parentCheck)
		defer ticker.Stop()
		for os.Getppid() == parent {
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
	journal                             *journal.Journal
}

func withJournal(server tfprotov6.ProviderServer, j *journal.Journal) tfprotov6.ProviderServer {
	all, ok := server.(tfprotov6.ProviderServerWithActions)
	if !ok {
		return server
	}
	return journalServer{ProviderServerWithActions: all, journal: j}
}

func (s journalServer) StopProvider(ctx context.Context, req *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	s.journal.Stopping()
	return s.ProviderServerWithActions.StopProvider(ctx, req)
}
