// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package tfcli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
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

var errNone = errors.New("no CLI on PATH or in the cache")

// Find returns the CLI that $TF_CLI names. If that is not set, it returns the
// first of All, or else the newest Terraform, downloaded, or else OpenTofu, built
// from source. CLIs that do not run, and slow steps, are reported to log.
func Find(ctx context.Context, log io.Writer) (CLI, error) {
	cli, err := there(ctx, log)
	if errors.Is(err, errNone) {
		return get(ctx, log, source.OpenTofu())
	}
	return cli, err
}

// there returns the CLI that $TF_CLI names, or else the first of All, or else errNone.
func there(ctx context.Context, log io.Writer) (CLI, error) {
	if name := os.Getenv(EnvCLI); name != "" {
		cli, err := inspect(ctx, name)
		if err != nil {
			return CLI{}, fmt.Errorf("$%s: %w", EnvCLI, err)
		}
		return cli, nil
	}
	for cli := range all(ctx, log) {
		return cli, nil
	}
	return CLI{}, errNone
}

// FindWithActions is Find for generating documentation. It returns a Terraform
// that has actions, and builds one in the end: others leave actions, or resource
// identity, out of the schema without an error.
func FindWithActions(ctx context.Context, log io.Writer) (CLI, error) {
	for cli := range all(ctx, log) {
		if cli.HasActions() {
			return cli, nil
		}
	}
	return get(ctx, log, source.Terraform())
}

// get downloads Terraform, or else builds the last resort.
func get(ctx context.Context, log io.Writer, last source.Command) (CLI, error) {
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
func All(ctx context.Context, log io.Writer) []CLI { return slices.Collect(all(ctx, log)) }

// all asks each for its version only when its turn comes: that takes a moment.
func all(ctx context.Context, log io.Writer) iter.Seq[CLI] {
	places := []string{os.Getenv(EnvCLI), "terraform", "tofu"}
	for _, path := range []func() (string, error){source.Terraform().Path, downloadPath, source.OpenTofu().Path} {
		if exe, err := path(); err == nil { // else there is no cache folder
			places = append(places, exe)
		}
	}
	return func(yield func(CLI) bool) {
		seen := map[string]bool{}
		for _, place := range places {
			cli, err := inspect(ctx, place)
			switch {
			case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
			case err != nil:
				logf(log, "skipped: %v", err)
			case !seen[cli.Name()]:
				seen[cli.Name()] = true
				if !yield(cli) {
					return
				}
			}
		}
	}
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
