// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// wantFiles asserts the names in a folder, without ids.
func wantFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range list {
		name := file.Name()
		if len(name) > len(newIDExample) && validID(name[:len(newIDExample)]) {
			name = "ID" + name[len(newIDExample):]
		}
		names = append(names, name)
	}
	slices.Sort(names)
	slices.Sort(want)
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// pathOf is the file of a call's entry.
func pathOf(c *Call) string { return c.journal.store.where(c.entry.id) }

func setAge(t *testing.T, path string, age time.Duration) {
	t.Helper()
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
		t.Fatal(err)
	}
}

// writeFile makes a file of some age.
func writeFile(t *testing.T, path, text string, age time.Duration) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	setAge(t, path, age)
}

// To look makes no folder, and what had no effect leaves no file.
func TestFolder_files(t *testing.T) {
	folders(t, func(t *testing.T, l Location) {
		j := open(t, l, "first")
		wantTakeOver(t, j, create, "none")
		if _, err := os.Stat(l.Folder); err == nil {
			t.Error("made the folder")
		}
		c := send(t, j, create, "")
		wantFiles(t, l.Folder, "ID.json")
		c.Withdrawn()
		c.End()
		wantFiles(t, l.Folder)
	})
}

func TestFolder_X15_age(t *testing.T) {
	folders(t, func(t *testing.T, l Location) {
		j := open(t, l, "first")
		aged := func(c *Call, age time.Duration) {
			c.entry.SentAt -= age.Milliseconds()
			if err := c.write(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		aged(post(t, j, create, "", "job-1"), maxAge+time.Minute)
		aged(post(t, j, otherCreate, "", "job-2"), maxAge-time.Minute)
		aged(send(t, j, pendingCreate, ""), maxAge+time.Minute)
		writeFile(t, filepath.Join(l.Folder, newID()+suffix), "{", maxAge+time.Minute)
		later := open(t, l, "second")
		wantTakeOver(t, later, create, "none")
		wantTakeOver(t, later, pendingCreate, "none")
		wantTakeOver(t, later, otherCreate, "job-2")
		if text := fmt.Sprint(wantNotices(t, later, 3)); !strings.Contains(text, "(job: job-1) is older than 30 days") || !strings.Contains(text, "(job: unknown)") {
			t.Error(text)
		}
		wantFiles(t, l.Folder, "ID.json")
	})
}

// X05: what is no entry is left alone, and a damaged one is noticed once.
func TestFolder_foreignFiles(t *testing.T) {
	folders(t, func(t *testing.T, l Location) {
		post(t, open(t, l, "first"), create, "", "job-1")
		foreign := []string{"note.txt", "state.json", "short-first.json"}
		for _, name := range append(foreign, newID()+"-first.json", newID()+".txt") {
			writeFile(t, filepath.Join(l.Folder, name), acceptedLine, 2*maxAge)
		}
		writeFile(t, filepath.Join(l.Folder, newID()+suffix), "", 0) // soon written, by another process
		writeFile(t, filepath.Join(l.Folder, newID()+suffix), pendingLine[:20], 0)
		if err := os.Mkdir(filepath.Join(l.Folder, newID()+suffix), 0o700); err != nil {
			t.Fatal(err)
		}
		j := open(t, l, "second")
		wantTakeOver(t, j, create, "job-1", "none")
		if err := j.Destroyed(t.Context(), "job-1"); err != nil {
			t.Error(err)
		}
		if err := wantNotices(t, j, 1); !errors.Is(err, errDamaged) {
			t.Error(err)
		}
		wantFiles(t, l.Folder, append(foreign, "ID-first.json", "ID.txt", "ID.json", "ID.json", "ID.json")...)
	})
}

// The folder disappears while the provider runs: the next request is recorded again.
func TestFolder_removedMeanwhile(t *testing.T) {
	folders(t, func(t *testing.T, l Location) {
		j := open(t, l, "first")
		post(t, j, create, "", "job-1")
		if err := os.RemoveAll(l.Folder); err != nil {
			t.Fatal(err)
		}
		post(t, j, otherCreate, "", "job-2")
		later := open(t, l, "second")
		wantTakeOver(t, later, create, "none")
		wantTakeOver(t, later, otherCreate, "job-2")
	})
}

// X05: no folder can be made there. On Windows, the error of reading a file as a folder
// says that it does not exist.
func TestFolder_impossible(t *testing.T) {
	folders(t, func(t *testing.T, l Location) {
		if err := os.MkdirAll(filepath.Dir(l.Folder), 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, l.Folder, "", 0)
		j := open(t, l, "first")
		c := j.Begin(t.Context(), Request{Key: create})
		err := c.Sending()
		if _, findErr := j.Find(t.Context(), create); errors.As(err, new(*Error)) != l.Named || errors.As(findErr, new(*Error)) != l.Named {
			t.Errorf("got %v, %v", err, findErr)
		}
		if _, err := j.Announce(t.Context(), create); !errors.As(err, new(*Error)) {
			t.Error(err)
		}
		c.Accepted("job-1")
		if c.Problem() == nil {
			t.Error("no problem")
		}
		c.End()
	})
}
