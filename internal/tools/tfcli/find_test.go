// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package tfcli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-version"
)

// summary is what these tests compare of a CLI.
type summary struct{ Product, Version, Origin, Path string }

func summarize(clis ...CLI) []summary {
	var all []summary
	for _, c := range clis {
		all = append(all, summary{c.Product, c.Version.String(), c.Origin, c.Path})
	}
	return all
}

func TestFindOrder(t *testing.T) {
	tests := map[string]struct {
		path  map[string]string // executables on PATH
		cache map[string]string // executables in the cache, by folder
		env   string            // TF_CLI; "elsewhere" is a path outside PATH
		want  summary
		log   string
		err   string
	}{
		"terraform before tofu": {
			path: map[string]string{"terraform": "Terraform 1.11.4", "tofu": "OpenTofu 1.12.6"},
			want: summary{Terraform, "1.11.4", "PATH", "terraform"},
		},
		"tofu alone": {
			path: map[string]string{"tofu": "OpenTofu 1.12.6"},
			want: summary{Tofu, "1.12.6", "PATH", "tofu"},
		},
		"the product is what it says, not its name": {
			path: map[string]string{"terraform": "OpenTofu 1.12.6"},
			want: summary{Tofu, "1.12.6", "PATH", "terraform"},
		},
		"broken one is passed over": {
			path: map[string]string{"terraform": "shim", "tofu": "OpenTofu 1.12.6"},
			want: summary{Tofu, "1.12.6", "PATH", "tofu"},
			log:  "shim is broken",
		},
		"TF_CLI by name": {
			path: map[string]string{"terraform": "Terraform 1.11.4", "tofu": "OpenTofu 1.12.6"},
			env:  "tofu",
			want: summary{Tofu, "1.12.6", "$TF_CLI", "tofu"},
		},
		"TF_CLI by path": {
			path: map[string]string{"terraform": "Terraform 1.11.4"},
			env:  "elsewhere",
			want: summary{Terraform, "1.16.3-rc1", "$TF_CLI", "elsewhere"},
		},
		"TF_CLI that is not there is an error": {
			path: map[string]string{"terraform": "Terraform 1.11.4"},
			env:  "nowhere",
			err:  "$TF_CLI",
		},
		"TF_CLI that is something else is an error": {
			path: map[string]string{"terraform": "Terraform 1.11.4", "other": "Packer 1.0.0"},
			env:  "other",
			err:  "neither Terraform nor OpenTofu",
		},
		"cache after PATH": {
			path:  map[string]string{"tofu": "OpenTofu 1.12.6"},
			cache: map[string]string{"terraform_1.16.3": "Terraform 1.16.3"},
			want:  summary{Tofu, "1.12.6", "PATH", "tofu"},
		},
		"newest of the cache, terraform first": {
			cache: map[string]string{
				"tofu_1.13.0":       "OpenTofu 1.13.0",
				"terraform_1.9.9":   "Terraform 1.9.9",
				"terraform_1.10.0":  "Terraform 1.10.0",
				"terraform_1.100.0": "broken",
			},
			want: summary{Terraform, "1.10.0", "cache", "terraform_1.10.0"},
			log:  "broken is broken",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pathDir := isolate(t)
			paths := map[string]string{}
			for name, script := range test.path {
				paths[name] = putFake(t, pathDir, name, script)
			}
			cache, err := cacheDir()
			if err != nil {
				t.Fatal(err)
			}
			for folder, script := range test.cache {
				product, _, _ := strings.Cut(folder, "_")
				paths[folder] = putFake(t, filepath.Join(cache, folder), product, script)
			}
			paths["elsewhere"] = putFake(t, t.TempDir(), "elsewhere", "Terraform 1.16.3-rc1")
			if test.env == "elsewhere" {
				test.env = paths["elsewhere"]
			}
			t.Setenv(EnvCLI, test.env)

			var log bytes.Buffer
			got, err := Find(t.Context(), &log)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("got %v, want an error with %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			test.want.Path = paths[test.want.Path]
			if diff := cmp.Diff([]summary{test.want}, summarize(got)); diff != "" {
				t.Error(diff)
			}
			if (test.log == "") != (log.Len() == 0) || !strings.Contains(log.String(), test.log) {
				t.Errorf("got log %q, want %q in it", log.String(), test.log)
			}
		})
	}
}

func TestAllListsEachExecutableOnce(t *testing.T) {
	pathDir := isolate(t)
	cache, err := cacheDir()
	if err != nil {
		t.Fatal(err)
	}
	built := putFake(t, filepath.Join(cache, "tofu_1.12.6"), "tofu", "OpenTofu 1.12.6")
	older := putFake(t, filepath.Join(cache, "tofu_1.11.0"), "tofu", "OpenTofu 1.11.0")
	// The same executable under a second name, as a user's link into the cache would be.
	onPath := filepath.Join(pathDir, exeName("tofu"))
	for _, suffix := range []string{"", fakeSuffix} {
		if err := os.Link(built+suffix, onPath+suffix); err != nil {
			t.Fatal(err)
		}
	}

	want := []summary{
		{Tofu, "1.12.6", "PATH", onPath},
		{Tofu, "1.11.0", "cache", older},
	}
	if diff := cmp.Diff(want, summarize(All(t.Context(), t.Output())...)); diff != "" {
		t.Error(diff)
	}
}

func TestEnvironment(t *testing.T) {
	environ := []string{
		"HOME=/home/x", "TF_LOG=TRACE", "TF_VAR_a=b=c", "TF_CLI=tofu", "TF_CLI_ARGS=-no-color",
		"AGENT_ADMIN_KEY=real", "TF_ACC_PROVIDER_HOST=registry.opentofu.org", "GOFLAGS=-v",
	}
	ours := slices.DeleteFunc(environ, IsForeign)
	if diff := cmp.Diff([]string{"HOME=/home/x", "TF_CLI=tofu", "GOFLAGS=-v"}, ours); diff != "" {
		t.Error(diff)
	}

	v := version.Must(version.NewVersion("1.2.3"))
	common := []string{
		"CHECKPOINT_DISABLE=1", "TF_CLI_CONFIG_FILE=" + os.DevNull,
		"TF_ACC=1", "TF_ACC_TERRAFORM_PATH=/x/cli", "TF_ACC_TERRAFORM_VERSION=1.2.3",
	}
	if diff := cmp.Diff(common, CLI{Path: "/x/cli", Product: Terraform, Version: v}.TestEnv()); diff != "" {
		t.Error(diff)
	}
	tofu := append(common, "TF_ACC_PROVIDER_HOST=registry.opentofu.org", "TF_ACC_PROVIDER_NAMESPACE=hashicorp")
	if diff := cmp.Diff(tofu, CLI{Path: "/x/cli", Product: Tofu, Version: v}.TestEnv()); diff != "" {
		t.Error(diff)
	}
}
