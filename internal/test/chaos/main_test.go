// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

// Package chaos interrupts and kills a real CLI with the real provider, and counts what reached the
// service. It also shows that ordinary use never notices the journal.
package chaos

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/plugin"
	agent "github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

var (
	cli      tfcli.CLI
	provider tfcli.Plugin
)

func TestMain(m *testing.M) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "chaos")
	defer func() { _ = os.RemoveAll(dir) }()
	if err == nil {
		cli, err = tfcli.ForTests(ctx)
	}
	if err == nil && cli.Path != "" {
		fmt.Println("CLI:", cli)
		provider, err = tfcli.InstallPlugin(ctx, dir)
		_ = flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0))) // most of the time they wait
		_, _ = fmt.Fprintf(io.Discard, "%p %p", plugin.Serve, agent.New)     // else Go takes results of an earlier provider from its cache
	}
	if err != nil {
		panic(err)
	}
	m.Run()
}
