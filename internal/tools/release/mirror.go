// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package release

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

// writeMirror makes a mirror of a release's zips, for both products: in the
// packed layout of a filesystem mirror, with the index files of the network
// mirror protocol beside the zips, as "terraform providers mirror" writes it.
func writeMirror(dir string, artifacts []artifact, d dist) error {
	// A source address without a host is short for one of these, by product.
	for _, host := range []string{"registry.terraform.io", "registry.opentofu.org"} {
		folder := filepath.Join(dir, host, filepath.FromSlash(tfcli.Source))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		archives := map[string]any{} // by platform
		for _, a := range artifacts {
			platform, ok := strings.CutSuffix(strings.TrimPrefix(a.name, d.name("")), ".zip")
			if !ok {
				continue
			}
			archives[platform] = map[string]any{"url": a.name, "hashes": []string{"zh:" + a.sha256}}
			if err := os.Link(filepath.Join(d.dir, a.name), filepath.Join(folder, a.name)); err != nil {
				return err
			}
		}
		for name, document := range map[string]any{
			"index.json":        map[string]any{"versions": map[string]any{d.version: struct{}{}}},
			d.version + ".json": map[string]any{"archives": archives},
		} {
			text, err := json.Marshal(document)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
