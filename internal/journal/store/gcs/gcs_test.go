// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package gcs

import (
	stdcmp "cmp"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/bucket"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
	"github.com/agentjobs/terraform-provider-agent/internal/test/storetest"
)

// What the gcs backend reads in the environment, and its library.
var gcsVariables = []string{
	"GOOGLE_BACKEND_CREDENTIALS", "GOOGLE_CREDENTIALS", "GOOGLE_OAUTH_ACCESS_TOKEN", "GOOGLE_KMS_ENCRYPTION_KEY",
	"GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT", "GOOGLE_STORAGE_CUSTOM_ENDPOINT", "GOOGLE_BACKEND_IMPERSONATE_SERVICE_ACCOUNT",
	"GOOGLE_IMPERSONATE_SERVICE_ACCOUNT", "GOOGLE_ENCRYPTION_KEY", "GOOGLE_BACKEND_UNIVERSE_DOMAIN", "GOOGLE_CLOUD_UNIVERSE_DOMAIN",
	"STORAGE_EMULATOR_HOST", "GOOGLE_APPLICATION_CREDENTIALS",
}

// setGCS sets these variables, and no other one.
func setGCS(t *testing.T, variables map[string]string) {
	t.Helper()
	for _, name := range gcsVariables {
		t.Setenv(name, variables[name])
	}
}

// serveGCS opens gs://bucket/a on a server.
func serveGCS(t *testing.T, handler http.HandlerFunc) store.Store {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	setGCS(t, map[string]string{"GOOGLE_OAUTH_ACCESS_TOKEN": "token"})
	return openURL(t, map[string]any{"endpoint": server.URL}, nil)
}

// openURL opens gs://bucket/a with parameters.
func openURL(t *testing.T, parameters map[string]any, network http.RoundTripper) store.Store {
	t.Helper()
	c, path, err := named("bucket", "a", settings.OfURL(parameters))
	if err != nil {
		t.Fatal(err)
	}
	return bucket.New(c, path+"/", "scope", network)
}

