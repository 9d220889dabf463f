// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"archive/zip"
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
)

// store is where the journal is kept.
type store string

const (
	defaultFolder store = "default folder"
	namedFolder   store = "named folder"
	bucket        store = "bucket"
)

// keepJournal chooses the store.
func (w *workingDir) keepJournal(s store) {
	w.t.Helper()
	switch s {
	case namedFolder:
		w.journal = w.t.TempDir()
	case bucket:
		w.bucket = &fakes3.Server{Objects: map[string][]byte{}}
		server := httptest.NewServer(w.bucket)
		w.t.Cleanup(server.Close)
		w.journal = "s3://bucket/a?region=us-east-1&endpoint=" + server.URL
	}
}

// entries are the contents of all that the journal holds, by name.
func (w *workingDir) entries() map[string]string {
	w.t.Helper()
	switch {
	case w.journal == "":
		found := w.files(filepath.Join(w.dir, ".agent-journal"))
		delete(found, filepath.Join(w.dir, ".agent-journal", ".gitignore"))
		return found
	case w.bucket == nil:
		return w.files(w.journal)
	}
	found := map[string]string{}
	w.bucket.Lock()
	defer w.bucket.Unlock()
	for name, text := range w.bucket.Objects {
		found[name] = string(text)
	}
	return found
}

// files are the contents of all files below a folder, by path.
func (w *workingDir) files(folder string) map[string]string {
	w.t.Helper()
	found := map[string]string{}
	w.addFiles(found, folder, os.DirFS(folder))
	return found
}

// addFiles adds those in saved plans too, which are compressed. Some files may vanish meanwhile.
func (w *workingDir) addFiles(found map[string]string, folder string, tree fs.FS) {
	w.t.Helper()
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			var text []byte
			text, err = fs.ReadFile(tree, name)
			path := filepath.Join(folder, name)
			found[path] = string(text)
			if archive, notZip := zip.NewReader(bytes.NewReader(text), int64(len(text))); notZip == nil {
				w.addFiles(found, path, archive)
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		w.t.Error(err)
	}
}

// assertNoSecrets asserts that neither output, disk nor journal hold a secret, and that
// the journal holds no prompt.
func (w *workingDir) assertNoSecrets(output string) {
	w.t.Helper()
	all := w.entries()
	for name, text := range all {
		if strings.Contains(text, canaryPrompt) {
			w.t.Errorf("a prompt is in %s", name)
		}
	}
	maps.Copy(all, w.files(w.dir))
	all["output"] = output
	for name, text := range all {
		for _, secret := range w.secrets {
			if at := strings.Index(text, secret); at >= 0 {
				w.t.Errorf("%s is in %s: …%s…", secret, name, text[max(0, at-200):at+len(secret)])
			}
		}
	}
}

// assertNothingToDo asserts that a plan is empty, and the journal is too, once the plan has read the state.
func (w *workingDir) assertNothingToDo() {
	w.t.Helper()
	w.run("plan -detailed-exitcode")
	w.assertJournalEmpty()
}

func (w *workingDir) assertJournalEmpty() {
	w.t.Helper()
	entries := w.entries()
	maps.DeleteFunc(entries, func(name, _ string) bool { return strings.HasPrefix(filepath.Base(name), ".tmp-") }) // of a killed run
	if len(entries) > 0 {
		w.t.Errorf("in the journal: %q", slices.Sorted(maps.Keys(entries)))
	}
}
