// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bytes"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/tools/tfcli"
)

var (
	exportedFile  = regexp.MustCompile(`(?m)^export TF_CLI_CONFIG_FILE='(.*)'$`)
	printedConfig = regexp.MustCompile(`(?ms)^provider_installation \{\n.*?^\}\n`)
)

// What `make install` prints works: each file that it names, and each snippet,
// copied elsewhere. It is installed twice, as after a change.
func TestAccInstall(t *testing.T) {
	t.Parallel()
	all := newTrials(t)
	dir := t.TempDir()
	var shown bytes.Buffer
	for range 2 {
		shown.Reset()
		if err := tfcli.InstallForUser(t.Context(), dir, &shown); err != nil {
			t.Fatal(err)
		}
	}
	files := exportedFile.FindAllStringSubmatch(shown.String(), -1)
	snippets := printedConfig.FindAllString(shown.String(), -1)
	if len(files) != 2 || len(snippets) != 2 {
		t.Fatalf("%d files and %d snippets in:\n%s", len(files), len(snippets), &shown)
	}
	for i, name := range []string{"dev_overrides", "mirror"} {
		use := func(t *testing.T, s *trial) {
			t.Helper()
			s.write(t, "main.tf", all.read(t, "provider/provider.tf"))
			if name == "mirror" {
				s.call(t, "init")
			}
			s.call(t, "apply", "-auto-approve")
			if diff := cmp.Diff([][]string{{"Add a quickstart for the Python SDK"}}, s.prompts()); diff != "" {
				t.Error(diff)
			}
		}
		t.Run(name+", file", func(t *testing.T) {
			t.Parallel()
			s := all.start(t, 0)
			s.config = files[i][1]
			use(t, s)
		})
		t.Run(name+", snippet", func(t *testing.T) {
			t.Parallel()
			s := all.start(t, 0)
			s.write(t, "mine.tfrc", snippets[i])
			s.config = filepath.Join(s.dir, "mine.tfrc")
			use(t, s)
		})
	}
}
