// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package folder

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/test/storetest"
)

// openFolder opens a folder whose name is no pattern.
func openFolder(t *testing.T) (store.Store, string) {
	t.Helper()
	root := filepath.Join(t.TempDir(), "app[1] [ünï")
	return New(root, true, "scope"), filepath.Join(root, "scope")
}

// writeFile makes a file of some age.
func writeFile(t *testing.T, path string, age time.Duration) {
	t.Helper()
	if err := os.WriteFile(path, []byte("foreign"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
		t.Fatal(err)
	}
}

// To look makes no folder. A text has one file, and what is no text is left alone, but for what a crash has left of one.
func TestFolder_files(t *testing.T) {
	s, dir := openFolder(t)
	if found, err := s.List(t.Context()); len(found) > 0 || err != nil {
		t.Errorf("%v, %v", found, err)
	}
	storetest.Want(t, s, "a", "")
	if _, err := os.Stat(dir); err == nil {
		t.Error("made the folder")
	}
	text := storetest.Write(t, s, storetest.New("a"), "first")
	for _, foreign := range []string{"", "a"} {
		writeFile(t, filepath.Join(dir, foreign, "note.txt"), 2*maxTemporary)
		writeFile(t, filepath.Join(dir, foreign, temporary+"new"), 0)
		writeFile(t, filepath.Join(dir, foreign, temporary+"old"), 2*maxTemporary)
	}
	for _, number := range []string{"0", "-3", "+7", "08", "9x", "10.record"} {
		writeFile(t, filepath.Join(dir, "a", number+store.Suffix), 0)
	}
	writeFile(t, filepath.Join(dir, "b"+store.Suffix), 0)
	if err := os.Mkdir(filepath.Join(dir, "c"), 0o700); err != nil {
		t.Fatal(err)
	}
	text = storetest.Write(t, s, text, "second")
	writeFile(t, filepath.Join(dir, "a", "1"+store.Suffix), 0) // a crash has left it there
	found, err := s.List(t.Context())
	if diff := cmp.Diff([]string{"a"}, found); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got := storetest.Want(t, s, "a", "second"); got.Version != text.Version {
		t.Errorf("written as %s, read as %s", text.Version, got.Version)
	}
	storetest.Write(t, s, text, "third")
	left := []string{
		".tmp-new", "a/+7.record", "a/-3.record", "a/.tmp-new", "a/0.record", "a/08.record", "a/10.record.record", "a/3.record", "a/9x.record", "a/note.txt", "b.record", "note.txt",
	}
	if diff := cmp.Diff(left, storetest.Files(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// A write that fails leaves no file, and the text as it was. X05: no folder can be made there. On Windows, the error
// of reading a file as a folder says that it does not exist.
func TestFolder_writeFails(t *testing.T) {
	s, dir := openFolder(t)
	text := storetest.Write(t, s, storetest.New("a"), "first")
	errLost := errors.New("lost")
	s.(*folder).syncDir = func(string) error { return errLost }
	if _, err := s.Put(t.Context(), text, []byte("second")); !errors.Is(err, errLost) {
		t.Errorf("a write that may get lost: %v", err)
	}
	text = storetest.Want(t, s, "a", "second") // as it may be
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Put(ctx, text, []byte("third")); !errors.Is(err, context.Canceled) {
		t.Errorf("a write that is too late: %v", err)
	}
	if diff := cmp.Diff([]string{"a/1.record", "a/2.record"}, storetest.Files(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, 0)
	for op, err := range storetest.Ops(t, s, "a") {
		if err == nil && op != "read" || errors.Is(err, store.ErrConflict) {
			t.Errorf("%s in a file: %v", op, err)
		}
	}
}

// The default folder is made, and Git ignores it. One that a person has named must exist: see tryMissing.
func TestFolder_missing(t *testing.T) {
	for _, test := range []struct{ isDefault, exists, proves bool }{
		{isDefault: true}, {isDefault: true, proves: true}, {isDefault: true, exists: true}, {exists: true},
	} {
		root := filepath.Join(t.TempDir(), "journal")
		if test.exists {
			if err := os.Mkdir(root, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		s := New(root, test.isDefault, "scope")
		if !test.proves {
			storetest.Write(t, s, storetest.New("a"), "text")
		} else if err := s.Prove(t.Context()); err != nil {
			t.Errorf("%+v: %v", test, err)
		}
		if ignore, _ := os.ReadFile(filepath.Join(root, ".gitignore")); (string(ignore) == "*\n") != test.isDefault {
			t.Errorf("%+v: .gitignore %q", test, ignore)
		}
	}
}

// A loss of power removes no folder that was made, nor a text in it. Red without: each syncDir in folder.go.
func TestFolder_isDurable(t *testing.T) {
	s, dir := openFolder(t)
	root, of := filepath.Dir(dir), filepath.Join(dir, "a")
	var synced []string
	s.(*folder).syncDir = func(path string) error {
		synced = append(synced, path)
		if len(synced) == 1 && path == of && !slices.Contains(storetest.Files(t, of), "1.record") {
			t.Error("the old text is removed before the new one is durable")
		}
		return syncDir(path)
	}
	text := storetest.New("a")
	for _, want := range [][]string{{filepath.Dir(root), root, dir, of}, {of}} {
		synced = nil
		text = storetest.Write(t, s, text, "text")
		if diff := cmp.Diff(want, synced); diff != "" {
			t.Errorf("folders (-want +got):\n%s", diff)
		}
	}
}

// A number is free again once a later one is there: who then makes its file has not won.
//
// Red without: the comparison of latest and number in publish.
func TestFolder_lateWriter(t *testing.T) {
	s, dir := openFolder(t)
	text := storetest.Write(t, s, storetest.New("a"), "first")
	o, err := s.(*folder).open(true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	late, err := o.write(t.Context(), filepath.Join("scope", "a"), []byte("late"))
	if err != nil {
		t.Fatal(err)
	}
	text = storetest.Write(t, s, storetest.Write(t, s, text, "second"), "third")
	if err := o.publish(t.Context(), "a", late, 2); !errors.Is(err, store.ErrConflict) {
		t.Errorf("published: %v", err)
	}
	if got := storetest.Want(t, s, "a", "third"); got.Version != text.Version {
		t.Errorf("version %s, want %s", got.Version, text.Version)
	}
	if diff := cmp.Diff([]string{"a/" + filepath.Base(late), "a/3.record"}, storetest.Files(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
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
