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

	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

// selection is a package, and a pattern of the tests in it that start a CLI. The
// others are the same whatever the CLI, and "make test" runs them.
type selection struct{ path, pattern string }

func selections() []selection {
	return []selection{
		{"./internal/provider", "^TestAcc"},
		{"./internal/job", "^TestAcc"},
		{"./internal/prlink", "^TestAcc"},
		{"./internal/tools/demo", "^TestAcc"},
		{"./internal/test/chaos", "."},
	}
}

// Run runs those tests on every CLI, building the ones that the repository
// pins where they are not there yet, and prints a table. What fails, a build
// among it, keeps none of the others from being tried. With others the CLI that
// "make test" uses is left out. The current folder must be inside the provider's
// repository.
func Run(ctx context.Context, out io.Writer, others bool) error {
	root, err := tfcli.RepositoryRoot(ctx)
	if err != nil {
		return err
	}
	clis, failed := all(ctx, out)
	done := ""
	if others {
		cli, err := tfcli.Find(ctx, out)
		if err != nil {
			return err
		}
		done = cli.Name()
	}

	var rows []row
	for _, cli := range clis {
		if cli.Name() == done {
			rows = append(rows, row{cli: cli, note: "run by make test"})
			continue
		}
		fmt.Fprintln(out, cli)
		start := time.Now()
		result := runOn(ctx, out, root, cli)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for _, failure := range result.Failures {
			fmt.Fprintf(out, "\n--- %s: %s\n", cli.Name(), failure)
		}
		rows = append(rows, row{cli: cli, result: &result, took: time.Since(start)})
	}
	return errors.Join(failed, show(out, rows))
}

// all returns each product and version once: what is there, and what the
// repository pins. The error tells what could not be built.
func all(ctx context.Context, log io.Writer) (unique []tfcli.CLI, failed error) {
	clis := tfcli.All(ctx, log)
	for _, product := range []string{tfcli.Terraform, tfcli.Tofu} {
		cli, err := tfcli.Build(ctx, product, log)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		clis = append(clis, cli)
	}
	for _, cli := range clis {
		if !slices.ContainsFunc(unique, func(other tfcli.CLI) bool { return other.Name() == cli.Name() }) {
			unique = append(unique, cli)
		}
	}
	return unique, failed
}

// runOn runs the tests on one CLI, all packages at once: they wait more than
// they compute.
func runOn(ctx context.Context, out io.Writer, root string, cli tfcli.CLI) (sum Result) {
	var running sync.WaitGroup
	var mu sync.Mutex
	for _, selected := range selections() {
		running.Go(func() {
			start := time.Now()
			r := test(ctx, root, cli, selected)
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(out, "  %s: %d passed, %d failed, %d skipped in %s\n",
				selected.path, r.Passed, r.Failed, len(r.Skipped), time.Since(start).Round(time.Second))
			sum.Passed += r.Passed
			sum.Failed += r.Failed
			sum.Skipped = append(sum.Skipped, r.Skipped...)
			sum.Failures = append(sum.Failures, r.Failures...)
		})
	}
	running.Wait()
	return sum
}

// test runs one package's tests.
func test(ctx context.Context, root string, cli tfcli.CLI, selected selection) Result {
	// The limit is for a test that hangs, not for a slow machine.
	args := []string{"test", "-json", "-count=1", "-timeout=1h", "-run", selected.pattern}
	if cgo(ctx) { // as "make test" does, whose compiled packages are then of use
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, selected.path)...)
	cmd.Dir = root
	cmd.Env = append(slices.DeleteFunc(os.Environ(), tfcli.IsForeign), cli.TestEnv()...)
	cmd.Env = append(cmd.Env, tfcli.EnvCLI+"="+cli.Path)
	cmd.WaitDelay = 10 * time.Second
	text, err := cmd.CombinedOutput()
	result := parse(string(text))
	if err != nil && result.Failed == 0 {
		result.Failed++
		result.Failures = append(result.Failures, fmt.Sprintf("go test %s: %v, and no test says why:\n%s", selected.path, err, text))
	}
	return result
}

func cgo(ctx context.Context) bool {
	text, err := exec.CommandContext(ctx, "go", "env", "CGO_ENABLED").Output()
	return err == nil && strings.TrimSpace(string(text)) == "1"
}
