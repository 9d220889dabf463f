// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !windows

package folder

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/test/storetest"
)

// Whoever shares a folder with a group, and has such a umask, shares what is made in it.
func TestFolder_sharedByGroup(t *testing.T) {
	root := t.TempDir()
	defer syscall.Umask(syscall.Umask(0o002))
	s := New(root, false, "scope")
	storetest.Write(t, s, "a", "text", "")
	for path, want := range map[string]fs.FileMode{"scope": 0o775, "scope/a": 0o775, "scope/a/1.json": 0o664} {
		info, err := os.Stat(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has the mode %s, want %s", path, info.Mode().Perm(), want)
		}
	}
}
