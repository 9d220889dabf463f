// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package tfcli

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeRepository is a module with an internal/tools/opentofu whose OpenTofu is
// a few lines; the version's "dev" must be set as in the real one.
var fakeRepository = map[string]string{
	"go.mod": "module example.com/provider\n\ngo 1.26\n",
	"internal/tools/opentofu/go.mod": `module example.com/provider/tools

go 1.26

tool github.com/opentofu/opentofu/cmd/tofu

require github.com/opentofu/opentofu v1.2.3

replace github.com/opentofu/opentofu => ./source
`,
	"internal/tools/opentofu/source/go.mod":             "module github.com/opentofu/opentofu\n\ngo 1.26\n",
	"internal/tools/opentofu/source/version/version.go": "package version\n\nvar dev = \"yes\"\n\nfunc Dev() bool { return dev != \"no\" }\n",
	"internal/tools/opentofu/source/cmd/tofu/main.go": `package main

import (
	"os"

	"github.com/opentofu/opentofu/version"
)

func main() {
	v := "1.2.3"
	if version.Dev() {
		v += "-dev"
	}
	os.Stdout.WriteString("OpenTofu v" + v)
}
`,
}

// enterRepository writes the files, with changes on top, and goes there. PATH
// is left with go alone.
func enterRepository(t *testing.T, changes map[string]string) {
	t.Helper()
	goroot, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	goExe := filepath.Join(strings.TrimSpace(string(goroot)), "bin", exeName("go"))
	pathDir := isolate(t)
	if err := os.Symlink(goExe, filepath.Join(pathDir, exeName("go"))); err != nil {
		t.Setenv("PATH", filepath.Dir(goExe)) // Windows without the right to make links
	}
	root := t.TempDir()
	for _, files := range []map[string]string{fakeRepository, changes} {
		for name, content := range files {
			writeFile(t, filepath.Join(root, filepath.FromSlash(name)), content)
		}
	}
	t.Chdir(root)
}

func TestFindBuildsWhenNothingElseIsThere(t *testing.T) {
	enterRepository(t, nil)
	path, err := cachePath(Tofu, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}

	var log bytes.Buffer
	got, err := Find(t.Context(), &log)
	if err != nil {
		t.Fatal(err, log.String())
	}
	if diff := cmp.Diff([]summary{{Tofu, "1.2.3", "built", path}}, summarize(got)); diff != "" {
		t.Error(diff)
	}
	for _, line := range []string{"; downloading Terraform\n", "download failed: ", "building opentofu v1.2.3 from source"} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("no %q in the log:\n%s", line, log.String())
		}
	}
	if got := strings.Count(log.String(), "\n"); got != 3 {
		t.Errorf("got %d lines of log, want 3:\n%s", got, log.String())
	}

	log.Reset()
	got, err = Find(t.Context(), &log)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]summary{{Tofu, "1.2.3", "cache", path}}, summarize(got)); diff != "" {
		t.Error(diff)
	}
	if log.Len() > 0 {
		t.Errorf("the second Find has something to say: %s", log.String())
	}
}

func TestBuildErrors(t *testing.T) {
	tests := map[string]struct {
		changes map[string]string
		product string
		want    string
	}{
		"no such module": {
			product: Terraform,
			want:    filepath.Join("internal", "tools", "terraform"),
		},
		"compiler's words are told": {
			product: Tofu,
			changes: map[string]string{"internal/tools/opentofu/source/cmd/tofu/main.go": "package main\n\nfunc main() { undefinedThing() }\n"},
			want:    "undefined: undefinedThing",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			enterRepository(t, test.changes)
			_, err := Build(t.Context(), test.product, t.Output())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want an error with %q", err, test.want)
			}
			if left := fromCache(t.Context(), t.Output()); len(left) > 0 {
				t.Errorf("a failed build left %v", left)
			}
		})
	}
}

func TestInstallOnceUnderALock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tofu_1", "tofu")
	var created atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			err := install(t.Context(), path, func(tmp string) error {
				created.Add(1)
				if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("visible before it is whole: %v", err)
				}
				return os.WriteFile(tmp, []byte("whole"), 0o600)
			})
			if err != nil {
				t.Error(err)
			}
			if content, err := os.ReadFile(path); err != nil || string(content) != "whole" {
				t.Errorf("got %q, %v", content, err)
			}
		})
	}
	wg.Wait()
	if got := created.Load(); got != 1 {
		t.Errorf("created %d times, want once", got)
	}
}

func TestInstallLeavesNothingBehindOnFailure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tofu_1", "tofu")
	broken := errors.New("broken")
	err := install(t.Context(), path, func(tmp string) error {
		return errors.Join(os.WriteFile(tmp, []byte("half"), 0o600), broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
