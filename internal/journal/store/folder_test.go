// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
)

// open opens the store of a scope.
func open(t *testing.T, l Location) Store {
	t.Helper()
	return Open(l, "scope", new(cli.Process))
}

// openFolder opens a folder whose name is no pattern.
func openFolder(t *testing.T) (Store, string) {
	t.Helper()
	l := Location{Folder: filepath.Join(t.TempDir(), "app[1] [ünï"), Default: true}
	return open(t, l), filepath.Join(l.Folder, "scope")
}

// writeFile makes a file of some age.
func writeFile(t *testing.T, path string, age time.Duration) {
	t.Helper()
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
		t.Fatal(err)
	}
}

// To look makes no folder. What is no entry is left alone, but for what a crash has left of one.
func TestFolder_foreignFiles(t *testing.T) {
	s, dir := openFolder(t)
	if names, err := s.List(t.Context(), ""); len(names) > 0 || err != nil {
		t.Errorf("%v, %v", names, err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("made the folder")
	}
	name := NewName(CreateKey("p", "a", ""), "run1")
	if err := s.Write(t.Context(), name, &Entry{}); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, name.String()), 2*maxTemporary)
	writeFile(t, filepath.Join(dir, temporary+"new"), 0)
	writeFile(t, filepath.Join(dir, temporary+"old"), 2*maxTemporary)
	if err := os.Mkdir(filepath.Join(dir, NewName(name.Key, "run2").String()+suffix), 0o700); err != nil {
		t.Fatal(err)
	}
	names, err := s.List(t.Context(), "")
	if diff := cmp.Diff([]Name{name}, names); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	files, err := os.ReadDir(dir)
	if _, old := os.Stat(filepath.Join(dir, temporary+"old")); len(files) != 4 || err != nil || old == nil {
		t.Errorf("files: %v, %v", files, err)
	}
}

// A write that fails leaves no file, and the entry as it was. X05: no folder can be made there. On Windows, the error
// of reading a file as a folder says that it does not exist.
func TestFolder_writeFails(t *testing.T) {
	s, dir := openFolder(t)
	name := NewName(CreateKey("p", "a", ""), "run1")
	if err := os.MkdirAll(s.Where(name), 0o700); err != nil { // cannot be replaced
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), name, &Entry{}); err == nil {
		t.Error("replaced a folder")
	}
	if files, err := os.ReadDir(dir); len(files) != 1 || err != nil {
		t.Errorf("files: %v, %v", files, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, 0)
	if err := s.Write(t.Context(), name, &Entry{}); err == nil {
		t.Error("wrote an entry")
	}
	if _, err := s.List(t.Context(), ""); err == nil {
		t.Error("listed a file")
	}
}

// The default folder is made, and Git ignores it. One that a person has named must exist: see TestStores_missing.
func TestFolder_missing(t *testing.T) {
	for _, test := range []struct{ isDefault, exists bool }{{true, false}, {true, true}, {false, true}} {
		l := Location{Folder: filepath.Join(t.TempDir(), "journal"), Default: test.isDefault}
		if test.exists {
			if err := os.Mkdir(l.Folder, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		s := open(t, l)
		_, listErr := s.List(t.Context(), "")
		writeErr := s.Write(t.Context(), NewName(CreateKey("p", "a", ""), "run1"), &Entry{})
		ignore, _ := os.ReadFile(filepath.Join(l.Folder, ".gitignore"))
		if listErr != nil || writeErr != nil || (string(ignore) == "*\n") != test.isDefault {
			t.Errorf("%+v: list %v, write %v, .gitignore %q", test, listErr, writeErr, ignore)
		}
	}
}

// A loss of power removes no folder that was made, nor the first entry in it. Red without: each syncDir in folder.go.
func TestFolder_isDurable(t *testing.T) {
	s, dir := openFolder(t)
	root := filepath.Dir(dir)
	var synced []string
	s.(*folder).syncDir = func(path string) error { synced = append(synced, path); return syncDir(path) }
	for _, want := range [][]string{{filepath.Dir(root), root, dir}, {dir}} {
		synced = nil
		if err := s.Write(t.Context(), NewName(CreateKey("p", "a", ""), "run1"), &Entry{}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, synced); diff != "" {
			t.Errorf("folders (-want +got):\n%s", diff)
		}
	}
}

// A share that cannot sync holds an entry nevertheless. An error that may have lost it stays.
func TestSyncError(t *testing.T) {
	for errno, isDropped := range map[syscall.Errno]bool{
		syscall.EINVAL: true, syscall.ENOTSUP: true, syscall.ENOENT: true, syscall.ENOTTY: true,
		syscall.EIO: false, syscall.ENOSPC: false, syscall.EROFS: false,
	} {
		err := error(&fs.PathError{Op: "sync", Path: "folder", Err: errno})
		want := err
		if isDropped {
			want = nil
		}
		if got := syncError(err); !errors.Is(got, want) {
			t.Errorf("%v: %v", err, got)
		}
	}
	if err := syncError(nil); err != nil {
		t.Error(err)
	}
}
