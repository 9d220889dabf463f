// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package release

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/agentjobs/terraform-provider-agent/internal/tfcli"
)

// archive is a zip as the network mirror protocol describes it.
type archive struct {
	URL    string   `json:"url"`
	Hashes []string `json:"hashes"`
}

// writeMirror makes a mirror of the zips in dir, for both products: in the
// packed layout of a filesystem mirror, with the index files of the network
// mirror protocol beside the zips, as "terraform providers mirror" writes it.
func writeMirror(dir string, zips []Artifact, dist, version string) error {
	archives := map[string]archive{}
	for _, zip := range zips {
		platform := strings.TrimSuffix(strings.TrimPrefix(zip.Name, project+"_"+version+"_"), ".zip")
		archives[platform] = archive{URL: zip.Name, Hashes: []string{"zh:" + zip.SHA256}}
	}
	// A source address without a host is short for one of these, by product.
	for _, host := range []string{"registry.terraform.io", "registry.opentofu.org"} {
		folder := filepath.Join(dir, host, filepath.FromSlash(tfcli.Source))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		for name, document := range map[string]any{
			"index.json":      map[string]any{"versions": map[string]any{version: struct{}{}}},
			version + ".json": map[string]any{"archives": archives},
		} {
			text, err := json.Marshal(document)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
				return err
			}
		}
		for _, zip := range zips {
			if err := os.Link(filepath.Join(dist, zip.Name), filepath.Join(folder, zip.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// mirrorServer serves a mirror, and counts the zips that were fetched.
type mirrorServer struct {
	files http.Handler
	zips  atomic.Int64
}

func (s *mirrorServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if path.Ext(r.URL.Path) == ".zip" {
		s.zips.Add(1)
	}
	s.files.ServeHTTP(w, r)
}

// mirrorConfig returns a CLI configuration that installs from the mirror, and
// nothing from anywhere else. There is no dev_overrides in it.
func mirrorConfig(kind, key, location string) string {
	return fmt.Sprintf("provider_installation {\n  %s {\n    %s = %q\n  }\n}\n", kind, key, location)
}
