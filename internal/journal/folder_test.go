// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// files are the names in a folder, without ids, sorted.
func files(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
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
	return sorted(names...)
}

func setAge(t *testing.T, path string, age time.Duration) {
	t.Helper()
	at := time.Now().Add(-age)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// What lies in a folder after each way to end. The default folder itself goes
// when it is empty; a named one has the user's permissions.
func TestFolder_files(t *testing.T) {
	folders(t, func(t *testing.T, l Location) {
		p, j := open(t, l, "first")
		c := send(t, j, create, "")
		if diff := cmp.Diff([]string{"ID-first.json", "ID.lock"}, files(t, l.Folder)); diff != "" {
			t.Error(diff)
		}
		c.Withdrawn()
		c.End()
		p.Close(t.Context())
		if _, err := os.Stat(l.Folder); errors.Is(err, os.ErrNotExist) == l.Named {
			t.Errorf("the empty folder: %v", err)
		}
		_, j = open(t, l, "first")
		post(t, j, create, "", "job-1")
		crash(j)
		_, next := open(t, l, "second")
		if got := takeOver(t, next, create); got != "job-1" {
			t.Errorf("took over %s", got)
		}
		if diff := cmp.Diff([]string{"ID-second.json", "ID.lock"}, files(t, l.Folder)); diff != "" {
			t.Error(diff)
		}
	})
}

// Looking at an empty or missing folder leaves nothing.
func TestFolder_nothingToSee(t *testing.T) {
	folders(t, func(t *testing.T, l Location) {
		p, j := open(t, l, "first")
		if got := takeOver(t, j, create); got != "none" {
			t.Errorf("took over %s", got)
		}
		if _, err := os.Stat(l.Folder); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("made the folder: %v", err)
		}
		p.Close(t.Context())
	})
}

