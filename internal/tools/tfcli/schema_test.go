// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package tfcli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProviderSchema(t *testing.T) {
	const schema = `{"format_version":"1.0","provider_schemas":{"agent":{"provider":{"version":9007199254740993}}}}`
	for script, want := range map[string]string{
		"Terraform 1.16.3": schema,
		"OpenTofu 1.12.6":  schema,
		"Terraform 0.0.0":  "", // tells of no provider
	} {
		t.Run(script, func(t *testing.T) {
			enterRepository(t, map[string]string{"main.go": "package main\n\nfunc main() {}\n"})
			cli, err := inspect(t.Context(), putFake(t, t.TempDir(), "cli", script), "test")
			if err != nil {
				t.Fatal(err)
			}
			got, err := cli.ProviderSchema(t.Context(), t.TempDir())
			if (err == nil) != (want != "") {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFindForDocs(t *testing.T) {
	tests := map[string]struct {
		path   map[string]string
		tfCLI  string
		want   string // product and version
		passed int    // how many are passed over
	}{
		"new terraform":           {path: map[string]string{"terraform": "Terraform 1.14.0"}, want: "terraform 1.14.0"},
		"prerelease of it":        {path: map[string]string{"terraform": "Terraform 1.14.0-rc1"}, want: "terraform 1.14.0-rc1"},
		"another than tests use":  {path: map[string]string{"terraform": "Terraform 1.16.3", "tofu": "OpenTofu 1.12.6"}, tfCLI: "tofu", want: "terraform 1.16.3", passed: 1},
		"old ones, and opentofu":  {path: map[string]string{"terraform": "Terraform 1.13.9", "tofu": "OpenTofu 1.16.0"}, passed: 2},
		"none, and none to build": {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pathDir := isolate(t)
			for name, script := range test.path {
				putFake(t, pathDir, name, script)
			}
			t.Setenv(EnvCLI, test.tfCLI)

			var log bytes.Buffer
			cli, err := FindForDocs(t.Context(), &log)
			if (err == nil) != (test.want != "") {
				t.Fatalf("got error %v, want %q", err, test.want)
			}
			if err == nil && cli.Product+" "+cli.Version.String() != test.want {
				t.Errorf("got %s, want %s", cli, test.want)
			}
			if got := strings.Count(log.String(), "passed over"); got != test.passed {
				t.Errorf("%d passed over, want %d:\n%s", got, test.passed, log.String())
			}
		})
	}
}
