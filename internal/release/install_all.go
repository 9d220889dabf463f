// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentjobs/terraform-provider-agent/internal/tfcli"
)

// installation is a line of the report.
type installation struct{ cli, mirror, done string }

// installAll does on every CLI what a user does, from both kinds of mirror.
func (c *check) installAll(ctx context.Context, d dist, artifacts []Artifact) (_ []installation, err error) {
	mirror := filepath.Join(c.tmp, "mirror")
	var zips []Artifact
	for _, a := range artifacts {
		if strings.HasSuffix(a.Name, ".zip") {
			zips = append(zips, a)
		}
	}
	if err := writeMirror(mirror, zips, d.dir, d.version); err != nil {
		return nil, err
	}
	trusted := filepath.Join(c.tmp, "certificate.pem")
	certificate, err := newCertificate(trusted)
	if err != nil {
		return nil, err
	}
	handler := &mirrorServer{files: http.FileServerFS(os.DirFS(mirror))}
	url, stop, err := serve(ctx, handler, certificate)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	url += "/"

	var done []installation
	for n, cli := range tfcli.All(ctx, c.out) {
		for _, kind := range []struct{ name, key, location string }{
			{"filesystem_mirror", "path", filepath.ToSlash(mirror)},
			{"network_mirror", "url", url},
		} {
			c.step("%s %s: install from a %s", cli.Product, cli.Version, kind.name)
			i := install{cli: cli, version: d.version, dir: filepath.Join(c.tmp, fmt.Sprintf("%d-%s", n, kind.name))}
			i.config = i.dir + ".tfrc"
			// For the CLI only; how other systems are made to trust a certificate differs.
			i.env = []string{"SSL_CERT_FILE=" + trusted}
			if err := errors.Join(
				os.Mkdir(i.dir, 0o700),
				os.WriteFile(i.config, []byte(mirrorConfig(kind.name, kind.key, kind.location)), 0o600),
			); err != nil {
				return nil, err
			}
			before := handler.zips.Load()
			if err := i.initAndApply(ctx); err != nil {
				return nil, fmt.Errorf("%s, %s: %w", cli, kind.name, err)
			}
			what := "init, apply"
			if kind.key == "url" {
				platforms, err := i.lock(ctx, url)
				if err != nil {
					return nil, fmt.Errorf("%s, providers lock: %w", cli, err)
				}
				what += fmt.Sprintf(", lock for %d platforms", platforms)
				if handler.zips.Load() == before {
					return nil, fmt.Errorf("%s fetched nothing from the network mirror", cli)
				}
			}
			done = append(done, installation{fmt.Sprintf("%s %s", cli.Product, cli.Version), kind.name, what})
		}
	}
	if len(done) == 0 {
		return nil, errors.New("no CLI to install with: make clis builds two")
	}
	return done, nil
}