func TestFolder_age(t *testing.T) {
	folders(t, func(t *testing.T, l Location) {
		_, j := open(t, l, "first")
		old, young := post(t, j, create, "", "job-1"), post(t, j, otherCreate, "", "job-2")
		pending, another := send(t, j, pendingCreate, ""), send(t, j, earlier, "job-1")
		crash(j)
		damaged := &Call{journal: j, entry: &entry{id: newID(), Run: "first"}}
		if err := os.WriteFile(j.store.(*folder).path(damaged.entry), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		for c, age := range map[*Call]time.Duration{old: maxAge + time.Minute, young: maxAge - time.Minute, pending: maxAge + time.Minute, another: maxAge + time.Minute, damaged: maxAge + time.Minute} {
			setAge(t, j.store.(*folder).path(c.entry), age)
		}
		r := new(reports)
		_, next := openReporting(t, l, "second", r.add)
		if got := []string{takeOver(t, next, create), takeOver(t, next, pendingCreate), takeOver(t, next, otherCreate)}; !cmp.Equal(got, []string{"none", "none", "job-2"}) {
			t.Errorf("took over %q", got)
		}
		if r.count() != 2 || !strings.Contains(r.errs[0].Error(), "was never known") {
			t.Errorf("reported: %v", r.errs)
		}
		if diff := cmp.Diff([]string{"ID-second.json", "ID.lock"}, files(t, l.Folder)); diff != "" {
			t.Error(diff)
		}
	})
}

// The lock of a process that was killed goes; a living one's stays.
func TestFolder_locks(t *testing.T) {
	l := Location{Named: true, Folder: t.TempDir()}
	_, j := open(t, l, "first")
	post(t, j, create, "", "job-1")
	for _, name := range []string{newID() + lockSuffix, newID() + lockSuffix, "other" + lockSuffix} {
		if err := os.WriteFile(filepath.Join(l.Folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		setAge(t, filepath.Join(l.Folder, name), time.Hour)
	}
	setAge(t, j.store.(*folder).lock.Path(), time.Hour)
	_, next := open(t, l, "second")
	if got := takeOver(t, next, otherCreate); got != "none" {
		t.Errorf("took over %s", got)
	}
	crash(next)
	if diff := cmp.Diff([]string{"ID-first.json", "ID.lock", "other.lock"}, files(t, l.Folder)); diff != "" {
		t.Error(diff)
	}
}

// X05: what is no entry is left alone, and a damaged one is reported by each process once.
func TestFolder_foreignFiles(t *testing.T) {
	folders(t, func(t *testing.T, l Location) {
		_, j := open(t, l, "first")
		post(t, j, create, "", "job-1")
		crash(j)
		foreign := []string{"note.txt", "state.json", "short-first.json", newID() + ".json", newID() + "-first.txt"}
		for _, name := range foreign {
			path := filepath.Join(l.Folder, name)
			if err := os.WriteFile(path, []byte(answeredLine), 0o600); err != nil {
				t.Fatal(err)
			}
			setAge(t, path, 2*maxAge)
		}
		aboutToBeWritten := newID() + "-first.json"
		for name, text := range map[string]string{aboutToBeWritten: "", newID() + "-first.json": "", newID() + "-third.json": "", newID() + "-second.json": pendingLine[:20]} {
			path := filepath.Join(l.Folder, name)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if name != aboutToBeWritten {
				setAge(t, path, 2*time.Minute)
			}
		}
		if err := os.Mkdir(filepath.Join(l.Folder, newID()+"-first.json"), 0o700); err != nil {
			t.Fatal(err)
		}
		before := files(t, l.Folder)
		r := new(reports)
		p, next := openReporting(t, l, "second", r.add)
		if got := takers(t, create, next, next); !cmp.Equal(got, []string{"job-1", "none"}) {
			t.Errorf("took over %q", got)
		}
		if err := next.Forget(t.Context(), "job-1"); err != nil {
			t.Error(err)
		}
		p.Close(t.Context())
		if r.count() != 3 || !errors.Is(errors.Join(r.errs...), errDamaged) {
			t.Errorf("reported: %v", r.errs)
		}
		if got := len(files(t, l.Folder)); got != len(before)-1 {
			t.Errorf("left of %q: %q", before, files(t, l.Folder))
		}
	})
}

// The folder disappears while the provider runs: the next request is recorded again.
func TestFolder_removedMeanwhile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not remove a folder with an open file in it")
	}
	folders(t, func(t *testing.T, l Location) {
		_, j := open(t, l, "first")
		post(t, j, create, "", "job-1")
		if err := os.RemoveAll(l.Folder); err != nil {
			t.Fatal(err)
		}
		c := send(t, j, otherCreate, "")
		_, next := open(t, l, "second")
		if next.store.dead(c.entry) {
			t.Error("this process counts as dead")
		}
		c.Answered("job-2")
		if got := []string{takeOver(t, next, create), takeOver(t, next, otherCreate)}; !cmp.Equal(got, []string{"none", "job-2"}) {
			t.Errorf("took over %q", got)
		}
	})
}

// X05: no folder can be made there.
func TestFolder_impossible(t *testing.T) {
	folders(t, func(t *testing.T, l Location) {
		if err := os.WriteFile(l.Folder, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		r := new(reports)
		p, j := openReporting(t, l, "first", r.add)
		c := j.Begin(t.Context(), create, "")
		sendErr := c.Sending()
		_, takeErr := j.TakeOver(t.Context(), create)
		for _, err := range []error{sendErr, takeErr} {
			if errors.As(err, new(*Error)) != l.Named {
				t.Errorf("got %v", err)
			}
		}
		if !l.Named {
			c.Answered("job-1")
			if c.Unrecorded() != nil {
				t.Error(c.Unrecorded())
			}
		}
		c.End()
		p.Close(t.Context())
		if l.Named != (r.count() == 0) {
			t.Errorf("reported: %v", r.errs)
		}
	})
}

// The folder is the user's: its name is no pattern.
func TestFolder_names(t *testing.T) {
	for _, name := range []string{"app[1]", "app[", "ünï cødé", "a b"} {
		l := Location{Named: true, Folder: filepath.Join(t.TempDir(), name, "agent")}
		_, j := open(t, l, "first")
		post(t, j, create, "", "job-1")
		_, next := open(t, l, "second")
		if got := takeOver(t, next, create); got != "job-1" {
			t.Errorf("%s: took over %s", name, got)
		}
	}
}

// Entries tell nothing of a request but hashes, ids and times.
func TestStores_secrets(t *testing.T) {
	const canary = "canary"
	places(t, func(t *testing.T, l Location) {
		_, j := open(t, l, "first")
		post(t, j, CreateKey("scope", canary), "", "job-1")
		post(t, j, MessageKey("scope", canary), "job-1", "job-1")
		send(t, j, MessageKey(canary), "job-1")
		entries, err := j.store.load(t.Context())
		if err != nil || len(entries) != 3 {
			t.Fatal(entries, err)
		}
		for _, e := range entries {
			text, err := json.Marshal(e)
			if err != nil || strings.Contains(string(text), canary) {
				t.Errorf("%s, %v", text, err)
			}
		}
		for _, name := range files(t, l.Folder) {
			text, _ := os.ReadFile(filepath.Join(l.Folder, name))
			if strings.Contains(name+string(text), canary) {
				t.Errorf("%s: %s", name, text)
			}
		}
	})
}
