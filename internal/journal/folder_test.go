// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
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
func pathOf(c *Call) string { return c.journal.store.(*folder).path(c.entry) }

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

// What lies in a folder after each way to end; to look leaves nothing. The default
// folder itself goes when it is empty; a named one has the user's permissions.
func TestFolder_files(t *testing.T) {
	folders(t, func(t *testing.T, l Location) {
		exists := func() bool { _, err := os.Stat(l.Folder); return err == nil }
		j := open(t, l, "first")
		wantTakeOver(t, j, create, "none")
		if exists() {
			t.Error("made the folder")
		}
		c := send(t, j, create, "")
		wantFiles(t, l.Folder, "ID-first.json", "ID.lock")
		c.Withdrawn()
		c.End()
		j.process.Close(t.Context())
		if exists() != l.Named {
			t.Errorf("the empty folder exists: %t", exists())
		}
	})
}

func TestFolder_X15_age(t *testing.T) {
	folders(t, func(t *testing.T, l Location) {
		j := open(t, l, "first")
		setAge(t, pathOf(post(t, j, create, "", "job-1")), maxAge+time.Minute)
		setAge(t, pathOf(post(t, j, otherCreate, "", "job-2")), maxAge-time.Minute)
		setAge(t, pathOf(send(t, j, pendingCreate, "")), maxAge+time.Minute)
		writeFile(t, filepath.Join(l.Folder, newID()+"-first.json"), "{", maxAge+time.Minute)
		crash(j)
		next, reported := openReporting(t, l, "second")
		wantTakeOver(t, next, create, "none")
		wantTakeOver(t, next, pendingCreate, "none")
		wantTakeOver(t, next, otherCreate, "job-2")
		if err := wantReports(t, reported, 1); !strings.Contains(fmt.Sprint(err), "was never known") {
			t.Error(err)
		}
		wantFiles(t, l.Folder, "ID-second.json", "ID.lock")
	})
}

// X05: what is no entry is left alone, a damaged one is reported by each process
// once, and of the locks only that of a process that lives stays.
func TestFolder_foreignFiles(t *testing.T) {
	folders(t, func(t *testing.T, l Location) {
		j := open(t, l, "first")
		post(t, j, create, "", "job-1")
		setAge(t, j.store.(*folder).lock.Path(), time.Hour)
		foreign := []string{"note.txt", "state.json", "other.lock", "short-first.json"}
		for _, name := range append(foreign, newID()+".json", newID()+"-first.txt", newID()+".lock", newID()+".lock") {
			writeFile(t, filepath.Join(l.Folder, name), answeredLine, 2*maxAge)
		}
		writeFile(t, filepath.Join(l.Folder, newID()+"-written.json"), "", 0) // soon, by another process
		for _, text := range []string{"", "", pendingLine[:20]} {
			writeFile(t, filepath.Join(l.Folder, newID()+"-damaged.json"), text, 2*time.Minute)
		}
		if err := os.Mkdir(filepath.Join(l.Folder, newID()+"-folder.json"), 0o700); err != nil {
			t.Fatal(err)
		}
		next, reported := openReporting(t, l, "second")
		wantTakeOver(t, next, create, "job-1", "none")
		if err := next.Forget(t.Context(), "job-1"); err != nil {
			t.Error(err)
		}
		next.process.Close(t.Context())
		for _, err := range wantReports(t, reported, 3) {
			if !errors.Is(err, errDamaged) {
				t.Error(err)
			}
		}
		wantFiles(t, l.Folder, append(foreign, "ID.json", "ID-first.txt", "ID.lock", "ID-written.json", "ID-damaged.json", "ID-damaged.json", "ID-damaged.json", "ID-folder.json")...)
	})
}

// The folder disappears while the provider runs: the next request is recorded again.
func TestFolder_removedMeanwhile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not remove a folder with an open file in it")
	}
	folders(t, func(t *testing.T, l Location) {
		j := open(t, l, "first")
		post(t, j, create, "", "job-1")
		if err := os.RemoveAll(l.Folder); err != nil {
			t.Fatal(err)
		}
		c := send(t, j, otherCreate, "")
		next := open(t, l, "second")
		if next.store.dead(c.entry) {
			t.Error("this process counts as dead")
		}
		c.Answered("job-2")
		wantTakeOver(t, next, create, "none")
		wantTakeOver(t, next, otherCreate, "job-2")
	})
}

// X05: no folder can be made there. A response without a record before it has a time.
func TestFolder_impossible(t *testing.T) {
	folders(t, func(t *testing.T, l Location) {
		if err := os.MkdirAll(filepath.Dir(l.Folder), 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, l.Folder, "", 0)
		j, reported := openReporting(t, l, "first")
		c := j.Begin(t.Context(), create, "")
		err := c.Sending()
		if _, takeErr := j.TakeOver(t.Context(), create); errors.As(err, new(*Error)) != l.Named || errors.As(takeErr, new(*Error)) != l.Named {
			t.Errorf("got %v, %v", err, takeErr)
		}
		c.Answered("job-1")
		if age := time.Since(time.UnixMilli(c.Ref().At)); age.Abs() > time.Minute {
			t.Errorf("sent %s ago", age)
		}
		c.End()
		j.process.Close(t.Context())
		if l.Named != (len(reported) == 0) {
			t.Errorf("reported %d errors", len(reported))
		}
	})
}
