// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package azblob

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/bucket"
	"github.com/agentjobs/terraform-provider-agent/internal/test/storetest"
)

// fakeBlobs is as much of Azure Blob Storage as a journal needs. It plays Entra ID and CI systems, too.
type fakeBlobs struct {
	blobs    map[string]string
	requests []string // all, and as whom
	hook     func(w http.ResponseWriter) bool
	account  string // what Azure Resource Manager says about it
	status   int    // with which; 0: 200
}

// RoundTrip serves all hosts, so that tests see where requests would go.
func (f *fakeBlobs) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	f.serve(w, r)
	return w.Result(), nil
}

func (f *fakeBlobs) serve(w http.ResponseWriter, r *http.Request) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	if f.login(w, r, string(body)) {
		return
	}
	auth, _, _ := strings.Cut(r.Header.Get("Authorization"), ":") // without the signature
	query := r.URL.Query()
	f.requests = append(f.requests, strings.TrimSpace(fmt.Sprintf("%s %s://%s%s %s%s",
		r.Method, r.URL.Scheme, r.URL.Host, r.URL.Path, auth, query.Get("sig"))))
	name := strings.TrimPrefix(r.URL.Path, "/ci-state/")
	content, exists := f.blobs[name]
	switch {
	case f.hook != nil && f.hook(w):
	case query.Get("comp") == "list":
		f.list(w, query.Get("prefix"), query.Get("marker"))
	case r.Method == http.MethodPut && exists && r.Header.Get("If-None-Match") == "*":
		respondAzure(w, http.StatusConflict, "BlobAlreadyExists")
	case r.Method == http.MethodPut && r.Header.Get("If-None-Match") != "*" && r.Header.Get("If-Match") != `"`+etagOf(content)+`"`:
		respondAzure(w, http.StatusPreconditionFailed, "ConditionNotMet")
	case r.Method == http.MethodPut:
		f.blobs[name] = string(body)
		w.Header().Set("ETag", `"`+etagOf(string(body))+`"`)
		w.WriteHeader(http.StatusCreated)
	case !exists:
		respondAzure(w, http.StatusNotFound, "BlobNotFound")
	default:
		w.Header().Set("ETag", `"`+etagOf(content)+`"`)
		_, _ = io.WriteString(w, content)
	}
}

// list has a blob in each page, and an empty page at the end.
func (f *fakeBlobs) list(w io.Writer, prefix, marker string) {
	next := ""
	for name := range f.blobs {
		if strings.HasPrefix(name, prefix) && name > marker && (next == "" || name < next) {
			next = name
		}
	}
	item := ""
	if next != "" {
		item = "<Blob><Name>" + next + "</Name><Properties><Etag>" + etagOf(f.blobs[next]) + "</Etag></Properties></Blob>" // without quotes
	}
	_, _ = fmt.Fprintf(w, `<EnumerationResults ContainerName="ci-state"><Blobs>%s</Blobs><NextMarker>%s</NextMarker></EnumerationResults>`,
		item, next)
}

func etagOf(content string) string { return fmt.Sprintf("0x%X", crc32.ChecksumIEEE([]byte(content))) }

func respondAzure(w http.ResponseWriter, status int, code string) {
	w.Header().Set("X-Ms-Error-Code", code)
	w.WriteHeader(status)
}

// openBlobs opens a store in a container. The environment has the credentials.
func openBlobs(t *testing.T) (*fakeBlobs, store.Store) {
	t.Helper()
	c, path, err := storetest.Named(Kind(), "devstate", "ci-state/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeBlobs{blobs: map[string]string{}}
	return f, bucket.New(c, path+"/", "scope", f)
}

// As whom the requests are sent is in TestAzure_credentials.
func TestAzureBlob_requests(t *testing.T) {
	setAzure(t, map[string]string{"ARM_SAS_TOKEN": "?sv=2024-11-04&sp=rwdl&sig=canary"})
	f, s := openBlobs(t)
	f.blobs["a/scope/foreign"] = ""
	old := storetest.Write(t, s, storetest.New("first"), "old")
	first := storetest.Write(t, s, old, "new")
	storetest.Write(t, s, storetest.New("second"), "new")
	for _, refused := range []store.Text{storetest.New("first"), old} {
		if _, err := s.Put(t.Context(), refused, []byte("refused")); !errors.Is(err, store.ErrConflict) {
			t.Errorf("%q: %v", refused, err)
		}
	}
	found, err := s.List(t.Context())
	if diff := cmp.Diff([]string{"first", "second"}, found); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got := storetest.Want(t, s, "first", "new"); got.Version != first.Version {
		t.Errorf("read version %s, want %s", got.Version, first.Version)
	}
	const container = "https://devstate.blob.core.windows.net/ci-state"
	const put, list = "PUT " + container + "/a/scope/first.record canary", "GET " + container + " canary"
	want := []string{
		put, put, "PUT " + container + "/a/scope/second.record canary", put, put, list, list, list, list, "GET " + container + "/a/scope/first.record canary",
	}
	if diff := cmp.Diff(want, f.requests); diff != "" {
		t.Error(diff)
	}
}

// Only the store itself can say that there is nothing, or that a condition is not met, and only a listing lists. A key has every right.
func TestAzureBlob_responses(t *testing.T) {
	for what, test := range map[string]struct {
		status                    int
		code                      string
		key                       string // instead of a SAS token
		missing, conflict, denied bool
	}{
		"no blob":             {status: 404, code: "BlobNotFound", missing: true, conflict: true},
		"no container":        {status: 404, code: "ContainerNotFound"},
		"404 of another kind": {status: 404},
		"another blob":        {status: 412, code: "ConditionNotMet", conflict: true},
		"a blob":              {status: 409, code: "BlobAlreadyExists", conflict: true},
		"lease":               {status: 412, code: "LeaseIdMissing"},
		"unknown":             {status: 403, code: "AuthenticationFailed"},
		"denied":              {status: 403, code: "AuthorizationPermissionMismatch", denied: true},
		"network":             {status: 403, code: "AuthorizationFailure", denied: true},
		"network, key":        {status: 403, code: "AuthorizationFailure", key: "a2V5"},
		"empty":               {status: 200},
		"lost":                {},
	} {
		setAzure(t, map[string]string{"ARM_SAS_TOKEN": "sig=canary", "ARM_ACCESS_KEY": test.key})
		f, s := openBlobs(t)
		f.hook = func(w http.ResponseWriter) bool { respondAzure(w, test.status, test.code); return true }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if test.status == 0 {
			cancel()
		}
		text, readErr := s.Get(ctx, "a")
		if text.Exists() || (readErr == nil) != test.missing {
			t.Errorf("%s: %+v, %v", what, text, readErr)
		}
		_, listErr := s.List(ctx)
		_, writeErr := s.Put(ctx, store.Text{Key: "a", Version: `"1"`}, nil)
		if errors.Is(writeErr, store.ErrConflict) != test.conflict {
			t.Errorf("%s: %v", what, writeErr)
		}
		for op, err := range map[string]error{"list": listErr, "write": writeErr} {
			says := strings.Contains(fmt.Sprint(err), "may lack the permission to "+op)
			if err == nil || says != test.denied || errors.Is(err, store.ErrDenied) != test.denied || strings.Contains(err.Error(), "canary") {
				t.Errorf("%s: %s: %v", what, op, err)
			}
		}
		cancel()
	}
}
