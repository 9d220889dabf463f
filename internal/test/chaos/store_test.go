// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package chaos

import (
	"archive/zip"
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// store is where the journal is kept.
type store string

const (
	defaultFolder store = "default folder"
	namedFolder   store = "named folder"
	bucket        store = "bucket"
)

// envBucket is the journal URL of a bucket on an S3 server.
const envBucket = "AGENT_TEST_S3"

// needsBucket skips a test without such a bucket. Its name has S3 in it.
func needsBucket(t *testing.T) {
	t.Helper()
	if os.Getenv(envBucket) == "" {
		t.Skipf("%s is not set: make test-s3 runs this test", envBucket)
	}
}

// keepJournal chooses the store.
func (w *workingDir) keepJournal(s store) {
	w.t.Helper()
	switch s {
	case namedFolder:
		w.journal = filepath.Join(w.t.TempDir(), "entries")
	case bucket:
		parsed, err := url.Parse(os.Getenv(envBucket))
		if err != nil {
			w.t.Fatal(err)
		}
		w.journal = parsed.JoinPath(strings.ToLower(rand.Text())).String()
	}
}

// entries are the contents of all that the journal holds, by name.
func (w *workingDir) entries() map[string]string {
	w.t.Helper()
	switch {
	case w.journal == "":
		return w.files(filepath.Join(w.dir, ".terraform", "agent"))
	case strings.HasPrefix(w.journal, "s3:"):
		return w.objects()
	}
	return w.files(w.journal)
}

func (w *workingDir) objects() map[string]string {
	w.t.Helper()
	location, err := url.Parse(w.journal)
	if err != nil {
		w.t.Fatal(err)
	}
	client, err := minio.New(strings.TrimPrefix(location.Query().Get("endpoint"), "http://"), &minio.Options{
		Creds: credentials.NewEnvAWS(), Region: location.Query().Get("region"),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	found := map[string]string{}
	prefix := strings.TrimPrefix(location.Path, "/") + "/"
	for info := range client.ListObjectsIter(w.t.Context(), location.Host, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if info.Err != nil {
			w.t.Fatal(info.Err)
		}
		object, err := client.GetObject(w.t.Context(), location.Host, info.Key, minio.GetObjectOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		text, err := io.ReadAll(object)
		if err != nil && minio.ToErrorResponse(err).Code != minio.NoSuchKey { // a plugin that outlives its CLI removes some
			w.t.Fatal(err)
		}
		found[info.Key] = string(text)
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

// assertNoSecrets asserts that neither the disk nor the journal holds the key,
// and that the journal holds no prompt.
func (w *workingDir) assertNoSecrets() {
	w.t.Helper()
	all := w.entries()
	for name, text := range all {
		if strings.Contains(text, canaryPrompt) {
			w.t.Errorf("a prompt is in %s", name)
		}
	}
	maps.Copy(all, w.files(w.dir))
	for name, text := range all {
		if strings.Contains(text, canaryKey) {
			w.t.Errorf("the key is in %s", name)
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
