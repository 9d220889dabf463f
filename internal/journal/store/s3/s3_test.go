// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package s3

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/bucket"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
)

// newText is what a key has that nothing was written to.
var newText = store.Text{Key: "a"}

// What S3 denies is named as a statement that a policy accepts, and what STS denies is not.
func TestDenied(t *testing.T) {
	for name, test := range map[string]struct {
		set      map[string]any
		from     string // s3 or sts
		code     string
		message  string
		isDenied bool
		says     string
	}{
		"policy": {from: "s3", code: "AccessDenied", message: "Access Denied", isDenied: true, says: "arn:aws:s3:::states/app/state.agent-journal/*"},
		"key": {
			from: "s3", code: "AccessDenied", message: "User: a is not authorized to perform: kms:GenerateDataKey on this resource",
			isDenied: true, says: "kms:GenerateDataKey",
		},
		"China":       {set: map[string]any{"region": "cn-north-1"}, from: "s3", code: "AccessDenied", isDenied: true, says: "arn:aws-cn:s3:::states/"},
		"GovCloud":    {set: map[string]any{"region": "us-gov-west-1"}, from: "s3", code: "AccessDenied", isDenied: true, says: "arn:aws-us-gov:s3:::states/"},
		"unknown key": {from: "s3", code: "InvalidAccessKeyId", says: "InvalidAccessKeyId"},
		"no such KMS": {from: "s3", code: "KMS.NotFoundException", says: "KMS.NotFoundException"},
		"role": {
			set: map[string]any{"role_arn": "canary"}, from: "sts", code: "AccessDenied", message: "not authorized to perform: sts:AssumeRole", says: "sts:AssumeRole",
		},
	} {
		t.Run(name, func(t *testing.T) {
			onlyAWS(t, nil)
			values := map[string]any{"bucket": "states", "key": "app/state", "region": "eu-central-1"}
			maps.Copy(values, test.set)
			c, prefix, err := fromBackend(values)
			if err != nil {
				t.Fatal(err)
			}
			s := bucket.New(c, prefix, "scope", roundTripper(func(r *http.Request) (*http.Response, error) {
				w := httptest.NewRecorder()
				w.WriteHeader(http.StatusForbidden)
				text := fmt.Sprintf("<Error><Code>%s</Code><Message>%s</Message></Error>", test.code, test.message)
				if strings.HasPrefix(r.URL.Host, "sts.") {
					text = "<ErrorResponse>" + text + "</ErrorResponse>"
				}
				_, _ = io.WriteString(w, text)
				return w.Result(), nil
			}))
			_, err = s.Put(t.Context(), newText, []byte("{}"))
			if errors.Is(err, store.ErrDenied) != test.isDenied || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "canary") {
				t.Fatal(err)
			}
			if !test.isDenied {
				return
			}
			var statement struct{ Effect, Resource string }
			var actions struct{ Action []string }
			_, grant, _ := strings.Cut(err.Error(), "the credentials may lack ")
			grant, _, _ = strings.Cut(grant, "}: ")
			for _, into := range []any{&statement, &actions} {
				if err := json.Unmarshal([]byte(grant+"}"), into); err != nil {
					t.Fatal(err)
				}
			}
			if statement.Effect != "Allow" || fmt.Sprint(actions.Action) != "[s3:GetObject s3:PutObject]" {
				t.Error(grant)
			}
		})
	}
}

