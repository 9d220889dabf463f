// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package matrix

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

// fakeS3 is as much of an S3 server as the journal needs, with faults.
type fakeS3 struct {
	server *httptest.Server

	mu       sync.Mutex
	ahead    time.Duration                      // of its clock
	fault    func(r *http.Request) (status int) // 0: none
	objects  map[string]*s3Object
	versions int
}

type s3Object struct {
	text     []byte
	version  string
	modified time.Time
}

// bucket keeps the journal in a fake bucket.
func (m *Matrix) bucket() *fakeS3 {
	m.Setenv("AWS_ACCESS_KEY_ID", "test")
	m.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	f := &fakeS3{objects: map[string]*s3Object{}}
	f.server = httptest.NewServer(f)
	m.Cleanup(f.server.Close)
	m.config["journal"] = attrs{"url": "s3://bucket/prefix?region=us-east-1&endpoint=" + f.server.URL}
	return f
}

// fail lets requests fail from now on; nil: none.
func (f *fakeS3) fail(fault func(r *http.Request) (status int)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// status is what a request of a method fails with; an empty method is any.
func status(method string, code int) func(r *http.Request) int {
	return func(r *http.Request) int {
		if method == "" || r.Method == method {
			return code
		}
		return 0
	}
}

// runAhead sets the store's clock.
func (f *fakeS3) runAhead(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ahead = d
}

// age makes all objects older.
func (f *fakeS3) age(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.objects {
		o.modified = o.modified.Add(-d)
	}
}

// entries are the texts of all objects.
func (f *fakeS3) entries() (texts []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.objects {
		texts = append(texts, string(o.text))
	}
	return texts
}

func (f *fakeS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now().Add(f.ahead).UTC()
	w.Header().Set("Date", now.Format(http.TimeFormat))
	if f.fault != nil {
		if status := f.fault(r); status != 0 {
			w.WriteHeader(status)
			return
		}
	}
	name := strings.TrimPrefix(r.URL.Path, "/bucket/")
	object := f.objects[name]
	condition := strings.Trim(r.Header.Get("If-Match"), `"`)
	switch {
	case r.URL.Query().Has("list-type"):
		f.list(w, r.URL.Query().Get("prefix"))
	case r.Method == http.MethodPut && condition != "" && object == nil:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodPut && condition != "" && object.version != condition:
		w.WriteHeader(http.StatusPreconditionFailed)
	case r.Method == http.MethodPut:
		f.versions++
		text := body[bytes.IndexByte(body, '{') : bytes.LastIndexByte(body, '}')+1] // between the signatures of chunks
		f.objects[name] = &s3Object{text, fmt.Sprintf("%032d", f.versions), now}
		w.Header().Set("ETag", `"`+f.objects[name].version+`"`)
	case r.Method == http.MethodDelete:
		delete(f.objects, name)
		w.WriteHeader(http.StatusNoContent)
	case object == nil:
		w.WriteHeader(http.StatusNotFound)
	default:
		w.Header().Set("ETag", `"`+object.version+`"`)
		w.Header().Set("Last-Modified", object.modified.Format(http.TimeFormat))
		_, _ = w.Write(object.text)
	}
}

func (f *fakeS3) list(w io.Writer, prefix string) {
	type contents struct{ Key, LastModified, ETag string }
	var result struct {
		XMLName  xml.Name `xml:"ListBucketResult"`
		Contents []contents
	}
	for name, o := range f.objects {
		if strings.HasPrefix(name, prefix) {
			result.Contents = append(result.Contents, contents{name, o.modified.Format(time.RFC3339), o.version})
		}
	}
	_ = xml.NewEncoder(w).Encode(result)
}
