// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package tfcli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// EnvCLI is the environment variable that names the CLI to use: a path, or a
// name to look up on PATH.
const EnvCLI = "TF_CLI"

// Find returns the first of: what $TF_CLI names (and nothing else when it is
// set), terraform on PATH, tofu on PATH, one in the cache folder, a downloaded
// Terraform, OpenTofu built from source. What is passed over, and the progress
// of the slow ones, goes to log.
func Find(ctx context.Context, log io.Writer) (CLI, error) {
	found, err := chosen(ctx)
	if err != nil {
		return CLI{}, err
	}
	if found == nil {
		found = All(ctx, log)
	}
	if found == nil {
		return downloadOrBuild(ctx, Tofu, log)
	}
	return found[0], nil
}

// chosen returns what $TF_CLI names; none when it is not set.
func chosen(ctx context.Context) ([]CLI, error) {
	name := os.Getenv(EnvCLI)
	if name == "" {
		return nil, nil
	}
	cli, err := fromPath(ctx, name, "$"+EnvCLI)
	if err != nil {
		return nil, fmt.Errorf("$%s: %w", EnvCLI, err)
	}
	return []CLI{cli}, nil
}

// downloadOrBuild downloads Terraform, or else builds the given product.
func downloadOrBuild(ctx context.Context, product string, log io.Writer) (CLI, error) {
	logf(log, "nothing that fits on PATH or in the cache; downloading Terraform")
	cli, err := download(ctx)
	if err == nil {
		return cli, nil
	}
	logf(log, "download failed: %v", err)
	return Build(ctx, product, log)
}

// All returns the CLIs that are there already: terraform and tofu on PATH, then
// those in the cache folder. An executable with several names is listed once,
// and one that does not run is passed over, with a word in log.
func All(ctx context.Context, log io.Writer) []CLI {
	var found []CLI
	for _, name := range []string{Terraform, Tofu} {
		cli, err := fromPath(ctx, name, "PATH")
		switch {
		case err == nil:
			found = append(found, cli)
		case !errors.Is(err, exec.ErrNotFound):
			logf(log, "passed over: %v", err)
		}
	}
	found = append(found, fromCache(ctx, log)...)

	var unique []CLI
	var seen []os.FileInfo
	for _, cli := range found {
		info, err := os.Stat(cli.Path)
		if err != nil || slices.ContainsFunc(seen, func(other os.FileInfo) bool { return os.SameFile(other, info) }) {
			continue
		}
		seen = append(seen, info)
		unique = append(unique, cli)
	}
	return unique
}

// fromPath takes a path or a name to look up on PATH. The error is
// exec.ErrNotFound when there is no such executable.
func fromPath(ctx context.Context, name, origin string) (CLI, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return CLI{}, err
	}
	// Tests run in folders of their own, where a relative path is of no use.
	path, err = filepath.Abs(path)
	if err != nil {
		return CLI{}, err
	}
	return inspect(ctx, path, origin)
}

func logf(log io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(log, "tfcli: "+format+"\n", args...) // progress only: nothing to do when it cannot be shown
}
