// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package crashpoint

import (
	"io"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// envBucket names the bucket of an S3 server, as a journal URL.
const envBucket = "AGENT_TEST_S3"

// store is where the journal is kept.
type store interface {
	env(w *world) []string
	// entries returns what the journal holds, by name.
	entries(w *world) map[string]string
	// remembers reports whether the journal still holds what a run has sent that
	// ended well as far as the provider can know.
	remembers() bool
}

// folder is the default journal.
type folder struct{}

func (folder) env(*world) []string { return nil }
func (folder) remembers() bool     { return false }

func (folder) entries(w *world) map[string]string {
	paths, _ := filepath.Glob(filepath.Join(w.dir, ".terraform", "agent", "*.json"))
	entries := map[string]string{}
	for _, path := range paths {
		if text, err := os.ReadFile(path); err == nil {
			entries[filepath.Base(path)] = string(text)
		}
	}
	return entries
}

// bucket is a prefix for each world in the bucket of an S3 server.
type bucket struct {
	client *minio.Client
	url    url.URL
}

func openBucket(t *testing.T) *bucket {
	t.Helper()
	text := os.Getenv(envBucket)
	if text == "" {
		t.Skipf("%s is not set: run make test-s3", envBucket)
	}
	parsed, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	endpoint, err := url.Parse(parsed.Query().Get("endpoint"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds: credentials.NewEnvAWS(), Secure: endpoint.Scheme == "https", Region: parsed.Query().Get("region"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return &bucket{client, *parsed}
}

func (*bucket) remembers() bool { return true }

func (b *bucket) prefix(w *world) string {
	return filepath.Base(filepath.Dir(w.dir)) + filepath.Base(w.dir)
}

func (b *bucket) env(w *world) []string {
	at := b.url
	at.Path = "/" + b.prefix(w)
	return []string{"AGENT_JOURNAL_URL=" + at.String()}
}

func (b *bucket) entries(w *world) map[string]string {
	entries := map[string]string{}
	for object := range b.client.ListObjectsIter(w.t.Context(), b.url.Host, minio.ListObjectsOptions{Prefix: b.prefix(w) + "/", Recursive: true}) {
		if object.Err != nil {
			w.t.Fatal(object.Err)
		}
		body, err := b.client.GetObject(w.t.Context(), b.url.Host, object.Key, minio.GetObjectOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		text, _ := io.ReadAll(body) // empty: it is gone
		entries[object.Key] = string(text)
	}
	return entries
}
