// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package fakes3 is as much of an S3 server as the journal needs, with faults.
package fakes3

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/test/storetest"
)

// Server lets tests inject faults; that it behaves like a real one is what
// AGENT_TEST_S3 is for. Its fields are guarded by Mutex while requests come.
type Server struct {
	sync.Mutex
	URL     string            // of a journal
	Objects map[string][]byte // nil: none yet

	// IgnoreIfNoneMatch and IgnoreIfMatch make it a store that ignores a condition of a write.
	IgnoreIfNoneMatch, IgnoreIfMatch bool

	// hook answers a request, when it returns a status.
	hook func(r *http.Request) int
}

// etag depends on the text alone, as a real server's does.
func etag(object []byte) string { return fmt.Sprintf("\"%.16x\"", sha256.Sum256(object)) }

// Op is what a request does: list, read or write.
func Op(r *http.Request) string {
	switch {
	case r.URL.Query().Has("list-type"):
		return "list"
	case r.Method == http.MethodGet:
		return "read"
	case r.Method == http.MethodPut:
		return "write"
	}
	return r.Method
}

// New starts a server, and sets its credentials in the environment, where nothing else of AWS remains.
func New(t testing.TB) *Server {
	t.Helper()
	storetest.SetEnv(t, map[string]string{"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}, "AWS_")
	f := new(Server)
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.URL = "s3://bucket/a/prefix?region=us-east-1&endpoint=" + server.URL
	return f
}

func (f *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client was killed
	}
	f.Lock()
	hook := f.hook
	f.Unlock()
	if hook != nil {
		if status := hook(r); status != 0 {
			refuse(w, status, map[int]string{http.StatusForbidden: "AccessDenied"}[status])
			return
		}
	}
	f.Lock()
	defer f.Unlock()
	name, inBucket := strings.CutPrefix(r.URL.Path, "/bucket")
	name = strings.TrimPrefix(name, "/")
	object, exists := f.Objects[name]
	switch op := Op(r); {
	case !inBucket:
		refuse(w, http.StatusNotFound, "NoSuchBucket")
	case op == "list":
		f.list(w, r.URL.Query())
	case op == "write":
		f.put(w, r, name, body)
	case op != "read": // the journal deletes nothing
		refuse(w, http.StatusMethodNotAllowed, "MethodNotAllowed")
	case !exists:
		refuse(w, http.StatusNotFound, "NoSuchKey")
	default:
		w.Header().Set("ETag", etag(object))
		_, _ = w.Write(object)
	}
}

// put demands a checksum, as Amazon does with Object Lock, and one of the conditions, without which the journal writes nothing.
func (f *Server) put(w http.ResponseWriter, r *http.Request, name string, body []byte) {
	object, exists := f.Objects[name]
	isNew, match, sum := r.Header.Get("If-None-Match") == "*", r.Header.Get("If-Match"), sha256.Sum256(body)
	switch {
	case r.Header.Get("X-Amz-Checksum-Sha256") != base64.StdEncoding.EncodeToString(sum[:]), isNew == (match != ""):
		refuse(w, http.StatusBadRequest, "InvalidRequest")
	case isNew && exists && !f.IgnoreIfNoneMatch, match != "" && exists && match != etag(object) && !f.IgnoreIfMatch:
		refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
	case match != "" && !exists && !f.IgnoreIfMatch:
		refuse(w, http.StatusNotFound, "NoSuchKey")
	default:
		if f.Objects == nil {
			f.Objects = map[string][]byte{}
		}
		f.Objects[name] = body
		w.Header().Set("ETag", etag(body))
	}
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code></Error>")
}

// list answers in pages that are shorter than a real server's.
func (f *Server) list(w io.Writer, query url.Values) {
	const page = 20
	prefix, after := query.Get("prefix"), query.Get("continuation-token")
	type contents struct{ Key, ETag string }
	var result struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		Name                  string
		Contents              []contents
		IsTruncated           bool
		NextContinuationToken string
	}
	result.Name = "bucket"
	for _, name := range slices.Sorted(maps.Keys(f.Objects)) {
		if !strings.HasPrefix(name, prefix) || name <= after {
			continue
		}
		if len(result.Contents) == page {
			result.IsTruncated, result.NextContinuationToken = true, result.Contents[page-1].Key
			break
		}
		result.Contents = append(result.Contents, contents{name, etag(f.Objects[name])})
	}
	_ = xml.NewEncoder(w).Encode(result)
}

// SetHook replaces the hook.
func (f *Server) SetHook(hook func(r *http.Request) int) {
	f.Lock()
	defer f.Unlock()
	f.hook = hook
}
