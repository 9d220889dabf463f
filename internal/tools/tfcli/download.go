// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package tfcli

import (
	"context"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/hashicorp/hc-install/product"
	"github.com/hashicorp/hc-install/releases"
)

// download fetches the newest Terraform into the cache folder; hc-install
// checks its signature. Where the release site is out of reach it fails within
// seconds, so that building from source starts without a long pause.
func download(ctx context.Context) (CLI, error) {
	const reach = 10 * time.Second // for each step until the first byte of an answer
	dir, err := cacheDir()
	if err != nil {
		return CLI{}, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return CLI{}, err
	}
	tmpDir, err := os.MkdirTemp(dir, "download-")
	if err != nil {
		return CLI{}, err
	}
	defer func() { _ = os.RemoveAll(tmpDir) }() // a rest does no harm: no version is looked for under that name

	source := &releases.LatestVersion{
		Product:    product.Terraform,
		InstallDir: tmpDir,
		Timeout:    10 * time.Minute, // for all of it
		HTTPClient: &http.Client{Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: reach}).DialContext,
			TLSHandshakeTimeout:   reach,
			ResponseHeaderTimeout: reach,
			ForceAttemptHTTP2:     true,
		}},
	}
	fetched, err := source.Install(ctx)
	if err != nil {
		return CLI{}, err
	}
	cli, err := inspect(ctx, fetched, "downloaded")
	if err != nil {
		return CLI{}, err
	}

	cli.Path, err = cachePath(Terraform, cli.Version.String())
	if err != nil {
		return CLI{}, err
	}
	return cli, install(ctx, cli.Path, func(tmp string) error { return os.Rename(fetched, tmp) })
}
