// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package testmatrix runs the tests that use a CLI on every CLI there is.
package testmatrix

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/tfcli"
)

// ErrFailed says that a test failed, or that none passed, on some CLI.
var ErrFailed = errors.New("not green on every CLI")

// selection is a package, and a pattern of the tests in it that start a CLI. The
// others are the same whatever the CLI, and "make test" runs them.
type selection struct{ path, pattern string }

func selections() []selection {
	return []selection{
		{"./internal/provider", "^TestAcc"},
		{"./internal/demo", "^TestAcc"},
		{"./internal/chaos", "."},
	}
}

// Run runs those tests on every CLI, building the ones that the repository
// pins where they are not there yet, and prints a table. With others the CLI
// that "make test" uses is left out. The current folder must be inside the
// provider's repository.
func Run(ctx context.Context, out io.Writer, others bool) error {
	clis, err := all(ctx, out)
	if err != nil {
		return err
	}
	var done *tfcli.CLI
	if others {
		cli, err := tfcli.Find(ctx, out)
		if err != nil {
			return err
		}
		done = &cli
	}
	root, err := tfcli.RepositoryRoot(ctx)
	if err != nil {
		return err
	}

	ok := true
	var rows []row
	for _, cli := range clis {
		if done != nil && sameVersion(cli, *done) {
			rows = append(rows, row{cli: cli, note: "run by make test"})
			continue
		}
		fmt.Fprintf(out, "%s\n", cli)
		start := time.Now()
		result, err := runOn(ctx, out, root, cli)
		if err != nil {
			return err
		}
		for _, failure := range result.Failures {
			fmt.Fprintf(out, "\n--- %s %s: %s\n", cli.Product, cli.Version, failure)
		}
		ok = ok && result.OK()
		rows = append(rows, row{cli: cli, result: &result, took: time.Since(start)})
	}
	if err := show(out, rows); err != nil {
		return err
	}
	if !ok {
		return ErrFailed
	}
	return nil
}

// all returns each product and version once: what is there, and what the repository pins.
func all(ctx context.Context, log io.Writer) ([]tfcli.CLI, error) {
	clis := tfcli.All(ctx, log)
	for _, product := range []string{tfcli.Terraform, tfcli.Tofu} {
		cli, err := tfcli.Build(ctx, product, log)
		if err != nil {
			return nil, err
		}
		clis = append(clis, cli)
	}
	var unique []tfcli.CLI
	for _, cli := range clis {
		if !slices.ContainsFunc(unique, func(other tfcli.CLI) bool { return sameVersion(cli, other) }) {
			unique = append(unique, cli)
		}
	}
	return unique, nil
}

func sameVersion(a, b tfcli.CLI) bool {
	return a.Product == b.Product && a.Version.Equal(b.Version)
}

// runOn runs the tests on one CLI, all packages at once: they wait more than
// they compute.
func runOn(ctx context.Context, out io.Writer, root string, cli tfcli.CLI) (Result, error) {
	type part struct {
		Result
		err  error
		took time.Duration
	}
	parts := make([]part, len(selections()))
	var running sync.WaitGroup
	for i, selected := range selections() {
		running.Go(func() {
			start := time.Now()
			result, err := test(ctx, root, cli, selected)
			parts[i] = part{result, err, time.Since(start)}
		})
	}
	running.Wait()

	var sum Result
	for i, selected := range selections() {
		p := parts[i]
		if p.err != nil {
			return Result{}, p.err
		}
		fmt.Fprintf(out, "  %s: %d passed, %d failed, %d skipped in %s\n",
			selected.path, p.Passed, p.Failed, len(p.Skipped), p.took.Round(time.Second))
		sum.Passed += p.Passed
		sum.Failed += p.Failed
		sum.Skipped = append(sum.Skipped, p.Skipped...)
		sum.Failures = append(sum.Failures, p.Failures...)
	}
	return sum, nil
}

// test runs one package's tests. A failed test is no error.
func test(ctx context.Context, root string, cli tfcli.CLI, selected selection) (Result, error) {
	args := []string{"test", "-json", "-count=1", "-timeout=20m", "-run", selected.pattern}
	if cgo(ctx) { // as "make test" does, whose compiled packages are then of use
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, selected.path)...)
	cmd.Dir = root
	cmd.Env = testEnv(cli)
	cmd.WaitDelay = 10 * time.Second
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return Result{}, err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return Result{}, err
	}
	result, err := parse(pipe)
	waitErr := cmd.Wait()
	if err != nil {
		return Result{}, err
	}
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	if exit := new(exec.ExitError); waitErr != nil && !errors.As(waitErr, &exit) {
		return Result{}, waitErr
	}
	if waitErr != nil && result.Failed == 0 {
		return Result{}, fmt.Errorf("go test %s: %w, and no test says why", selected.path, waitErr)
	}
	return result, nil
}

func testEnv(cli tfcli.CLI) []string {
	env := slices.DeleteFunc(os.Environ(), tfcli.IsForeign)
	return append(append(env, cli.TestEnv()...), tfcli.EnvCLI+"="+cli.Path)
}

func cgo(ctx context.Context) bool {
	text, err := exec.CommandContext(ctx, "go", "env", "CGO_ENABLED").Output()
	return err == nil && strings.TrimSpace(string(text)) == "1"
}
