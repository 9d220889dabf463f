// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package azblob

import (
	"context"
	"errors"
	"fmt"
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

// fakeBlobs records what is requested of Azure, and responds as if all went well. It plays Entra ID and CI systems, too.
type fakeBlobs struct {
	requests []string // all, as whom, and with which condition
	hook     func(w http.ResponseWriter)
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
	request := fmt.Sprintf("%s %s://%s%s %s%s %s%s %s", r.Method, r.URL.Scheme, r.URL.Host, r.URL.Path, auth, query.Get("sig"),
		r.Header.Get("If-None-Match"), r.Header.Get("If-Match"), body)
	f.requests = append(f.requests, strings.TrimSpace(request))
	switch {
	case f.hook != nil:
		f.hook(w)
	case query.Get("comp") == "list":
		page := `<Blob><Name>a/scope/first.record</Name></Blob></Blobs><NextMarker>2</NextMarker>`
		if query.Get("marker") == "2" {
			page = `<Blob><Name>a/scope/foreign</Name></Blob><Blob><Name>a/scope/second.record</Name></Blob></Blobs><NextMarker/>`
		}
		_, _ = io.WriteString(w, `<EnumerationResults ContainerName="ci-state"><Blobs>`+page+`</EnumerationResults>`)
	case r.Method == http.MethodPut:
		w.Header().Set("ETag", `"0x2"`)
		w.WriteHeader(http.StatusCreated)
	default:
		w.Header().Set("ETag", "0x1") // without quotes
		_, _ = io.WriteString(w, "text")
	}
}

// openBlobs opens a store in a container, with a SAS token.
func openBlobs(t *testing.T, network http.RoundTripper) store.Store {
	t.Helper()
	setAzure(t, map[string]string{"ARM_SAS_TOKEN": "?sv=2024-11-04&sp=rwdl&sig=canary"})
	c, path, err := storetest.AtURL(Kind(), "devstate", "ci-state/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	return bucket.New(c, path+"/", "scope", network)
}

// As whom the requests are sent is in TestAzure_credentials.
func TestAzureBlob_requests(t *testing.T) {
	f := new(fakeBlobs)
	s := openBlobs(t, f)
	storetest.Write(t, s, storetest.New("first"), "old")
	if text := storetest.Write(t, s, storetest.Want(t, s, "first", "text"), "new"); text.Version != `"0x2"` {
		t.Errorf("version %s", text.Version)
	}
	found, err := s.List(t.Context())
	if diff := cmp.Diff([]string{"first", "second"}, found); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	const container = "https://devstate.blob.core.windows.net/ci-state"
	const first, list = container + "/a/scope/first.record canary", "GET " + container + " canary"
	if diff := cmp.Diff([]string{"PUT " + first + " * old", "GET " + first, "PUT " + first + ` "0x1" new`, list, list}, f.requests); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Only the store itself can say that there is nothing, or that a condition is not met, and only a listing lists.
func TestAzureBlob_responses(t *testing.T) {
	storetest.Foreign(t, func(network storetest.Network) store.Store { return openBlobs(t, network) })
	for what, test := range map[string]struct {
		status                    int
		code                      string
		missing, conflict, denied bool
	}{
		"no blob":      {status: 404, code: "BlobNotFound", missing: true, conflict: true},
		"no container": {status: 404, code: "ContainerNotFound"},
		"another blob": {status: 412, code: "ConditionNotMet", conflict: true},
		"a blob":       {status: 409, code: "BlobAlreadyExists", conflict: true},
		"lease":        {status: 412, code: "LeaseIdMissing"},
		"unknown":      {status: 403, code: "AuthenticationFailed"},
		"denied":       {status: 403, code: "AuthorizationPermissionMismatch", denied: true},
		"network":      {status: 403, code: "AuthorizationFailure"},
		"lost":         {},
	} {
		s := openBlobs(t, &fakeBlobs{hook: func(w http.ResponseWriter) {
			w.Header().Set("X-Ms-Error-Code", test.code)
			w.WriteHeader(test.status)
		}})
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
