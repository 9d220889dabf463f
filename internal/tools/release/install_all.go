// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package release

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"sync/atomic"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

// installAll does on every CLI what a user does, from both kinds of mirror, and
// returns a line of the report for each.
func (c *check) installAll(ctx context.Context, d dist, artifacts []artifact) (done []string, err error) {
	mirror := filepath.Join(c.tmp, "mirror")
	if err := writeMirror(mirror, artifacts, d); err != nil {
		return nil, err
	}
	var fetched atomic.Int64 // zips, from the network mirror
	files := http.FileServerFS(os.DirFS(mirror))
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Ext(r.URL.Path) == ".zip" {
			fetched.Add(1)
		}
		files.ServeHTTP(w, r)
	}))
	defer server.Close()
	trusted := filepath.Join(c.tmp, "certificate.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(trusted, certificate, 0o600); err != nil {
		return nil, err
	}
	url := server.URL + "/"

	for n, cli := range tfcli.All(ctx, c.out) {
		for _, kind := range []string{"filesystem_mirror", "network_mirror"} {
			c.step("%s: install from a %s", cli.Name(), kind)
			place := fmt.Sprintf("path = %q", filepath.ToSlash(mirror))
			if kind == "network_mirror" {
				place = fmt.Sprintf("url = %q", url)
			}
			i := install{cli: cli, version: d.version, dir: filepath.Join(c.tmp, fmt.Sprintf("%d-%s", n, kind))}
			i.config = i.dir + ".tfrc"
			// For the CLI only; how other systems are made to trust a certificate differs.
			i.env = []string{"SSL_CERT_FILE=" + trusted}
			// From the mirror, and nothing from anywhere else. There is no dev_overrides in it.
			config := fmt.Sprintf("provider_installation {\n  %s {\n    %s\n  }\n}\n", kind, place)
			if err := errors.Join(os.Mkdir(i.dir, 0o700), os.WriteFile(i.config, []byte(config), 0o600)); err != nil {
				return nil, err
			}
			before := fetched.Load()
			if err := i.initAndApply(ctx); err != nil {
				return nil, fmt.Errorf("%s, %s: %w", cli, kind, err)
			}
			what := "init, apply"
			if kind == "network_mirror" {
				platforms, err := i.lock(ctx, url)
				if err != nil {
					return nil, fmt.Errorf("%s, providers lock: %w", cli, err)
				}
				what += fmt.Sprintf(", lock for %d platforms", platforms)
				if fetched.Load() == before {
					return nil, fmt.Errorf("%s fetched nothing from the network mirror", cli)
				}
			}
			done = append(done, cli.Name()+"\t"+kind+"\t"+what)
		}
	}
	if done == nil {
		return nil, errors.New("no CLI to install with: make clis builds two")
	}
	return done, nil
}
