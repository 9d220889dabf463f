// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build !windows

package folder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/test/storetest"
)

// Whoever shares a folder with a group, and has such a umask, shares what is made in it. Nobody writes to a file again.
func TestFolder_sharedByGroup(t *testing.T) {
	root := t.TempDir()
	defer syscall.Umask(syscall.Umask(0o002))
	s := New(root, false, "scope")
	storetest.Write(t, s, storetest.New("a"), "text")
	for path, want := range map[string]fs.FileMode{"scope": 0o775, "scope/a": 0o775, "scope/a/1.record": 0o664} {
		info, err := os.Stat(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has the mode %s, want %s", path, info.Mode().Perm(), want)
		}
	}
}

// A checkout can bring a journal with anything in it. What the provider has not made is neither read nor written, by a listing as by a
// read, and nothing outside the folder changes. (X21)
//
// Red without: the checks in open, checkFile and checkFolder, and os.O_EXCL in ignore.
func TestFolder_checkout(t *testing.T) {
	for name, test := range map[string]struct {
		bring func(root, outside string) error
		works bool
		named bool // not the default folder
	}{
		"nothing":          {bring: func(string, string) error { return nil }, works: true},
		"root to a folder": {bring: func(root, outside string) error { return errors.Join(os.Remove(root), os.Symlink(outside, root)) }},
		"root to nothing": {bring: func(root, outside string) error {
			return errors.Join(os.Remove(root), os.Symlink(outside+"/new", root))
		}},
		"scope to a folder": {bring: func(root, outside string) error { return os.Symlink(outside+"/scope", root+"/scope") }},
		"scope to another one": {bring: func(root, _ string) error {
			return errors.Join(os.Mkdir(root+"/b", 0o700), os.Symlink("b", root+"/scope"))
		}},
		"scope to nothing": {bring: func(root, outside string) error { return os.Symlink(outside+"/new", root+"/scope") }},
		"scope, a pipe":    {bring: func(root, _ string) error { return syscall.Mkfifo(root+"/scope", 0o600) }},
		"key to a folder": {bring: func(root, outside string) error {
			return errors.Join(os.Mkdir(root+"/scope", 0o700), os.Symlink(outside+"/scope/a", root+"/scope/a"))
		}},
		"key, a file":          {bring: func(root, _ string) error { return bring(root+"/scope/a", 0o444) }},
		"record to a record":   {bring: func(root, outside string) error { return linkRecord(outside+"/scope/a/1.record", root) }},
		"record to nothing":    {bring: func(root, outside string) error { return linkRecord(outside+"/new", root) }},
		"record to a device":   {bring: func(root, _ string) error { return linkRecord("/dev/zero", root) }},
		"record, a folder":     {bring: func(root, _ string) error { return os.MkdirAll(root+"/scope/a/1.record", 0o700) }},
		"record of a checkout": {bring: func(root, _ string) error { return bring(root+"/scope/a/1.record", 0o644) }},
		"record as old as its commit": {bring: func(root, _ string) error {
			return errors.Join(bring(root+"/scope/a/1.record", 0o444), os.Chtimes(root+"/scope/a/1.record", time.Unix(1e9, 0), time.Unix(1e9, 0)))
		}},
		"record, a pipe": {bring: func(root, _ string) error {
			return errors.Join(os.MkdirAll(root+"/scope/a", 0o700), syscall.Mkfifo(root+"/scope/a/1.record", 0o400))
		}},
		"record, a pipe in a named folder": {named: true, bring: func(root, _ string) error {
			return errors.Join(os.MkdirAll(root+"/scope/a", 0o700), syscall.Mkfifo(root+"/scope/a/1.record", 0o400))
		}},
		".gitignore to a file":  {bring: func(root, outside string) error { return os.Symlink(outside+"/file", root+"/.gitignore") }, works: true},
		".gitignore to nothing": {bring: func(root, outside string) error { return os.Symlink(outside+"/new", root+"/.gitignore") }, works: true},
		".gitignore, a pipe":    {bring: func(root, _ string) error { return syscall.Mkfifo(root+"/.gitignore", 0o600) }, works: true},
	} {
		t.Run(name, func(t *testing.T) {
			root, outside := t.TempDir(), t.TempDir()
			err := errors.Join(bring(outside+"/file", 0o600), bring(outside+"/scope/a/1.record", 0o444), test.bring(root, outside))
			if err != nil {
				t.Fatal(err)
			}
			before, s := contents(t, outside), New(root, !test.named, "scope")
			_, listErr := s.List(t.Context())
			_, readErr := s.Get(t.Context(), "a")
			_, writeErr := s.Put(t.Context(), storetest.New("a"), []byte("text"))
			if (listErr == nil) != test.works || (readErr == nil) != test.works || (writeErr == nil) != test.works {
				t.Errorf("list: %v\nread: %v\nwrite: %v", listErr, readErr, writeErr)
			}
			if proveErr := s.Prove(t.Context()); test.works && proveErr != nil {
				t.Error(proveErr)
			}
			if diff := cmp.Diff(before, contents(t, outside)); diff != "" {
				t.Errorf("outside (-before +after):\n%s", diff)
			}
		})
	}
}

// bring makes a file as Git does, or another mode.
func bring(path string, mode fs.FileMode) error {
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("text"), 0o600), os.Chmod(path, mode))
}

func linkRecord(to, root string) error {
	return errors.Join(os.MkdirAll(root+"/scope/a", 0o700), os.Symlink(to, root+"/scope/a/1.record"))
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, name := range storetest.Files(t, dir) {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		found[name] = string(text)
	}
	return found
}