// What a URL says, and no variable that only the backend reads.
func TestNamed(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	text := "[profile team]\naws_access_key_id = of-team\naws_secret_access_key = s\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		parameters map[string]any
		variables  map[string]string
		host, who  string
		head       map[string]string
		fails      bool
	}{
		"usual": {host: "bucket.s3.eu-central-1.amazonaws.com/a/scope/a.json", who: "of-env"},
		"variables of the backend": {
			variables: map[string]string{
				"AWS_S3_ENDPOINT": "https://canary", "AWS_STS_ENDPOINT": "https://canary", "AWS_SHARED_CONFIG_FILE": config,
				"AWS_SSE_CUSTOMER_KEY": "canary", "AWS_WEB_IDENTITY_TOKEN": "canary", "AWS_METADATA_URL": "canary",
			},
			host: "bucket.s3.eu-central-1.amazonaws.com/", who: "of-env", head: map[string]string{"X-Amz-Server-Side-Encryption-Customer-Key": ""},
		},
		"profile":                {parameters: map[string]any{"profile": "team"}, variables: map[string]string{"AWS_CONFIG_FILE": config}, who: "of-team"},
		"endpoint":               {parameters: map[string]any{"endpoint": "https://s3.example.com"}, host: "s3.example.com/bucket/a/"},
		"endpoint, a host each":  {parameters: map[string]any{"endpoint": "https://s3.example.com", "use_path_style": "false"}, host: "bucket.s3.example.com/a/"},
		"endpoint of a variable": {variables: map[string]string{"AWS_ENDPOINT_URL_S3": "https://s3.example.com"}, host: "s3.example.com/bucket/a/"},
		"path style":             {parameters: map[string]any{"use_path_style": "true"}, host: "s3.eu-central-1.amazonaws.com/bucket/a/"},
		"endpoint, FIPS": {
			parameters: map[string]any{"endpoint": "https://s3.example.com"}, variables: map[string]string{"AWS_USE_FIPS_ENDPOINT": "true"}, host: "s3.example.com/bucket/",
		},
		"no checksum": {parameters: map[string]any{"skip_s3_checksum": "true"}, head: map[string]string{"X-Amz-Checksum-Sha256": ""}},
		"encryption":  {parameters: map[string]any{"encrypt": "true"}, head: map[string]string{"X-Amz-Server-Side-Encryption": "AES256"}},
		"KMS and ACL": {
			parameters: map[string]any{"encrypt": "true", "kms_key_id": "k", "acl": "bucket-owner-full-control"},
			head: map[string]string{
				"X-Amz-Server-Side-Encryption": "aws:kms", "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id": "k", "X-Amz-Acl": "bucket-owner-full-control",
			},
		},
		"a key alone, as in the backend": {parameters: map[string]any{"kms_key_id": "k"}, head: map[string]string{"X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id": ""}},
		"no switch":                      {parameters: map[string]any{"encrypt": "canary"}, fails: true},
		"http":                           {parameters: map[string]any{"endpoint": "http://canary.example.com"}, fails: true},
		"http of a variable":             {variables: map[string]string{"AWS_ENDPOINT_URL": "http://canary.example.com"}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			onlyAWS(t, test.variables)
			s := settings.OfURL(test.parameters)
			c, prefix, err := named("bucket", "a/", s)
			var got *http.Request
			if err = errors.Join(err, s.Unread()); err == nil {
				_, err = bucket.New(c, prefix, "scope", roundTripper(func(r *http.Request) (*http.Response, error) {
					got = r
					return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Etag": {`"1"`}}, Body: http.NoBody}, nil
				})).Put(t.Context(), newText, []byte("{}"))
			}
			if test.fails {
				if err == nil || got != nil || strings.Contains(err.Error(), "canary") {
					t.Errorf("%v, %v", err, got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if at := got.URL.Host + got.URL.Path; !strings.HasPrefix(at, test.host) || !strings.Contains(got.Header.Get("Authorization"), "Credential="+test.who) {
				t.Errorf("%s with %v", at, got.Header)
			}
			for name, value := range test.head {
				if got.Header.Get(name) != value {
					t.Errorf("%s: %q, want %q", name, got.Header.Get(name), value)
				}
			}
			if strings.Contains(fmt.Sprint(got.Header), "canary") {
				t.Error(got.Header)
			}
		})
	}
}

// Proxies and certificates are those of the settings.
func TestBeside_transport(t *testing.T) {
	var at atomic.Value
	respond := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at.Store(r.Host + r.URL.Path)
		w.Header().Set("ETag", `"1"`)
	})
	proxy, server := httptest.NewServer(respond), httptest.NewTLSServer(respond)
	defer proxy.Close()
	defer server.Close()
	bundle := filepath.Join(t.TempDir(), "ca.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(bundle, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		set  map[string]any
		want string
	}{
		"proxy":         {map[string]any{"endpoint": "http://s3.invalid", "http_proxy": proxy.URL}, "s3.invalid"},
		"certificate":   {map[string]any{"endpoint": server.URL, "custom_ca_bundle": bundle}, strings.TrimPrefix(server.URL, "https://")},
		"unknown one":   {map[string]any{"endpoint": server.URL}, ""},
		"no such proxy": {map[string]any{"endpoint": "http://s3.invalid", "http_proxy": proxy.URL, "no_proxy": "invalid"}, ""},
	} {
		onlyAWS(t, nil)
		at.Store("")
		values := map[string]any{"bucket": "states", "key": "app/state", "use_path_style": true}
		maps.Copy(values, test.set)
		c, prefix, err := fromBackend(values)
		if err != nil {
			t.Fatal(err)
		}
		_, err = bucket.New(c, prefix, "scope", nil).Put(t.Context(), newText, []byte("{}"))
		if (err == nil) != (test.want != "") || !strings.HasPrefix(at.Load().(string), test.want) {
			t.Errorf("%s: %v at %q", name, err, at.Load())
		}
	}
}
