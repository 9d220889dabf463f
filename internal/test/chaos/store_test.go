// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
)

// useBucket keeps the journal in a bucket.
func (w *workingDir) useBucket() {
	w.t.Helper()
	w.bucket = &fakes3.Server{Objects: map[string][]byte{}}
	server := httptest.NewServer(w.bucket)
	w.t.Cleanup(server.Close)
	w.journal = "s3://bucket/a?region=us-east-1&state=chaos&endpoint=" + server.URL
}

// records are the contents of all that the journal holds, by file or object.
func (w *workingDir) records() map[string]string {
	w.t.Helper()
	if w.bucket == nil {
		found := w.files(filepath.Join(w.dir, ".agent-journal"))
		delete(found, filepath.Join(w.dir, ".agent-journal", ".gitignore"))
		return found
	}
	found := map[string]string{}
	w.bucket.Lock()
	defer w.bucket.Unlock()
	for name, text := range w.bucket.Objects {
		if path.Base(name)[0] != '_' { // what proves that the store honours conditions
			found[name] = string(text)
		}
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
			file := filepath.Join(folder, name)
			found[file] = string(text)
			if archive, notZip := zip.NewReader(bytes.NewReader(text), int64(len(text))); notZip == nil {
				w.addFiles(found, file, archive)
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
	all := w.records()
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

// assertSettled asserts that each record is of a job in the state, or released, and that no create waits for its outcome. The message of
// a killed run counts as sent, and its claim stays until the next request.
func (w *workingDir) assertSettled() {
	w.t.Helper()
	has := map[string]bool{}
	for _, i := range w.state() {
		has[i.ID] = true
	}
	for file, text := range w.records() {
		if strings.HasPrefix(filepath.Base(file), ".tmp-") { // of a killed run
			continue
		}
		var r journal.Record
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			w.t.Errorf("%s: %v", file, err)
		}
		if r.Claim != nil && !r.Claim.IsMessage() || !r.IsFree() && !has[r.JobID] {
			w.t.Errorf("%s is no job's of the state: %s", file, text)
		}
	}
}
