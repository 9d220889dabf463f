// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package tfcli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-version"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/source"
)

// putCLI writes a fake CLI to path: a script that reports a version, or fails if
// there is none, or if the user's settings reach it.
func putCLI(t *testing.T, path, version string) {
	t.Helper()
	script := "#!/bin/sh\n[ -z \"$TF_LOG\" ] && [ -n '" + version + "' ] && echo '" + version + "\nand more'\n"
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the fake CLIs are shell scripts")
	}
	const terraform, tofu, built = "terraform", "tofu", "built"
	tests := map[string]struct {
		clis  map[string]string // versions: terraform and tofu are on PATH, other is elsewhere, built is in the cache folder
		tfCLI string
		find  func(context.Context, io.Writer) (CLI, error)
		want  string
		log   string
		err   string
	}{
		"terraform before tofu":         {clis: map[string]string{terraform: "Terraform v1.11.4", tofu: "OpenTofu v1.12.6"}, find: Find, want: terraform},
		"tofu alone":                    {clis: map[string]string{tofu: "OpenTofu v1.12.6"}, find: Find, want: tofu},
		"PATH before the cache":         {clis: map[string]string{tofu: "OpenTofu v1.12.6", built: "Terraform v1.16.3"}, find: Find, want: tofu},
		"the cache":                     {clis: map[string]string{built: "Terraform v1.16.3"}, find: Find, want: built},
		"a broken one":                  {clis: map[string]string{terraform: "", tofu: "OpenTofu v1.12.6"}, find: Find, want: tofu, log: "skipped: "},
		"TF_CLI by name":                {clis: map[string]string{terraform: "Terraform v1.11.4", tofu: "OpenTofu v1.12.6"}, tfCLI: "tofu", find: Find, want: tofu},
		"TF_CLI by path":                {clis: map[string]string{terraform: "Terraform v1.11.4", "other": "OpenTofu v1.0.0"}, tfCLI: "other", find: Find, want: "other"},
		"TF_CLI that is not there":      {clis: map[string]string{terraform: "Terraform v1.11.4"}, tfCLI: "nowhere", find: Find, err: "$TF_CLI"},
		"TF_CLI that is something else": {clis: map[string]string{"other": "Packer v1.0.0"}, tfCLI: "other", find: Find, err: "neither Terraform nor OpenTofu"},
		"actions: a new terraform":      {clis: map[string]string{terraform: "Terraform v1.14.0-rc1"}, find: FindWithActions, want: terraform},
		"actions: not an old one":       {clis: map[string]string{terraform: "Terraform v1.13.9", built: "Terraform v1.16.3"}, find: FindWithActions, want: built},
		"actions: not OpenTofu":         {clis: map[string]string{built: "Terraform v1.16.3", tofu: "OpenTofu v1.16.3"}, tfCLI: "tofu", find: FindWithActions, want: built},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("PATH", filepath.Join(dir, "path"))
			t.Setenv("HOME", dir)
			t.Setenv("XDG_CACHE_HOME", dir)
			t.Setenv("TF_LOG", "TRACE")
			cached, err := source.Terraform().Path()
			if err != nil {
				t.Fatal(err)
			}
			paths := map[string]string{
				terraform: filepath.Join(dir, "path", "terraform"),
				tofu:      filepath.Join(dir, "path", "tofu"),
				"other":   filepath.Join(dir, "elsewhere", "other"),
				built:     cached,
			}
			for cli, version := range test.clis {
				putCLI(t, paths[cli], version)
			}
			if test.tfCLI == "other" {
				test.tfCLI = paths["other"]
			}
			t.Setenv(EnvCLI, test.tfCLI)

			var log bytes.Buffer
			got, err := test.find(t.Context(), &log)
			if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("got error %v, want %q", err, test.err)
			}
			if diff := cmp.Diff(paths[test.want], got.Path); diff != "" {
				t.Error(diff)
			}
			if (test.log == "") != (log.Len() == 0) || !strings.Contains(log.String(), test.log) {
				t.Errorf("got log %q, want %q in it", log.String(), test.log) // a download would be there
			}
		})
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
