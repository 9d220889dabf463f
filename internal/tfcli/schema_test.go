// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package tfcli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProviderSchema(t *testing.T) {
	for _, script := range []string{"Terraform 1.16.3", "OpenTofu 1.12.6"} {
		t.Run(script, func(t *testing.T) {
			cli, err := inspect(t.Context(), putFake(t, isolate(t), "cli", script), "test")
			if err != nil {
				t.Fatal(err)
			}
			config := filepath.Join(t.TempDir(), "override.tfrc")
			if err := os.WriteFile(config, []byte(overrideConfig("/where it is", "example/thing", "")), 0o600); err != nil {
				t.Fatal(err)
			}
			plugin := Plugin{OverrideConfig: config}
			got, err := cli.ProviderSchema(t.Context(), plugin, "registry.terraform.io/example/thing")
			if err != nil {
				t.Fatal(err)
			}
			want := `{"format_version":"1.0","provider_schemas":{"thing":{"provider":{"version":9007199254740993}}}}`
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Error(diff)
			}

			if _, err := cli.ProviderSchema(t.Context(), plugin, "registry.terraform.io/other/thing"); err == nil {
				t.Error("no error for a provider that the CLI does not know")
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
