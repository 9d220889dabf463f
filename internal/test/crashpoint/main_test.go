// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

// Package crashpoint stops a real CLI and a real provider at every step of a
// create and of a message, ends them there, and lets another run follow.
package crashpoint

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/plugin"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

// envSteps is where the plugin reports its steps. With it this test binary is
// the plugin.
const envSteps = "CRASHPOINT_STEPS"

// What the plugin reports.
const (
	stepWrite   = "/step/write"   // it is about to write to the journal
	stepWritten = "/step/written" // it has written
	stepServed  = "/step/served"  // the CLI has closed it
)

var (
	cli       tfcli.CLI
	cliConfig string
)

func TestMain(m *testing.M) {
	if steps := os.Getenv(envSteps); steps != "" {
		servePlugin(steps)
		return
	}
	os.Exit(runTests(m))
}

// servePlugin is the provider's main with a report of each step, which returns
// when the test lets the plugin continue.
func servePlugin(steps string) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	report := func(step string) {
		if response, err := http.Post(steps+step, "", nil); err == nil {
			_ = response.Body.Close()
		}
	}
	err := plugin.Serve(context.Background(), "0.0.1", plugin.Options{Recording: func(write func() error) error {
		report(stepWrite)
		defer report(stepWritten)
		return write()
	}})
	report(stepServed)
	if err != nil {
		log.Fatal(err)
	}
}

func runTests(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "crashpoint")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := install(ctx, dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("CLI:", cli)
	return m.Run()
}

// install makes this binary the plugin of a CLI configuration in dir.
func install(ctx context.Context, dir string) (err error) {
	if cli, err = tfcli.Find(ctx, os.Stderr); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.Symlink(self, filepath.Join(dir, "terraform-provider-agent")); err != nil {
		return err
	}
	cliConfig = filepath.Join(dir, "override.tfrc")
	return os.WriteFile(cliConfig, fmt.Appendf(nil, `provider_installation {
  dev_overrides {
    "registry.terraform.io/agentjobs/agent" = %[1]q
    "registry.opentofu.org/agentjobs/agent" = %[1]q
  }
}
`, dir), 0o600)
}
