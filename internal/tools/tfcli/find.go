// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package tfcli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/hashicorp/hc-install/product"
	"github.com/hashicorp/hc-install/releases"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/source"
)

// EnvCLI is the environment variable that names the CLI to use: a path, or a
// name on PATH.
const EnvCLI = "TF_CLI"

// Find returns the CLI that $TF_CLI names. If that is not set, it returns the
// first of All, or else the newest Terraform, downloaded, or else OpenTofu, built
// from source. CLIs that do not run, and slow steps, are reported to log.
func Find(ctx context.Context, log io.Writer) (CLI, error) {
	if name := os.Getenv(EnvCLI); name != "" {
		cli, err := inspect(ctx, name)
		if err != nil {
			return CLI{}, fmt.Errorf("$%s: %w", EnvCLI, err)
		}
		return cli, nil
	}
	return find(ctx, log, func(CLI) bool { return true }, source.OpenTofu())
}

// FindWithActions is Find for generating documentation. It returns a Terraform
// that has actions, and builds one in the end: others leave actions, or resource
// identity, out of the schema without an error.
func FindWithActions(ctx context.Context, log io.Writer) (CLI, error) {
	return find(ctx, log, CLI.HasActions, source.Terraform())
}

// find returns the first CLI that fits, or else downloads or builds one.
func find(ctx context.Context, log io.Writer, fits func(CLI) bool, last source.Command) (CLI, error) {
	all := All(ctx, log)
	if i := slices.IndexFunc(all, fits); i >= 0 {
		return all[i], nil
	}
	logf(log, "no CLI that fits on PATH or in the cache; downloading Terraform")
	exe, err := download(ctx)
	if err != nil {
		logf(log, "download failed: %v", err)
		exe, err = last.Build(ctx, log)
	}
	if err != nil {
		return CLI{}, err
	}
	return inspect(ctx, exe)
}

// All returns the CLIs that are there already, each product and version once:
// $TF_CLI, terraform and tofu on PATH, and those downloaded or built earlier.
func All(ctx context.Context, log io.Writer) []CLI {
	places := []string{os.Getenv(EnvCLI), "terraform", "tofu"}
	for _, path := range []func() (string, error){source.Terraform().Path, downloadPath, source.OpenTofu().Path} {
		if exe, err := path(); err == nil { // else there is no cache folder
			places = append(places, exe)
		}
	}
	var all []CLI
	for _, place := range places {
		cli, err := inspect(ctx, place)
		switch {
		case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		case err != nil:
			logf(log, "skipped: %v", err)
		case !slices.ContainsFunc(all, func(other CLI) bool { return other.Name() == cli.Name() }):
			all = append(all, cli)
		}
	}
	return all
}

func downloadPath() (string, error) {
	dir, err := source.CacheDir()
	return filepath.Join(dir, "terraform_downloaded", source.ExeName(Terraform)), err
}

// download fetches the newest Terraform; hc-install checks its signature. It
// fails within seconds where the release site is out of reach.
func download(ctx context.Context) (string, error) {
	const reach = 10 * time.Second // for each step until the first byte of a response
	exe, err := downloadPath()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(exe), 0o755); err != nil {
		return "", err
	}
	latest := &releases.LatestVersion{
		Product:    product.Terraform,
		InstallDir: filepath.Dir(exe),
		Timeout:    10 * time.Minute, // for all of it
		HTTPClient: &http.Client{Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: reach}).DialContext,
			TLSHandshakeTimeout:   reach,
			ResponseHeaderTimeout: reach,
			ForceAttemptHTTP2:     true,
		}},
	}
	return latest.Install(ctx)
}

func logf(log io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(log, "tfcli: "+format+"\n", args...) // nothing to do if it cannot be shown
}
