// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package store

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
)

// fakeBlobs is as much of Azure Blob Storage as a journal needs. It plays Entra ID and CI systems, too.
type fakeBlobs struct {
	blobs    map[string]string
	requests []string // all, and as whom
	hook     func(w http.ResponseWriter) bool
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
	case r.Method == http.MethodPut:
		f.blobs[name] = string(body)
		w.WriteHeader(http.StatusCreated)
	case !exists:
		respondAzure(w, http.StatusNotFound, "BlobNotFound")
	case r.Method == http.MethodDelete:
		delete(f.blobs, name)
		w.WriteHeader(http.StatusAccepted)
	default:
		w.Header().Set("Last-Modified", "Thu, 01 Jan 1970 00:00:00 GMT")
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
		item = "<Blob><Name>" + next + "</Name></Blob>"
	}
	_, _ = fmt.Fprintf(w, `<EnumerationResults ContainerName="ci-state"><Blobs>%s</Blobs><NextMarker>%s</NextMarker></EnumerationResults>`,
		item, next)
}

func respondAzure(w http.ResponseWriter, status int, code string) {
	w.Header().Set("X-Ms-Error-Code", code)
	w.WriteHeader(status)
}

// openBlobs opens a store in a container. The environment has the credentials.
func openBlobs(t *testing.T) (*fakeBlobs, Store) {
	t.Helper()
	l, err := ParseURL("azblob://devstate/ci-state/a")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeBlobs{blobs: map[string]string{}}
	return f, Open(l, "scope", &cli.Process{Network: f})
}

func TestAzureBlob_requests(t *testing.T) {
	for variable, test := range map[string]struct {
		value, auth string
		want        []string // before the others
	}{
		"ARM_ACCESS_KEY":    {"a2V5", "SharedKey devstate", nil},
		"ARM_SAS_TOKEN":     {"?sv=2024-11-04&sp=rwdl&sig=canary", "canary", nil},
		"ARM_CLIENT_SECRET": {"secret", "Bearer token", []string{"https://login.microsoftonline.com/tenant/token client secret"}},
	} {
		t.Run(variable, func(t *testing.T) {
			clearAzure(t)
			t.Setenv("ARM_TENANT_ID", "tenant")
			t.Setenv("ARM_CLIENT_ID", "client")
			t.Setenv(variable, test.value)
			f, s := openBlobs(t)
			f.blobs["a/scope/foreign"] = ""
			first, second := NewName(CreateKey("p", "a", ""), "run1"), NewName(CreateKey("p", "b", ""), "run1")
			entry := &Entry{Project: "p", Status: Pending}
			for _, err := range []error{
				s.Write(t.Context(), first, &Entry{}), s.Write(t.Context(), first, entry), s.Write(t.Context(), second, entry),
			} {
				if err != nil {
					t.Error(err)
				}
			}
			names, listErr := s.List(t.Context(), "")
			got, readErr := s.Read(t.Context(), first)
			removeErr := s.Remove(t.Context(), first)
			left, leftErr := s.List(t.Context(), string(first.Key))
			if len(names) != 2 || len(left) != 0 || listErr != nil || readErr != nil || removeErr != nil || leftErr != nil {
				t.Errorf("%v, %v, %v, %v, %v, %v", names, left, listErr, readErr, removeErr, leftErr)
			}
			if diff := cmp.Diff(entry, got); diff != "" {
				t.Error(diff)
			}
			for _, request := range []string{
				"PUT " + first.String(), "PUT " + first.String(), "PUT " + second.String(), "GET", "GET", "GET", "GET",
				"GET " + first.String(), "DELETE " + first.String(), "GET",
			} {
				method, name, isBlob := strings.Cut(request, " ")
				if isBlob {
					name = "/a/scope/" + name + suffix
				}
				test.want = append(test.want, method+" https://devstate.blob.core.windows.net/ci-state"+name+" "+test.auth)
			}
			if diff := cmp.Diff(test.want, f.requests); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Only the store itself can say that an entry does not exist, and only a listing that there is none.
func TestAzureBlob_responses(t *testing.T) {
	clearAzure(t)
	t.Setenv("ARM_SAS_TOKEN", "sig=canary")
	for what, test := range map[string]struct {
		status          int
		code            string
		missing, denied bool
	}{
		"no entry":            {404, "BlobNotFound", true, false},
		"no container":        {404, "ContainerNotFound", false, false},
		"404 of another kind": {404, "", false, false},
		"403 of another kind": {403, "", false, false},
		"unknown":             {403, "AuthenticationFailed", false, false},
		"denied":              {403, "AuthorizationPermissionMismatch", false, true},
		"network":             {403, "AuthorizationFailure", false, true},
		"lost":                {0, "", false, false},
	} {
		f, s := openBlobs(t)
		f.hook = func(w http.ResponseWriter) bool { respondAzure(w, test.status, test.code); return true }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if test.status == 0 {
			cancel()
		}
		defer cancel()
		name := NewName(CreateKey("p", "a", ""), "run1")
		e, readErr := s.Read(ctx, name)
		removeErr := s.Remove(ctx, name)
		if e != nil || (readErr == nil) != test.missing || (removeErr == nil) != test.missing {
			t.Errorf("%s: %v, %v, %v", what, e, readErr, removeErr)
		}
		_, listErr := s.List(ctx, "")
		for op, err := range map[string]error{"list": listErr, "write": s.Write(ctx, name, &Entry{})} {
			if err == nil || strings.Contains(err.Error(), "permission to "+op) != test.denied || strings.Contains(err.Error(), "canary") {
				t.Errorf("%s: %s: %v", what, op, err)
			}
		}
	}
	f, s := openBlobs(t)
	f.hook = func(http.ResponseWriter) bool { return true } // 200, and no body
	if names, err := s.List(t.Context(), ""); err == nil {
		t.Errorf("an empty response is a listing: %v", names)
	}
	t.Setenv("ARM_ACCESS_KEY", "a2V5")
	f, s = openBlobs(t)
	f.hook = func(w http.ResponseWriter) bool {
		respondAzure(w, http.StatusForbidden, "AuthorizationFailure")
		return true
	}
	if _, err := s.List(t.Context(), ""); err == nil || strings.Contains(err.Error(), "lack") {
		t.Errorf("a key lacks a right: %v", err)
	}
}
