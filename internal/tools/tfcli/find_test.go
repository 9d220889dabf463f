// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package tfcli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/source"
)

func TestFind(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the fake CLIs are shell scripts")
	}
	const terraform, tofu, other, built = "path/terraform", "path/tofu", "elsewhere/other", "built"
	tests := map[string]struct {
		clis  map[string]string // versions: built is in the cache folder, and what begins with path on PATH
		tfCLI string
		find  func(context.Context, io.Writer) (CLI, error)
		want  string
		log   string
		err   string
	}{
		"terraform before tofu":         {clis: map[string]string{terraform: "Terraform v1.11.4", tofu: "OpenTofu v1.12.6"}, find: Find, want: terraform},
		"PATH before the cache":         {clis: map[string]string{tofu: "OpenTofu v1.12.6", built: "Terraform v1.16.3"}, find: Find, want: tofu},
		"the cache":                     {clis: map[string]string{built: "Terraform v1.16.3"}, find: Find, want: built},
		"a broken one":                  {clis: map[string]string{terraform: "", tofu: "OpenTofu v1.12.6"}, find: Find, want: tofu, log: "skipped: "},
		"TF_CLI by name":                {clis: map[string]string{terraform: "Terraform v1.11.4", tofu: "OpenTofu v1.12.6"}, tfCLI: "tofu", find: Find, want: tofu},
		"TF_CLI by path":                {clis: map[string]string{terraform: "Terraform v1.11.4", other: "OpenTofu v1.0.0"}, tfCLI: other, find: Find, want: other},
		"TF_CLI that is not there":      {clis: map[string]string{terraform: "Terraform v1.11.4"}, tfCLI: "nowhere", find: Find, err: "$TF_CLI"},
		"TF_CLI that is something else": {clis: map[string]string{other: "Packer v1.0.0"}, tfCLI: other, find: Find, err: "neither Terraform nor OpenTofu"},
		"actions: a new terraform":      {clis: map[string]string{terraform: "Terraform v1.14.0-rc1"}, find: FindWithActions, want: terraform},
		"actions: not an old one":       {clis: map[string]string{terraform: "Terraform v1.13.9", built: "Terraform v1.16.3"}, find: FindWithActions, want: built},
		"actions: not OpenTofu":         {clis: map[string]string{built: "Terraform v1.16.3", tofu: "OpenTofu v1.16.3"}, tfCLI: "tofu", find: FindWithActions, want: built},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			t.Setenv("PATH", filepath.Join(dir, "path"))
			t.Setenv("HOME", dir)
			t.Setenv("XDG_CACHE_HOME", dir)
			t.Setenv("TF_LOG", "TRACE")
			cached, err := source.Terraform().Path()
			if err != nil {
				t.Fatal(err)
			}
			place := func(cli string) string {
				if cli == built {
					return cached
				}
				return filepath.Join(dir, cli)
			}
			for cli, version := range test.clis { // scripts that fail without a version, or if the user's settings reach them
				script := "#!/bin/sh\n[ -z \"$TF_LOG\" ] && [ -n '" + version + "' ] && echo '" + version + "\nand more'\n"
				if err := errors.Join(os.MkdirAll(filepath.Dir(place(cli)), 0o755), os.WriteFile(place(cli), []byte(script), 0o700)); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv(EnvCLI, test.tfCLI)

			var log bytes.Buffer
			got, err := test.find(t.Context(), &log)
			if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("got error %v, want %q", err, test.err)
			}
			if test.want != "" && got.Path != place(test.want) {
				t.Errorf("got %q, want %q", got.Path, place(test.want))
			}
			if (test.log == "") != (log.Len() == 0) || !strings.Contains(log.String(), test.log) {
				t.Errorf("got log %q, want %q in it", log.String(), test.log) // a download would be there
			}
		})
	}
}
