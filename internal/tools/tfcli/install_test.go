// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package tfcli

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInstallPlugin(t *testing.T) {
	enterRepository(t, map[string]string{
		"main.go": "package main\n\nvar version = \"dev\"\n\nfunc main() { println(version) }\n",
	})
	dir := t.TempDir()
	got, err := InstallPlugin(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}

	platform := runtime.GOOS + "_" + runtime.GOARCH
	exe := exeName("terraform-provider-agent_v0.0.1")
	want := []string{
		"mirror/registry.opentofu.org/agentjobs/agent/0.0.1/" + platform + "/" + exe,
		"mirror/registry.terraform.io/agentjobs/agent/0.0.1/" + platform + "/" + exe,
		"mirror.tfrc",
		"override.tfrc",
	}
	if diff := cmp.Diff(want, filesBelow(t, dir)); diff != "" {
		t.Error(diff)
	}
	for _, executable := range []string{got.Executable, filepath.Join(dir, filepath.FromSlash(want[0]))} {
		text, err := exec.CommandContext(t.Context(), executable).CombinedOutput()
		if err != nil || strings.TrimSpace(string(text)) != "0.0.1" {
			t.Errorf("%s: %q, %v", executable, text, err)
		}
	}
	slashed := filepath.ToSlash(dir)
	for file, want := range map[string]string{
		got.MirrorConfig: fmt.Sprintf(`provider_installation {
  filesystem_mirror {
    path    = "%s/mirror"
    include = ["registry.terraform.io/agentjobs/agent", "registry.opentofu.org/agentjobs/agent"]
  }
}
`, slashed),
		got.OverrideConfig: fmt.Sprintf(`provider_installation {
  dev_overrides {
    "registry.terraform.io/agentjobs/agent" = "%[1]s"
    "registry.opentofu.org/agentjobs/agent" = "%[1]s"
  }
}
`, filepath.ToSlash(filepath.Dir(got.Executable))),
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(text)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestInstallPluginErrors(t *testing.T) {
	tests := map[string]struct{ main, want string }{
		"does not compile":   {"package main\n\nfunc main() { undefinedThing() }\n", "undefined: undefinedThing"},
		"outside any module": {"", "no go.mod"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			enterRepository(t, map[string]string{"main.go": test.main})
			if test.main == "" {
				t.Chdir(t.TempDir())
			}
			_, err := InstallPlugin(t.Context(), t.TempDir())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestCommandUsesTheConfigurationGiven(t *testing.T) {
	t.Setenv("TF_LOG", "TRACE")
	t.Setenv("TF_CLI_CONFIG_FILE", "the user's own")
	cmd := CLI{Path: "cli"}.Command(t.Context(), "ours", "plan")
	got := map[string]string{}
	for _, entry := range cmd.Environ() { // the last of a name wins
		name, value, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "TF_") {
			got[name] = value
		}
	}
	if diff := cmp.Diff(map[string]string{"TF_CLI_CONFIG_FILE": "ours"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"cli", "plan"}, cmd.Args); diff != "" {
		t.Error(diff)
	}
}

// filesBelow lists files in lexical order of their folders, with slashes.
func filesBelow(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
