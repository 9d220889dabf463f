// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package release

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const project = "terraform-provider-agent"

// artifact is a file of a release.
type artifact struct {
	name   string
	size   int // bytes
	sha256 string
	what   string // for people
}

// dist is what GoReleaser has left of one version in a folder.
type dist struct {
	dir, version string
	manifest     string // the manifest's file, which is renamed only when it is published
}

// openDist finds what was made in a clone.
func openDist(clone string) (dist, error) {
	d := dist{dir: filepath.Join(clone, "dist"), manifest: filepath.Join(clone, "terraform-registry-manifest.json")}
	text, err := os.ReadFile(filepath.Join(d.dir, "metadata.json"))
	if err != nil {
		return d, err
	}
	var metadata struct{ Version string }
	err = json.Unmarshal(text, &metadata)
	d.version = metadata.Version
	return d, err
}

func (d dist) name(rest string) string { return project + "_" + d.version + "_" + rest }

// verify holds a release against the rules of the registry
// (https://developer.hashicorp.com/terraform/registry/providers/publishing)
// and returns all that it publishes. The error names everything that is wrong.
func (d dist) verify(ctx context.Context, keyring keyring) ([]artifact, error) {
	zips, err := filepath.Glob(filepath.Join(d.dir, "*.zip"))
	if err != nil {
		return nil, err
	}
	if len(zips) == 0 {
		return nil, fmt.Errorf("no zip in %s", d.dir)
	}
	slices.Sort(zips)

	var artifacts []artifact
	var wrong []error
	sums, sbomSums := map[string]string{}, map[string]string{}
	add := func(path, name, what string) artifact {
		a, err := describe(path, name, what)
		wrong = append(wrong, err)
		artifacts = append(artifacts, a)
		return a
	}
	for _, zip := range zips {
		what, err := d.verifyZip(zip)
		wrong = append(wrong, err)
		a := add(zip, filepath.Base(zip), what)
		sums[a.name] = a.sha256
	}
	wrong = append(wrong, verifyManifest(d.manifest))
	a := add(d.manifest, d.name("manifest.json"), "manifest for the registry")
	sums[a.name] = a.sha256
	for _, zip := range zips {
		packages, err := verifySBOM(zip + ".spdx.json")
		wrong = append(wrong, err)
		a := add(zip+".spdx.json", filepath.Base(zip)+".spdx.json", fmt.Sprintf("SBOM, %d packages", packages))
		sbomSums[a.name] = a.sha256
	}
	for name, want := range map[string]map[string]string{"SHA256SUMS": sums, "SBOM_SHA256SUMS": sbomSums} {
		file := filepath.Join(d.dir, d.name(name))
		add(file, d.name(name), fmt.Sprintf("%d checksums", len(want)))
		add(file+".sig", d.name(name)+".sig", "signature, GPG")
		wrong = append(wrong, verifySums(file, want), keyring.verify(ctx, file))
	}
	slices.SortStableFunc(artifacts, func(a, b artifact) int { return strings.Compare(a.name, b.name) })
	return artifacts, errors.Join(wrong...)
}

func describe(path, name, what string) (artifact, error) {
	content, err := os.ReadFile(path)
	return artifact{name, len(content), fmt.Sprintf("%x", sha256.Sum256(content)), what}, err
}

// verifySums says whether the file lists exactly these files: the registry
// refuses a release whose list names anything that it does not know.
func verifySums(file string, want map[string]string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var wrong []error
	missing := maps.Clone(want)
	for line := range strings.Lines(string(content)) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		delete(missing, name)
		switch {
		case !ok:
			wrong = append(wrong, fmt.Errorf("%s: not a checksum: %q", file, line))
		case want[name] == "":
			wrong = append(wrong, fmt.Errorf("%s lists %s, which does not belong there", file, name))
		case want[name] != sum:
			wrong = append(wrong, fmt.Errorf("%s: checksum of %s is %q, want %s", file, name, sum, want[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		wrong = append(wrong, fmt.Errorf("%s lists no %s", file, name))
	}
	return errors.Join(wrong...)
}

// verifyManifest holds the manifest against what the provider serves: protocol 6 alone.
func verifyManifest(file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var manifest struct {
		Version  int
		Metadata struct {
			ProtocolVersions []string `json:"protocol_versions"`
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&manifest); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if manifest.Version != 1 || !slices.Equal(manifest.Metadata.ProtocolVersions, []string{"6.0"}) {
		return fmt.Errorf("%s: got %+v, want version 1 and protocol 6.0", file, manifest)
	}
	return nil
}

// verifySBOM returns how many packages an SPDX document names; the framework
// that every build links must be among them.
func verifySBOM(file string) (int, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	var document struct {
		SPDXVersion string
		Packages    []struct{ Name string }
	}
	if err := json.Unmarshal(content, &document); err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	for _, p := range document.Packages {
		if p.Name == "github.com/hashicorp/terraform-plugin-framework" && document.SPDXVersion != "" {
			return len(document.Packages), nil
		}
	}
	return 0, fmt.Errorf("%s: not an SPDX document that names the plugin framework", file)
}
