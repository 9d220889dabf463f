// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

// Package chaos interrupts and kills a real CLI with the real provider, at
// random moments and at every step of a request, and counts what reached the
// service. It also shows that ordinary use never notices the journal.
package chaos

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	// Both are built from it; without this Go would take the results of a run before a change of it.
	_ "github.com/agentjobs/terraform-provider-agent/internal/plugin"
	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

// What the provider in steps reports.
const (
	stepWrite   = "/step/write"   // it is about to write to the journal
	stepWritten = "/step/written" // it has written
	stepServed  = "/step/served"  // the CLI has closed it
)

var (
	cli         tfcli.CLI
	provider    tfcli.Plugin
	stepConfig  string // a CLI configuration with the provider that reports its steps
	initialized initializedBackend
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
	if err == nil {
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

// install finds a CLI, builds the provider for it twice, as users get it and with
// a report of its steps, and initializes a backend.
func install(ctx context.Context, dir string) (err error) {
	if cli, err = tfcli.Find(ctx, os.Stderr); err != nil {
		return err
	}
	if provider, err = tfcli.InstallPlugin(ctx, dir); err != nil {
		return err
	}
	// Go's test cache sees a file only when the test itself looks at it.
	if _, err := os.Stat(filepath.Join("steps", "main.go")); err != nil {
		return err
	}
	steps := filepath.Join(dir, "steps")
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", filepath.Join(steps, "terraform-provider-agent"), "./steps")
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the provider that reports its steps: %w\n%s", err, output)
	}
	config, err := os.ReadFile(provider.OverrideConfig)
	if err != nil {
		return err
	}
	stepConfig = filepath.Join(dir, "steps.tfrc")
	config = bytes.ReplaceAll(config, []byte(filepath.Dir(provider.Executable)), []byte(steps))
	if err := os.WriteFile(stepConfig, config, 0o600); err != nil {
		return err
	}
	return initialized.create(ctx, dir)
}

// initializedBackend is what init leaves in a working directory: running it once
// is enough for all of them.
type initializedBackend struct {
	text []byte
	url  string
}

func (i *initializedBackend) create(ctx context.Context, dir string) error {
	server := httptest.NewServer(&backend{})
	defer server.Close()
	i.url = server.URL
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte("terraform {\n  backend \"http\" {}\n}\n"), 0o600); err != nil {
		return err
	}
	command := cli.Command(ctx, provider.MirrorConfig, "init", "-no-color", "-input=false")
	command.Dir = dir
	command.Env = append(command.Env, "TF_HTTP_ADDRESS="+i.url)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("init: %w\n%s", err, output)
	}
	var err error
	i.text, err = os.ReadFile(filepath.Join(dir, ".terraform", "terraform.tfstate"))
	return err
}
