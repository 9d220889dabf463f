// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package journal

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeS3 is as much of an S3 server as the journal needs. It lets tests inject
// faults; that it behaves like a real one is what AGENT_TEST_S3 is for.
type fakeS3 struct {
	location Location
	ahead    time.Duration // of its clock

	mu       sync.Mutex
	objects  map[string]*fakeObject
	versions int
	requests int
	// hook answers a request, when it returns a status. It may call apply first.
	hook func(r *http.Request, apply func()) int
}

type fakeObject struct {
	text     []byte
	etag     string
	modified time.Time
}

func newFakeS3(t *testing.T) *fakeS3 {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	f := &fakeS3{objects: map[string]*fakeObject{}}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	l, err := ParseURL("s3://bucket/a/prefix?region=us-east-1&endpoint=" + server.URL)
	if err != nil {
		t.Fatal(err)
	}
	f.location = l
	return f
}

func (f *fakeS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Date", f.now().Format(http.TimeFormat))
	f.mu.Lock()
	f.requests++
	hook := f.hook
	f.mu.Unlock()
	if hook != nil {
		if status := hook(r, func() { f.serve(httptest.NewRecorder(), r, body) }); status != 0 {
			w.WriteHeader(status)
			return
		}
	}
	f.serve(w, r, body)
}

func (f *fakeS3) now() time.Time { return time.Now().Add(f.ahead).UTC() }

func (f *fakeS3) serve(w http.ResponseWriter, r *http.Request, body []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := strings.TrimPrefix(r.URL.Path, "/bucket/")
	object := f.objects[name]
	condition := strings.Trim(r.Header.Get("If-Match"), `"`)
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Has("list-type"):
		f.list(w, r.URL.Query().Get("prefix"), r.URL.Query().Get("continuation-token"))
	case r.Method == http.MethodPut && condition != "" && object == nil:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodPut && condition != "" && object.etag != condition:
		w.WriteHeader(http.StatusPreconditionFailed)
	case r.Method == http.MethodPut:
		f.versions++
		text := body[bytes.IndexByte(body, '{') : bytes.LastIndexByte(body, '}')+1] // between the signatures of chunks
		f.objects[name] = &fakeObject{text: text, etag: fmt.Sprintf("%032d", f.versions), modified: f.now()}
		w.Header().Set("ETag", `"`+f.objects[name].etag+`"`)
	case r.Method == http.MethodDelete:
		delete(f.objects, name)
		w.WriteHeader(http.StatusNoContent)
	case object == nil:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<Error><Code>NoSuchKey</Code></Error>")
	default:
		w.Header().Set("ETag", `"`+object.etag+`"`)
		w.Header().Set("Last-Modified", object.modified.Format(http.TimeFormat))
		_, _ = w.Write(object.text)
	}
}

// list answers in pages that are shorter than a real server's.
func (f *fakeS3) list(w io.Writer, prefix, after string) {
	type contents struct{ Key, LastModified, ETag string }
	var result struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		Contents              []contents
		IsTruncated           bool
		NextContinuationToken string
	}
	for _, name := range slices.Sorted(maps.Keys(f.objects)) {
		if !strings.HasPrefix(name, prefix) || name <= after {
			continue
		}
		if result.IsTruncated = len(result.Contents) == 20; result.IsTruncated {
			result.NextContinuationToken = result.Contents[19].Key
			break
		}
		result.Contents = append(result.Contents, contents{name, f.objects[name].modified.Format(time.RFC3339), f.objects[name].etag})
	}
	_ = xml.NewEncoder(w).Encode(result)
}

// setHook replaces the hook.
func (f *fakeS3) setHook(hook func(r *http.Request, apply func()) int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hook = hook
}

func (f *fakeS3) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.objects)
}

func (f *fakeS3) requested() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests
}
