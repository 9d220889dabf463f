// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package tfcli

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Of the CLIs on PATH, the first one that works is used. If one is asked for, no other one takes its place.
func TestFind(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the fake CLIs are shell scripts")
	}
	dir := t.TempDir()
	for name, version := range map[string]string{"terraform": "", "tofu": "OpenTofu v1.12.6", "other": "Packer v1.0.0"} {
		script := "#!/bin/sh\n[ -n '" + version + "' ] && echo '" + version + "\nand more'\n" // fails without a version
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	for asked, want := range map[string]string{"": "skipped: ", "tofu": "", "nowhere": "$TF_CLI", "other": "neither Terraform nor OpenTofu"} {
		t.Setenv(EnvCLI, asked)
		var log bytes.Buffer
		got, err := Find(t.Context(), &log)
		if err != nil {
			log.WriteString(err.Error())
		} else if got.Path != filepath.Join(dir, "tofu") {
			t.Errorf("%q: got %q", asked, got.Path)
		}
		if !strings.Contains(log.String(), want) || (err == nil) != (asked == "" || asked == "tofu") {
			t.Errorf("%q: got %v, and the log %q, want %q", asked, err, &log, want)
		}
	}
}
