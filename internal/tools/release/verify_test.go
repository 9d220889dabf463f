// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package release

import (
	"archive/zip"
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// write puts content into a file of its own and returns its path.
func write(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// expect compares an error with the part of its text that it must have; "" is none.
func expect(t *testing.T, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want an error with %q", err, want)
	}
}

func TestVerifySums(t *testing.T) {
	want := map[string]string{"a.zip": "aa", "manifest.json": "bb"}
	tests := map[string]struct{ content, err string }{
		"all":              {content: "aa  a.zip\nbb  manifest.json\n"},
		"manifest missing": {content: "aa  a.zip\n", err: "lists no manifest.json"},
		"other checksum":   {content: "ab  a.zip\nbb  manifest.json\n", err: `checksum of a.zip is "ab"`},
		"an SBOM too":      {content: "aa  a.zip\ncc  a.zip.spdx.json\nbb  manifest.json\n", err: "lists a.zip.spdx.json"},
		"a signature too":  {content: "aa  a.zip\nbb  manifest.json\ndd  SHA256SUMS.sig\n", err: "lists SHA256SUMS.sig"},
		"not a list":       {content: "aa a.zip\n", err: "not a checksum"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			expect(t, verifySums(write(t, "SHA256SUMS", test.content), want), test.err)
		})
	}
}

func TestVerifyManifest(t *testing.T) {
	tests := map[string]struct{ content, err string }{
		"as it should be": {content: `{"version": 1, "metadata": {"protocol_versions": ["6.0"]}}`},
		"protocol 5":      {content: `{"version": 1, "metadata": {"protocol_versions": ["5.0"]}}`, err: "want version 1 and protocol 6.0"},
		"none":            {content: `{"version": 1}`, err: "want version 1 and protocol 6.0"},
		"unknown field":   {content: `{"version": 1, "protocol_versions": ["6.0"]}`, err: "unknown field"},
		"comma":           {content: `{"version": 1, "metadata": {"protocol_versions": ["6.0",]}}`, err: "invalid character"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			expect(t, verifyManifest(write(t, "manifest.json", test.content)), test.err)
		})
	}
	t.Run("of this repository", func(t *testing.T) {
		expect(t, verifyManifest("../../../terraform-registry-manifest.json"), "")
	})
}

func TestVerifySBOM(t *testing.T) {
	tests := map[string]struct{ content, err string }{
		"as it should be": {content: `{"spdxVersion": "SPDX-2.3", "packages": [{"name": "github.com/hashicorp/terraform-plugin-framework"}]}`},
		"empty":           {content: `{"spdxVersion": "SPDX-2.3", "packages": []}`, err: "names the plugin framework"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := verifySBOM(write(t, "sbom", test.content))
			expect(t, err, test.err)
		})
	}
}

func TestVerifyZip(t *testing.T) {
	const executable = project + "_v1.2.3"
	tests := map[string]struct {
		name  string
		files []string
		mode  fs.FileMode
		err   string
	}{
		"name":             {name: project + "-1.2.3-linux-amd64.zip", err: "not named"},
		"other version":    {name: project + "_1.2.4_linux_amd64.zip", err: "not named"},
		"no license":       {name: project + "_1.2.3_linux_amd64.zip", files: []string{executable}, mode: 0o755, err: "holds [" + executable + "]"},
		"readme":           {name: project + "_1.2.3_linux_amd64.zip", files: []string{"LICENSE", "README.md"}, err: "holds [LICENSE README.md]"},
		"not .exe":         {name: project + "_1.2.3_windows_amd64.zip", files: []string{"LICENSE", executable}, mode: 0o755, err: "holds [LICENSE " + executable + "]"},
		"not executable":   {name: project + "_1.2.3_linux_amd64.zip", files: []string{"LICENSE", executable}, mode: 0o644, err: "is not executable"},
		"not a Go program": {name: project + "_1.2.3_linux_amd64.zip", files: []string{"LICENSE", executable}, mode: 0o755, err: "unrecognized file format"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var content bytes.Buffer
			archive := zip.NewWriter(&content)
			for _, file := range test.files {
				header := &zip.FileHeader{Name: file}
				header.SetMode(test.mode)
				if _, err := archive.CreateHeader(header); err != nil {
					t.Fatal(err)
				}
			}
			if err := archive.Close(); err != nil {
				t.Fatal(err)
			}
			_, err := dist{version: "1.2.3"}.verifyZip(write(t, test.name, content.String()))
			expect(t, err, test.err)
		})
	}
}

func TestVerifyBuild(t *testing.T) {
	tests := map[string]struct{ key, value, err string }{
		"as it should be": {},
		"system":          {"GOOS", "windows", `GOOS="windows"`},
		"architecture":    {"GOARCH", "arm64", `GOARCH="arm64"`},
		"C":               {"CGO_ENABLED", "1", `CGO_ENABLED="1"`},
		"paths":           {"-trimpath", "", `-trimpath=""`},
		"git":             {"vcs.revision", "1234", `vcs.revision="1234"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			info := &debug.BuildInfo{Settings: []debug.BuildSetting{
				{Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "amd64"}, {Key: "CGO_ENABLED", Value: "0"}, {Key: "-trimpath", Value: "true"},
				{Key: test.key, Value: test.value}, // the last of a name wins
			}}
			expect(t, verifyBuild(info, "linux", "amd64"), test.err)
		})
	}
}

// What a good release cannot show: that a bad signature is found.
func TestKeyring(t *testing.T) {
	if _, err := exec.LookPath("gpg"); err != nil || runtime.GOOS != "linux" {
		t.Skip("a release is made on Linux, with gpg")
	}
	dir, err := os.MkdirTemp("", "gpg") // short: GPG's sockets are in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	k, err := newKeyring(t.Context(), dir)
	t.Cleanup(func() { _ = k.close(context.Background()) })
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ how, tamper, err string }{
		"good":           {how: "--no-armor"},
		"of other bytes": {how: "--no-armor", tamper: "more", err: "--verify"},
		"armored":        {how: "--armor", err: "armored"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file := write(t, "SHA256SUMS", "aa  a.zip\n")
			if _, err := k.gpg(t.Context(), "--output", file+".sig", test.how, "--detach-sign", file); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte("aa  a.zip\n"+test.tamper), 0o600); err != nil {
				t.Fatal(err)
			}
			expect(t, k.verify(t.Context(), file), test.err)
		})
	}
}
