// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

// Package chaos interrupts and kills a real CLI with the real provider, at
// random moments, and counts what reached the
// service. It also shows that ordinary use never notices the journal.
package chaos

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/plugin"
	agent "github.com/agentjobs/terraform-provider-agent/internal/provider"
	"github.com/agentjobs/terraform-provider-agent/internal/test/harness"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

var (
	cli      tfcli.CLI
	provider tfcli.Plugin
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "chaos")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		err = install(ctx, dir)
	}
	if err == nil && cli.Path != "" {
		fmt.Println("CLI:", cli)
		// Most of the time they wait. The command line overrides this.
		err = flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0)))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// install finds a CLI and builds the provider for it.
func install(ctx context.Context, dir string) (err error) {
	if cli, err = tfcli.ForTests(ctx); err != nil || cli.Path == "" {
		return err
	}
	provider, err = tfcli.InstallPlugin(ctx, dir)
	_, _ = fmt.Fprintf(io.Discard, "%p %p", plugin.Serve, agent.New) // else Go takes results of an earlier provider from its cache
	return err
}

func needsCLI(t *testing.T) {
	t.Helper()
	if cli.Path == "" {
		t.Skip(tfcli.NoCLI)
	}
}

// What make chaos sets: without them, make test runs a part of each grid.
const (
	envRounds = "CHAOS_CLI"  // the number of runs that end at any moment; and all of each grid
	envSeed   = "CHAOS_SEED" // of the moments
)

// Where all cells of a grid run. In make test it is every nth.
const (
	inMakeChaos = "make chaos"
	inCI        = "CI (EXPLORE=more) and make chaos"
)

// everyNth returns the cells of a grid that run, and reports the others as skipped.
func everyNth[T any](t *testing.T, n int, all string, cells []T) (some []T) {
	t.Helper()
	if os.Getenv(envRounds) != "" || all == inCI && os.Getenv("EXPLORE") != "" {
		return cells
	}
	for i := 0; i < len(cells); i += n {
		some = append(some, cells[i])
	}
	if len(some) < len(cells) {
		t.Run("rest of the grid", func(t *testing.T) {
			t.Skipf("%d of %d cells run only in %s", len(cells)-len(some), len(cells), all)
		})
	}
	return some
}

// seed is CHAOS_SEED, or a random one in make chaos and a fixed one in make
// test. It is printed, so that a run can be repeated.
func seed(t *testing.T) uint64 {
	t.Helper()
	s := uint64(1)
	if os.Getenv(envRounds) != "" {
		s = rand.Uint64()
	}
	s = harness.Number(t, envSeed, s)
	t.Logf("%s=%d", envSeed, s)
	return s
}
