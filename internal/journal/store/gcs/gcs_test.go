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
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/bucket"
	"github.com/agentjobs/terraform-provider-agent/internal/test/storetest"
)

// setGCS sets what the gcs backend reads in the environment, and its library, and no other variable.
func setGCS(t *testing.T, variables map[string]string) {
	t.Helper()
	storetest.SetEnv(t, variables, "GOOGLE_", "STORAGE_")
}

// openURL opens gs://bucket/a, with a token unless other credentials are set.
func openURL(t *testing.T, variables map[string]string, network storetest.Network) store.Store {
	t.Helper()
	if variables == nil {
		variables = map[string]string{"GOOGLE_OAUTH_ACCESS_TOKEN": "token"}
	}
	setGCS(t, variables)
	c, path, err := storetest.AtURL(Kind(), "bucket", "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	return bucket.New(c, path+"/", "scope", network)
}

const tokenURL = "https://oauth2.googleapis.com/token"

// serviceAccount is a new key.
func serviceAccount(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	der, err2 := x509.MarshalPKCS8PrivateKey(key)
	text, err3 := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "ci@example.com", "token_uri": tokenURL, "private_key_id": "1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// bodyOf reads what a request sends.
func bodyOf(r *http.Request) string {
	if r.Body == nil {
		return ""
	}
	text, _ := io.ReadAll(r.Body)
	return string(text)
}

// Each setting of the backend leads where it does there, or is refused by name. None is shown.
// A URL's identity is the backend's; where and how a state is kept is no concern of it.
func TestGCS_settings(t *testing.T) {
	const canary = "canary"
	text := serviceAccount(t)
	file := storetest.File(t, "key.json", text)
	t.Setenv("HOME", filepath.Dir(file))
	t.Setenv("USERPROFILE", filepath.Dir(file))
	type values = map[string]any
	type texts = map[string]string
	for what, test := range map[string]struct {
		isURL     bool
		settings  values
		variables texts
		want      cloud
		prefix    string // agent-journal/
		wantErr   string
	}{
		"what is not set": {settings: values{
			"prefix": "", "credentials": nil, "access_token": nil, "encryption_key": "", "impersonate_service_account": nil,
			"impersonate_service_account_delegates": []any{}, "universe_domain": nil, "storage_custom_endpoint": nil, "kms_encryption_key": nil,
		}},
		"prefix":                  {settings: values{"prefix": "//a//b/"}, prefix: "a/b/agent-journal/"},
		"token, variable":         {variables: texts{"GOOGLE_OAUTH_ACCESS_TOKEN": "a"}, want: cloud{token: "a"}},
		"setting before variable": {settings: values{"access_token": "a"}, variables: texts{"GOOGLE_OAUTH_ACCESS_TOKEN": "b"}, want: cloud{token: "a"}},
		"key":                     {settings: values{"credentials": text}, want: cloud{credentials: text}},
		"key, home":               {settings: values{"credentials": "~/key.json"}, want: cloud{credentials: "~/key.json"}},
		"key, variables":          {variables: texts{"GOOGLE_BACKEND_CREDENTIALS": file, "GOOGLE_CREDENTIALS": canary}, want: cloud{credentials: file}},
		"key, second variable":    {variables: texts{"GOOGLE_CREDENTIALS": file}, want: cloud{credentials: file}},
		"kms, variable":           {variables: texts{"GOOGLE_KMS_ENCRYPTION_KEY": "k"}, want: cloud{kmsKey: "k"}},
		"impersonation":           {settings: values{"impersonate_service_account": "a@b"}, want: cloud{impersonated: "a@b"}},
		"impersonation, variables": {
			variables: texts{"GOOGLE_BACKEND_IMPERSONATE_SERVICE_ACCOUNT": "a@b", "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT": canary},
			want:      cloud{impersonated: "a@b"},
		},
		"impersonation, second variable": {variables: texts{"GOOGLE_IMPERSONATE_SERVICE_ACCOUNT": "a@b"}, want: cloud{impersonated: "a@b"}},
		"URL": {
			isURL: true, settings: values{"kms_encryption_key": "k"}, variables: texts{
				"GOOGLE_CREDENTIALS": file, "GOOGLE_KMS_ENCRYPTION_KEY": canary, "GOOGLE_ENCRYPTION_KEY": canary,
				"GOOGLE_STORAGE_CUSTOM_ENDPOINT": canary, "GOOGLE_CLOUD_UNIVERSE_DOMAIN": canary, "STORAGE_EMULATOR_HOST": canary,
			}, want: cloud{kmsKey: "k", credentials: file}, prefix: "a",
		},
		"delegates":             {settings: values{"impersonate_service_account_delegates": []any{canary}}, wantErr: "delegates"},
		"customer's key":        {settings: values{"encryption_key": canary}, wantErr: "encryption_key"},
		"endpoint":              {settings: values{"storage_custom_endpoint": canary}, wantErr: "storage_custom_endpoint"},
		"emulator":              {variables: texts{"STORAGE_EMULATOR_HOST": canary}, wantErr: "STORAGE_EMULATOR_HOST"},
		"universe":              {settings: values{"universe_domain": canary}, wantErr: "universe_domain"},
		"variable":              {variables: texts{"GOOGLE_ENCRYPTION_KEY": canary}, wantErr: "GOOGLE_ENCRYPTION_KEY"},
		"key that is none":      {settings: values{"credentials": canary}, wantErr: "credentials"},
		"key of another type":   {settings: values{"credentials": `{"type": "canary"}`}, wantErr: "credentials"},
		"key of an application": {settings: values{"credentials": `{"installed": {"client_id": "canary", "redirect_uris": ["a"]}}`}, wantErr: "credentials"},
		"text as a path":        {variables: texts{"GOOGLE_APPLICATION_CREDENTIALS": `{"private_key": "canary"}`}, wantErr: "CREDENTIALS"},
	} {
		t.Run(what, func(t *testing.T) {
			variables := texts{"GOOGLE_APPLICATION_CREDENTIALS": file} // no test asks the machine for credentials
			maps.Copy(variables, test.variables)
			setGCS(t, variables)
			c, prefix, err := storetest.Beside(Kind(), values{"bucket": "bucket"}, test.settings)
			if test.isURL {
				c, prefix, err = storetest.AtURL(Kind(), "bucket", "a", test.settings)
			}
			if err == nil {
				_, err = c.Connect(t.Context(), nil)
			}
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) || strings.Contains(err.Error(), canary) {
					t.Errorf("got %v, want %q", err, test.wantErr)
				}
				return
			}
			test.want.name = "bucket"
			if diff := cmp.Diff(bucket.Cloud(&test.want), c, cmp.AllowUnexported(cloud{})); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if want := stdcmp.Or(test.prefix, "agent-journal/"); prefix != want {
				t.Errorf("prefix %s, want %s", prefix, want)
			}
		})
	}
}