// serviceAccount is a new key, whose tokens come from a URL.
func serviceAccount(t *testing.T, tokens string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "ci@example.com", "token_uri": tokens, "private_key_id": "1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// roundTrip is a network without sockets, for tests whose clock is not the real one.
type roundTrip func(*http.Request) (status int, body string, err error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	status, body, err := f(r)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// Each setting of the backend leads where it does there, or is refused by name. None is shown.
func TestGCS_settings(t *testing.T) {
	const canary = "canary"
	text := serviceAccount(t, "http://localhost/token")
	file := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", filepath.Dir(file))
	t.Setenv("USERPROFILE", filepath.Dir(file))
	for what, test := range map[string]struct {
		settings  map[string]any
		variables map[string]string
		want      cloud
		prefix    string // agent-journal/
		wantErr   string
	}{
		"what is not set": {settings: map[string]any{
			"prefix": "", "credentials": nil, "access_token": nil, "encryption_key": "", "impersonate_service_account": nil,
			"impersonate_service_account_delegates": []any{}, "universe_domain": nil, "storage_custom_endpoint": nil, "kms_encryption_key": nil,
		}},
		"prefix":                 {settings: map[string]any{"prefix": "//a//b/"}, prefix: "a/b/agent-journal/"},
		"prefix without a slash": {settings: map[string]any{"prefix": "a"}, prefix: "a/agent-journal/"},
		"token":                  {settings: map[string]any{"access_token": "a"}, want: cloud{token: "a"}},
		"token, variable":        {variables: map[string]string{"GOOGLE_OAUTH_ACCESS_TOKEN": "a"}, want: cloud{token: "a"}},
		"setting before variable": {
			settings: map[string]any{"access_token": "a"}, variables: map[string]string{"GOOGLE_OAUTH_ACCESS_TOKEN": "b"}, want: cloud{token: "a"},
		},
		"key":       {settings: map[string]any{"credentials": text}, want: cloud{credentials: text}},
		"key, file": {settings: map[string]any{"credentials": file}, want: cloud{credentials: file}},
		"key, home": {settings: map[string]any{"credentials": "~/key.json"}, want: cloud{credentials: "~/key.json"}},
		"key, variables": {
			variables: map[string]string{"GOOGLE_BACKEND_CREDENTIALS": file, "GOOGLE_CREDENTIALS": canary}, want: cloud{credentials: file},
		},
		"key, second variable": {variables: map[string]string{"GOOGLE_CREDENTIALS": file}, want: cloud{credentials: file}},
		"default credentials":  {variables: map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": file}},
		"kms":                  {settings: map[string]any{"kms_encryption_key": "k"}, want: cloud{kmsKey: "k"}},
		"kms, variable":        {variables: map[string]string{"GOOGLE_KMS_ENCRYPTION_KEY": "k"}, want: cloud{kmsKey: "k"}},
		"impersonation": {
			settings: map[string]any{"impersonate_service_account": "a@b", "impersonate_service_account_delegates": []any{"c@d", "e@f"}},
			want:     cloud{impersonated: "a@b", delegates: []string{"c@d", "e@f"}},
		},
		"impersonation, variables": {
			variables: map[string]string{"GOOGLE_BACKEND_IMPERSONATE_SERVICE_ACCOUNT": "a@b", "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT": canary},
			want:      cloud{impersonated: "a@b"},
		},
		"impersonation, second variable": {
			variables: map[string]string{"GOOGLE_IMPERSONATE_SERVICE_ACCOUNT": "a@b"}, want: cloud{impersonated: "a@b"},
		},
		"delegates":         {settings: map[string]any{"impersonate_service_account_delegates": canary}, wantErr: "delegates"},
		"encryption key":    {settings: map[string]any{"encryption_key": canary}, wantErr: "encryption_key"},
		"custom endpoint":   {settings: map[string]any{"storage_custom_endpoint": "https://canary"}, wantErr: "storage_custom_endpoint"},
		"universe":          {settings: map[string]any{"universe_domain": canary}, wantErr: "universe_domain"},
		"a setting to come": {settings: map[string]any{"later": canary}, wantErr: "later"},
		"variable":          {variables: map[string]string{"GOOGLE_ENCRYPTION_KEY": canary}, wantErr: "GOOGLE_ENCRYPTION_KEY"},
		"emulator":          {variables: map[string]string{"STORAGE_EMULATOR_HOST": canary}, wantErr: "STORAGE_EMULATOR_HOST"},
		"key that is none":  {settings: map[string]any{"credentials": canary}, wantErr: "credentials"},
		"key of another type": {
			settings: map[string]any{"credentials": `{"type": "canary"}`}, wantErr: "credentials",
		},
		"key of an application": {
			settings: map[string]any{"credentials": `{"installed": {"client_id": "canary", "redirect_uris": ["a"]}}`}, wantErr: "credentials",
		},
		"text as a path": {variables: map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": `{"private_key": "canary"}`}, wantErr: "CREDENTIALS"},
	} {
		t.Run(what, func(t *testing.T) {
			if len(test.variables) == 0 && test.settings["credentials"] == nil { // no test asks the machine for credentials
				test.variables = map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": file}
			}
			setGCS(t, test.variables)
			if _, ok := test.variables["GOOGLE_APPLICATION_CREDENTIALS"]; !ok {
				t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
			}
			values := map[string]any{"bucket": "bucket"}
			maps.Copy(values, test.settings)
			s := settings.OfBackend(values)
			c, prefix, err := beside(s)
			if err = errors.Join(err, s.Unread()); err == nil {
				_, err = c.Connect(t.Context(), nil)
			}
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) || strings.Contains(err.Error(), canary) {
					t.Errorf("got %v, want %q", err, test.wantErr)
				}
				return
			}
			want := test.want
			want.name = "bucket"
			if want.base == "" {
				want.base = server
			}
			if diff := cmp.Diff(bucket.Cloud(&want), c, cmp.AllowUnexported(cloud{})); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if want := stdcmp.Or(test.prefix, "agent-journal/"); prefix != want {
				t.Errorf("prefix %s, want %s", prefix, want)
			}
		})
	}
}

// What is sent, byte by byte: nothing of S3's, and one request for a token.
func TestGCS_requests(t *testing.T) {
	var lock sync.Mutex
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/token" {
			body = nil // it is signed
		}
		lock.Lock()
		defer lock.Unlock()
		got = append(got, strings.Join([]string{r.Method, r.RequestURI, r.Header.Get("Authorization"), r.Header.Get("Content-Type"),
			strings.Join(slices.Sorted(maps.Keys(r.Header)), ","), string(body)}, " "))
		switch query := r.URL.Query(); {
		case r.URL.Path == "/token":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"access_token": "token", "token_type": "Bearer", "expires_in": 3600}`)
		case query.Has("prefix") && !query.Has("pageToken"):
			fmt.Fprint(w, `{"kind": "storage#objects", "items": [{"name": "a b/ü/agent-journal/scope/first.json"}], "nextPageToken": "a+/="}`)
		case query.Has("prefix"):
			fmt.Fprint(w, `{"kind": "storage#objects", "items": [{"name": "a b/ü/agent-journal/scope/second.json"}]}`)
		case query.Has("alt"):
			w.Header().Set("X-Goog-Generation", "1700000000000002")
			fmt.Fprint(w, "text")
		case query.Get("ifGenerationMatch") == "0":
			fmt.Fprint(w, `{"kind": "storage#object", "generation": "1700000000000001"}`)
		case query.Get("ifGenerationMatch") == "1700000000000001":
			fmt.Fprint(w, `{"kind": "storage#object", "generation": "1700000000000002"}`)
		default:
			w.WriteHeader(http.StatusPreconditionFailed)
			fmt.Fprint(w, `{"error": {"code": 412, "message": "m", "errors": [{"domain": "global", "reason": "conditionNotMet"}]}}`)
		}
	}))
	t.Cleanup(server.Close)
	setGCS(t, nil)
	c, prefix, err := beside(settings.OfBackend(map[string]any{
		"bucket": "buck_et", "prefix": "/a b/ü", "kms_encryption_key": "projects/p/k",
		"credentials": serviceAccount(t, server.URL+"/token"),
	}))
	if err != nil {
		t.Fatal(err)
	}
	c.(*cloud).base = server.URL
	s := bucket.New(c, prefix, "scope", nil)
	if text := storetest.Write(t, s, storetest.Write(t, s, storetest.New("first"), "old"), "new"); text.Version != "1700000000000002" {
		t.Errorf("version %s", text.Version)
	}
	for _, refused := range []store.Version{"1", "0", `"another store's"`} {
		if _, err := s.Put(t.Context(), store.Text{Key: "first", Version: refused}, []byte("refused")); !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s: %v", refused, err)
		}
	}
	found, err := s.List(t.Context())
	if diff := cmp.Diff([]string{"first", "second"}, found); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if text := storetest.Want(t, s, "first", "text"); text.Version != "1700000000000002" {
		t.Errorf("version %s", text.Version)
	}
	const (
		objects = "/storage/v1/b/buck_et/o"
		scope   = "a+b%2F%C3%BC%2Fagent-journal%2Fscope%2F"
		fields  = "?fields=kind%2Citems%28name%29%2CnextPageToken"
		headers = "Accept-Encoding,Authorization,Content-Length,Content-Type,User-Agent "
	)
	put := func(generation, text string) string {
		return "POST /upload" + objects + "?ifGenerationMatch=" + generation + "&kmsKeyName=projects%2Fp%2Fk&name=" + scope + "first.json" +
			"&uploadType=media Bearer token application/json " + headers + text
	}
	requests := []string{
		"POST /token  application/x-www-form-urlencoded Accept-Encoding,Content-Length,Content-Type,User-Agent ",
		put("0", "old"), put("1700000000000001", "new"), put("1", "refused"),
		"GET " + objects + fields + "&prefix=" + scope + " Bearer token  Accept-Encoding,Authorization,User-Agent ",
		"GET " + objects + fields + "&pageToken=a%2B%2F%3D&prefix=" + scope + " Bearer token  Accept-Encoding,Authorization,User-Agent ",
		"GET " + objects + "/a%20b%2F%C3%BC%2Fagent-journal%2Fscope%2Ffirst.json?alt=media Bearer token  Accept-Encoding,Authorization,User-Agent ",
	}
	if diff := cmp.Diff(requests, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A URL's identity is the backend's; where and how a state is kept is no concern of it.
func TestGCS_named(t *testing.T) {
	setGCS(t, map[string]string{
		"GOOGLE_CREDENTIALS": "key", "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT": "a@b", "GOOGLE_KMS_ENCRYPTION_KEY": "canary",
		"GOOGLE_ENCRYPTION_KEY": "canary", "GOOGLE_STORAGE_CUSTOM_ENDPOINT": "canary", "GOOGLE_CLOUD_UNIVERSE_DOMAIN": "canary",
		"STORAGE_EMULATOR_HOST": "canary",
	})
	s := settings.OfURL(map[string]any{"kms_encryption_key": "k"})
	c, _, err := named("bucket", "a", s)
	want := &cloud{name: "bucket", base: server, kmsKey: "k", credentials: "key", impersonated: "a@b"}
	if diff := cmp.Diff(bucket.Cloud(want), c, cmp.AllowUnexported(cloud{})); diff != "" || err != nil || s.Unread() != nil {
		t.Errorf("%v %v (-want +got):\n%s", err, s.Unread(), diff)
	}
}

// Tokens of another service account come from IAM, with the credentials' own, once an hour.
func TestGCS_impersonation(t *testing.T) {
	const path = "POST https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/a@b:generateAccessToken Bearer source "
	const denied = `{"error": {"code": 403, "message": "canary", "status": "PERMISSION_DENIED"}}`
	const lacks = `with status 403 PERMISSION_DENIED; the credentials may lack the role roles/iam.serviceAccountTokenCreator`
	for what, test := range map[string]struct {
		settings  map[string]any
		variables map[string]string
		status    int
		body      string
		want      []string // before the listings
		wantErr   string
	}{
		"token": {settings: map[string]any{"access_token": "source"}, want: []string{path + `{"scope":["` + storageScope + `"]}`}},
		"key": {
			settings: map[string]any{"credentials": serviceAccount(t, "https://oauth2.googleapis.com/token")},
			want:     []string{"POST https://oauth2.googleapis.com/token " + cloudScope, path + `{"scope":["` + storageScope + `"]}`},
		},
		"delegates": {
			settings:  map[string]any{"impersonate_service_account_delegates": []any{"c@d", "e@f"}},
			variables: map[string]string{"GOOGLE_OAUTH_ACCESS_TOKEN": "source"},
			want:      []string{path + `{"delegates":["projects/-/serviceAccounts/c@d","projects/-/serviceAccounts/e@f"],"scope":["` + storageScope + `"]}`},
		},
		"denied":   {settings: map[string]any{"access_token": "source"}, status: http.StatusForbidden, body: denied, wantErr: lacks},
		"redirect": {settings: map[string]any{"access_token": "source"}, status: http.StatusFound, body: "canary", wantErr: "with status 302"},
		"empty":    {settings: map[string]any{"access_token": "source"}, status: http.StatusOK, body: "{}", wantErr: "with status 200"},
		"network":  {settings: map[string]any{"access_token": "source"}, wantErr: "no route"},
	} {
		t.Run(what, func(t *testing.T) {
			setGCS(t, test.variables)
			values := map[string]any{"bucket": "bucket", "impersonate_service_account": "a@b"}
			maps.Copy(values, test.settings)
			s := settings.OfBackend(values)
			c, prefix, err := beside(s)
			if err = errors.Join(err, s.Unread()); err != nil {
				t.Fatal(err)
			}
			var got []string
			kept := bucket.New(c, prefix, "scope", roundTrip(func(r *http.Request) (int, string, error) {
				at, body := r.Method+" "+r.URL.String(), ""
				if r.Body != nil {
					text, _ := io.ReadAll(r.Body)
					body = string(text)
				}
				switch r.URL.Host {
				case "oauth2.googleapis.com":
					form, _ := url.ParseQuery(body)
					claims, _ := base64.RawURLEncoding.DecodeString(strings.Split(form.Get("assertion"), ".")[1])
					var claim struct{ Scope string }
					_ = json.Unmarshal(claims, &claim)
					got = append(got, at+" "+claim.Scope)
					return http.StatusOK, `{"access_token": "source", "expires_in": 3600}`, nil
				case "iamcredentials.googleapis.com":
					got = append(got, at+" "+r.Header.Get("Authorization")+" "+body)
					if test.wantErr != "" {
						if test.status == 0 {
							return 0, "", errors.New("no route")
						}
						return test.status, test.body, nil
					}
					return http.StatusOK, `{"accessToken": "impersonated", "expireTime": "` + time.Now().Add(time.Hour).Format(time.RFC3339) + `"}`, nil
				}
				got = append(got, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
				return http.StatusOK, `{"kind": "storage#objects"}`, nil
			}))
			for range 2 {
				_, err = kept.List(t.Context())
			}
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "a@b") {
					t.Errorf("got %v, want %s", err, test.wantErr)
				}
				return
			}
			const list = "GET /storage/v1/b/bucket/o Bearer impersonated"
			if diff := cmp.Diff(append(test.want, list, list), got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// Only a listing without the object says that it does not exist.
func TestGCS_responses(t *testing.T) {
	const key = "a/scope/first.json"
	const noBucket = `{"error": {"code": 404, "message": "The specified bucket does not exist.", "errors": [{"domain": "global", "reason": "notFound"}]}}`
	for what, test := range map[string]struct {
		list, object http.HandlerFunc
		missing      bool
		want         apiError // of Get
		denied       string   // of Put
	}{
		"nothing": {list: respond(http.StatusOK, `{"kind": "storage#objects"}`), object: respond(http.StatusNotFound, "No such object: bucket/"+key), missing: true},
		"a similar name": {
			list:   respond(http.StatusOK, `{"kind": "storage#objects", "items": [{"name": "`+key+`.bak"}]}`),
			object: respond(http.StatusNotFound, "No such object"), missing: true,
		},
		"no bucket": {
			list: respond(http.StatusNotFound, noBucket), object: respond(http.StatusNotFound, "No such object: bucket/"+key), // as Google says
			want: apiError{Status: 404, Reason: "notFound", Message: "The specified bucket does not exist."},
		},
		"another server": {
			list: respond(http.StatusOK, "{}"), object: respond(http.StatusNotFound, ""), want: apiError{Status: 200, Message: "{}"},
		},
		"404 of a proxy": {
			list: respond(http.StatusNotFound, "a\x1b]"), object: respond(http.StatusNotFound, ""),
			want: apiError{Status: 404, Message: "a\x1b]"},
		},
		"404 of a proxy without escaped slashes": {
			list:   respond(http.StatusOK, `{"kind": "storage#objects", "items": [{"name": "`+key+`"}]}`),
			object: respond(http.StatusNotFound, "b"), want: apiError{Status: 404, Message: "b"},
		},
		"no right": {
			list: respond(http.StatusForbidden, ""), object: respond(http.StatusForbidden, strings.Repeat("é", 1000)),
			want: apiError{Status: 403, Message: strings.Repeat("é", 250)}, denied: "roles/storage.objectUser on the bucket bucket",
		},
		"401": {list: respond(401, ""), object: respond(401, ""), want: apiError{Status: 401}},
	} {
		s := serveGCS(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.EscapedPath(), "/o") {
				test.list(w, r)
			} else {
				test.object(w, r)
			}
		})
		text, readErr := s.Get(t.Context(), "first")
		_, writeErr := s.Put(t.Context(), store.Text{Key: "first", Version: "2"}, nil)
		if text.Exists() || (readErr == nil) != test.missing || writeErr == nil || errors.Is(writeErr, store.ErrConflict) {
			t.Errorf("%s: %+v, %v, %v", what, text, readErr, writeErr)
		}
		if test.missing {
			continue
		}
		got, _ := errors.AsType[*apiError](readErr)
		if diff := cmp.Diff(&test.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", what, diff)
		}
		if text := writeErr.Error(); strings.Contains(text, "the credentials may lack") != (test.denied != "") || !strings.Contains(text, test.denied) ||
			strings.Contains(text, "\x1b") {
			t.Errorf("%s: %q", what, text)
		}
	}
}

func respond(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

// A token goes to no other server.
func TestGCS_redirect(t *testing.T) {
	foreign := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("followed to %s", r.URL) }))
	defer foreign.Close()
	s := serveGCS(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, foreign.URL, http.StatusTemporaryRedirect)
	})
	for _, err := range storetest.Ops(t, s, "a") {
		if failed, ok := errors.AsType[*apiError](err); !ok || failed.Status != http.StatusTemporaryRedirect {
			t.Errorf("got %v", err)
		}
	}
	redirected := httptest.NewServer(http.RedirectHandler(foreign.URL, http.StatusTemporaryRedirect))
	defer redirected.Close()
	setGCS(t, map[string]string{"GOOGLE_CREDENTIALS": serviceAccount(t, redirected.URL)})
	if _, err := openURL(t, map[string]any{"endpoint": redirected.URL}, nil).List(t.Context()); err == nil || !strings.Contains(err.Error(), "give no token") {
		t.Errorf("got %v", err)
	}
}

// Google refuses a second write within a second.
func TestGCS_repeats(t *testing.T) {
	setGCS(t, map[string]string{"GOOGLE_OAUTH_ACCESS_TOKEN": "token"})
	errNetwork := errors.New("no route")
	for what, test := range map[string]struct {
		statuses []int // the last one for good; 0: errNetwork
		requests int   // 0: any number
		want     int   // of the error
		at       time.Duration
	}{
		"429":           {statuses: []int{429, 429, 200}, requests: 3},
		"408 and 5xx":   {statuses: []int{408, 500, 503, 200}, requests: 4},
		"for good":      {statuses: []int{429, 503}, want: 503, at: 10 * time.Second},
		"400":           {statuses: []int{400}, requests: 1, want: 400},
		"a lost one":    {statuses: []int{503, 0}, requests: 2},
		"a stalled one": {statuses: []int{503, -1}, requests: 2, want: 503, at: 10 * time.Second},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := 0
				began := time.Now()
				var last time.Time
				network := roundTrip(func(r *http.Request) (int, string, error) {
					if body, err := io.ReadAll(r.Body); err != nil || string(body) != "text" {
						t.Errorf("%v %s", err, body)
					}
					if pause := time.Since(last); requests > 0 && (pause < 250*time.Millisecond || pause > 6*time.Second) {
						t.Errorf("request %d after %v", requests, pause)
					}
					if _, ok := r.Header["Idempotency-Key"]; !ok {
						t.Error("net/http does not replace a closed connection")
					}
					last = time.Now()
					status := test.statuses[min(requests, len(test.statuses)-1)]
					requests++
					switch status {
					case 0:
						return 0, "", errNetwork
					case -1:
						<-r.Context().Done()
						return 0, "", r.Context().Err()
					}
					return status, `{"generation": "2"}`, nil
				})
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				_, err := openURL(t, nil, network).Put(ctx, storetest.New("a"), []byte("text"))
				failed, _ := errors.AsType[*apiError](err)
				switch {
				case slices.Contains(test.statuses, 0):
					if !errors.Is(err, errNetwork) || strings.Contains(err.Error(), "://") {
						t.Errorf("got %v", err)
					}
				case (failed != nil) != (test.want != 0), failed != nil && failed.Status != test.want, failed == nil && err != nil:
					t.Errorf("got %v, want %d", err, test.want)
				}
				if test.requests != 0 && requests != test.requests || test.at != 0 && time.Since(began) != test.at {
					t.Errorf("%d requests in %v", requests, time.Since(began))
				}
			})
		})
	}
}

// A source of tokens that does not respond does not hold up a call, and the next one asks again.
func TestGCS_stalledToken(t *testing.T) {
	setGCS(t, map[string]string{
		"GOOGLE_CREDENTIALS": `{"type": "authorized_user", "client_id": "a", "client_secret": "b", "refresh_token": "c"}`, // uses its context
	})
	synctest.Test(t, func(t *testing.T) {
		var requests atomic.Int32
		network := roundTrip(func(r *http.Request) (int, string, error) {
			if r.URL.Path != "/token" {
				return http.StatusOK, `{"kind": "storage#objects"}`, nil
			}
			if requests.Add(1) == 1 {
				<-r.Context().Done() // of the client: it has none from the call
				return 0, "", r.Context().Err()
			}
			return http.StatusOK, `{"access_token": "token", "expires_in": 3600}`, nil
		})
		s := openURL(t, nil, network)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := s.List(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 5*time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		time.Sleep(bucket.RequestTimeout) // the source waits for the first request under a lock
		if _, err := s.List(t.Context()); err != nil || requests.Load() != 2 {
			t.Errorf("got %v after %d requests", err, requests.Load())
		}
	})
}