// What is sent, byte by byte.
func TestGCS_requests(t *testing.T) {
	setGCS(t, nil)
	c, prefix, err := storetest.Beside(Kind(), map[string]any{
		"bucket": "buck_et", "prefix": "/a b/ü", "kms_encryption_key": "projects/p/k", "access_token": "token",
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	s := bucket.New(c, prefix, "scope", storetest.Network(func(r *http.Request) (*http.Response, error) {
		got = append(got, strings.Join([]string{
			r.Method, r.URL.String(), r.Header.Get("Authorization"), r.Header.Get("Content-Type"), bodyOf(r),
		}, " "))
		switch query := r.URL.Query(); {
		case query.Has("prefix") && !query.Has("pageToken"):
			return storetest.Response(200, `{"kind": "storage#objects", "items": [{"name": "`+prefix+`scope/first.record"}], "nextPageToken": "a+/="}`), nil
		case query.Has("prefix"):
			return storetest.Response(200, `{"kind": "storage#objects", "items": [{"name": "`+prefix+`scope/second.record"}]}`), nil
		case query.Has("alt"):
			return storetest.Response(200, "text", "X-Goog-Generation", "1700000000000002"), nil
		case query.Get("ifGenerationMatch") == "0":
			return storetest.Response(200, `{"kind": "storage#object", "generation": "1700000000000001"}`), nil
		case query.Get("ifGenerationMatch") == "1700000000000001":
			return storetest.Response(200, `{"kind": "storage#object", "generation": "1700000000000002"}`), nil
		}
		return storetest.Response(412, `{"error": {"code": 412, "message": "m", "errors": [{"domain": "global", "reason": "conditionNotMet"}]}}`), nil
	}))
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
		list    = "GET " + server + objects + "?fields=kind%2Citems%28name%29%2CnextPageToken"
		object  = "/a%20b%2F%C3%BC%2Fagent-journal%2Fscope%2Ffirst.record"
	)
	put := func(generation, text string) string {
		return "POST " + server + "/upload" + objects + "?ifGenerationMatch=" + generation + "&kmsKeyName=projects%2Fp%2Fk&name=" + scope +
			"first.record&uploadType=media Bearer token application/json " + text
	}
	requests := []string{
		put("0", "old"), put("1700000000000001", "new"), put("1", "refused"),
		list + "&prefix=" + scope + " Bearer token  ", list + "&pageToken=a%2B%2F%3D&prefix=" + scope + " Bearer token  ",
		"GET " + server + objects + object + "?alt=media Bearer token  ",
	}
	if diff := cmp.Diff(requests, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The credentials get one token an hour. Those of another service account come from IAM, with the credentials' own.
func TestGCS_tokens(t *testing.T) {
	const path = "POST https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/a@b:generateAccessToken Bearer source "
	const denied = `{"error": {"code": 403, "message": "canary", "status": "PERMISSION_DENIED"}}`
	const lacks = `with status 403 PERMISSION_DENIED; the credentials may lack the role roles/iam.serviceAccountTokenCreator`
	type values = map[string]any
	key, token := values{"credentials": serviceAccount(t)}, values{"access_token": "source", "impersonate_service_account": "a@b"}
	for what, test := range map[string]struct {
		settings values
		failsAt  string // a host
		status   int    // of its response; 0: there is none
		body     string
		want     []string // before the listings
		wantErr  string
	}{
		"key":   {settings: key, want: []string{"POST " + tokenURL + " " + storageScope}},
		"token": {settings: token, want: []string{path + `{"scope": ["` + storageScope + `"]}`}},
		"key, impersonation": {
			settings: values{"credentials": key["credentials"], "impersonate_service_account": "a@b"},
			want:     []string{"POST " + tokenURL + " " + cloudScope, path + `{"scope": ["` + storageScope + `"]}`},
		},
		"key, redirect": {settings: key, failsAt: "oauth2.googleapis.com", status: http.StatusFound, wantErr: "give no token"},
		"denied":        {settings: token, failsAt: "iamcredentials.googleapis.com", status: http.StatusForbidden, body: denied, wantErr: lacks},
		"redirect":      {settings: token, failsAt: "iamcredentials.googleapis.com", status: http.StatusFound, body: "canary", wantErr: "with status 302"},
		"empty":         {settings: token, failsAt: "iamcredentials.googleapis.com", status: http.StatusOK, body: "{}", wantErr: "with status 200"},
		"network":       {settings: token, failsAt: "iamcredentials.googleapis.com", wantErr: "no route"},
	} {
		t.Run(what, func(t *testing.T) {
			setGCS(t, nil)
			c, prefix, err := storetest.Beside(Kind(), values{"bucket": "bucket"}, test.settings)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			kept := bucket.New(c, prefix, "scope", storetest.Network(func(r *http.Request) (*http.Response, error) {
				at, body := r.Method+" "+r.URL.String(), bodyOf(r)
				switch r.URL.Host {
				case test.failsAt:
					if test.status == 0 {
						return nil, errors.New("no route")
					}
					return storetest.Response(test.status, test.body, "Location", "https://canary"), nil
				case "oauth2.googleapis.com":
					form, _ := url.ParseQuery(body)
					claims, _ := base64.RawURLEncoding.DecodeString(strings.Split(form.Get("assertion"), ".")[1])
					var claim struct{ Scope string }
					_ = json.Unmarshal(claims, &claim)
					got = append(got, at+" "+claim.Scope)
					return storetest.Response(200, `{"access_token": "source", "expires_in": 3600}`), nil
				case "iamcredentials.googleapis.com":
					got = append(got, at+" "+r.Header.Get("Authorization")+" "+body)
					expires := time.Now().Add(time.Hour).Format(time.RFC3339)
					return storetest.Response(200, `{"accessToken": "impersonated", "expireTime": "`+expires+`"}`), nil
				}
				got = append(got, r.Method+" "+r.URL.Host+" "+r.Header.Get("Authorization"))
				return storetest.Response(200, `{"kind": "storage#objects"}`), nil
			}))
			for range 2 {
				_, err = kept.List(t.Context())
			}
			if test.wantErr != "" {
				text := fmt.Sprint(err)
				if !strings.Contains(text, test.wantErr) || strings.Contains(text, "canary") || strings.Contains(text, "a@b") || len(got) > 0 {
					t.Errorf("got %v after %v, want %s", err, got, test.wantErr)
				}
				return
			}
			list := "GET storage.googleapis.com Bearer impersonated"
			if test.settings["impersonate_service_account"] == nil {
				list = "GET storage.googleapis.com Bearer source"
			}
			if diff := cmp.Diff(append(test.want, list, list), got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// Only a listing without the object says that it does not exist. A token goes to no other server.
func TestGCS_responses(t *testing.T) {
	storetest.Foreign(t, func(network storetest.Network) store.Store { return openURL(t, nil, network) })
	const key, empty = "a/scope/first.record", `{"kind": "storage#objects"}`
	const noBucket = `{"error": {"code": 404, "message": "The specified bucket does not exist.", "errors": [{"domain": "global", "reason": "notFound"}]}}`
	type answer struct {
		status int
		body   string
	}
	list := func(name string) answer {
		return answer{200, `{"kind": "storage#objects", "items": [{"name": "` + name + `"}]}`}
	}
	for what, test := range map[string]struct {
		list, object answer
		want         string // the error of Get; empty: there is no object
		denied       string // of Put
	}{
		"nothing":        {list: answer{200, empty}, object: answer{404, "No such object: bucket/" + key}},
		"a similar name": {list: list(key + ".bak"), object: answer{404, "No such object"}},
		"no bucket": {
			list: answer{404, noBucket}, object: answer{404, "No such object: bucket/" + key}, // as Google says
			want: `status 404: "The specified bucket does not exist."`,
		},
		"another server":                         {list: answer{200, "{}"}, object: answer{404, ""}, want: `status 200: "{}"`},
		"404 of a proxy":                         {list: answer{404, "a\x1b]"}, object: answer{404, ""}, want: `status 404: "a\x1b]"`},
		"404 of a proxy without escaped slashes": {list: list(key), object: answer{404, "b"}, want: `status 404: "b"`},
		"no right": {
			list: answer{403, ""}, object: answer{403, strings.Repeat("é", 1000)},
			want: `status 403: "` + strings.Repeat("é", 500) + `"`, denied: "roles/storage.objectUser on the bucket bucket",
		},
	} {
		s := openURL(t, nil, func(r *http.Request) (*http.Response, error) {
			a := test.object
			if strings.HasSuffix(r.URL.EscapedPath(), "/o") && r.Method == http.MethodGet {
				a = test.list
			}
			return storetest.Response(a.status, a.body), nil
		})
		text, readErr := s.Get(t.Context(), "first")
		_, writeErr := s.Put(t.Context(), store.Text{Key: "first", Version: "2"}, nil)
		if text.Exists() || (readErr == nil) != (test.want == "") || !strings.Contains(fmt.Sprint(readErr), test.want) {
			t.Errorf("%s: %+v, %v, want %s", what, text, readErr, test.want)
		}
		says := strings.Contains(fmt.Sprint(writeErr), "the credentials may lack the role "+test.denied)
		if writeErr == nil || errors.Is(writeErr, store.ErrConflict) || says != (test.denied != "") {
			t.Errorf("%s: %v", what, writeErr)
		}
	}
}

// Google refuses a second write within a second.
func TestGCS_repeats(t *testing.T) {
	for what, test := range map[string]struct {
		statuses []int // the last one for good; 0: no route
		requests int   // 0: any number
		want     string
		at       time.Duration
	}{
		"429":           {statuses: []int{429, 429, 200}, requests: 3},
		"408 and 5xx":   {statuses: []int{408, 500, 503, 200}, requests: 4},
		"for good":      {statuses: []int{429, 503}, want: "status 503", at: 10 * time.Second},
		"400":           {statuses: []int{400}, requests: 1, want: "status 400"},
		"a lost one":    {statuses: []int{503, 0}, requests: 2, want: "no route"},
		"a stalled one": {statuses: []int{503, -1}, requests: 2, want: "status 503", at: 10 * time.Second},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests, began := 0, time.Now()
				var last time.Time
				s := openURL(t, nil, func(r *http.Request) (*http.Response, error) {
					if err := r.Context().Err(); err != nil {
						return nil, err
					}
					if body := bodyOf(r); body != "text" {
						t.Error(body)
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
						return nil, errors.New("no route")
					case -1:
						<-r.Context().Done()
						return nil, r.Context().Err()
					}
					return storetest.Response(status, `{"generation": "2"}`), nil
				})
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				_, err := s.Put(ctx, storetest.New("a"), []byte("text"))
				if text := fmt.Sprint(err); (err == nil) != (test.want == "") || !strings.Contains(text, test.want) || strings.Contains(text, "://") {
					t.Errorf("got %v, want %s", err, test.want)
				}
				if test.requests != 0 && requests != test.requests || test.at != 0 && time.Since(began) != test.at {
					t.Errorf("%d requests in %v", requests, time.Since(began))
				}
			})
		})
	}
}

func TestGCS_stalledToken(t *testing.T) {
	open := func(t *testing.T, network storetest.Network) store.Store {
		return openURL(t, map[string]string{
			"GOOGLE_CREDENTIALS": `{"type": "authorized_user", "client_id": "a", "client_secret": "b", "refresh_token": "c"}`, // uses its context
		}, network)
	}
	storetest.Stalled(t, open, func(r *http.Request) *http.Response {
		if r.URL.Path != "/token" {
			return nil
		}
		return storetest.Response(http.StatusOK, `{"access_token": "token", "expires_in": 3600}`)
	})
}
