// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package s3

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/bucket"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
)

// received is what a store and the service that lends roles get, instead of AWS.
type received struct {
	who   string // access key, or role, that signed the request to S3
	host  string // and path
	head  http.Header
	roles []url.Values
}

// besideS3 lists and writes beside a state in a bucket, with everything that is set. Only requests to S3 and STS are possible.
func besideS3(t *testing.T, set map[string]any) (r received, _ error) {
	t.Helper()
	values := map[string]any{"bucket": "states", "key": "app/state", "region": "eu-central-1", "workspace_key_prefix": nil, "encrypt": false}
	maps.Copy(values, set)
	c, prefix, err := fromBackend(values)
	if err != nil {
		return r, err
	}
	network := roundTripper(func(request *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		if strings.HasPrefix(request.URL.Host, "sts.") {
			if err := request.ParseForm(); err != nil {
				return nil, err
			}
			request.Form.Set("at", request.URL.Scheme+"://"+request.URL.Host)
			r.roles = append(r.roles, request.Form)
			action := request.Form.Get("Action")
			fmt.Fprintf(w, `<%sResponse><%sResult><Credentials><AccessKeyId>%s</AccessKeyId><SecretAccessKey>s</SecretAccessKey>`+
				`<SessionToken>t</SessionToken><Expiration>2999-01-01T00:00:00Z</Expiration></Credentials></%sResult></%sResponse>`,
				action, action, request.Form.Get("RoleArn"), action, action)
			return w.Result(), nil
		}
		w.Header().Set("ETag", `"1"`)
		_, signed, _ := strings.Cut(request.Header.Get("Authorization"), "Credential=")
		r.who, _, _ = strings.Cut(signed, "/20")
		r.host, r.head = request.URL.Host+request.URL.Path, request.Header
		return w.Result(), nil
	})
	store := bucket.New(c, prefix, "scope", network)
	if r.roles != nil || r.who != "" {
		t.Errorf("before the first access: %+v", r)
	}
	_, err = store.Put(t.Context(), newText, []byte("{}"))
	return r, err
}

func fromBackend(values map[string]any) (bucket.Cloud, string, error) {
	s := settings.OfBackend(values)
	c, prefix, err := beside(s)
	return c, prefix, errors.Join(err, s.Unread())
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The journal reaches the bucket as the s3 backend does.
func TestBeside_s3(t *testing.T) {
	shared := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(shared, []byte("[team]\naws_access_key_id = of-team\naws_secret_access_key = s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	for name, text := range map[string]string{
		"config": "[default]\nendpoint_url = https://s3.example.com\n",
		"roles": "[profile base]\naws_access_key_id = of-base\naws_secret_access_key = s\n" +
			"[profile first]\nrole_arn = first\nrole_session_name = se\nsource_profile = base\n" +
			"[profile second]\nrole_arn = second\nrole_session_name = se\nsource_profile = first\n",
		"credentials": "[default]\naws_access_key_id = of-home\naws_secret_access_key = s\n",
	} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("a token"), 0o600); err != nil {
		t.Fatal(err)
	}
	usual := "states.s3.eu-central-1.amazonaws.com/app/state.agent-journal/scope/"
	role := map[string]any{
		"role_arn": "role", "duration": "20m", "external_id": "x", "policy": "{}", "policy_arns": []any{"p1"}, "session_name": "se",
		"source_identity": "so", "tags": map[string]any{"k": "v"}, "transitive_tag_keys": []any{"k"},
	}
	for name, test := range map[string]struct {
		set       map[string]any
		variables map[string]string
		who, host string
		roles     string // what STS got
		head      map[string]string
	}{
		"environment":  {who: "of-env", host: usual},
		"settings":     {set: map[string]any{"access_key": "of-setting", "secret_key": "s", "token": "t"}, who: "of-setting", head: map[string]string{"X-Amz-Security-Token": "t"}},
		"profile":      {set: map[string]any{"profile": "team", "shared_credentials_files": []any{shared}}, who: "of-team"},
		"profile, one": {set: map[string]any{"profile": "team", "shared_credentials_file": shared}, who: "of-team"},
		"path style":   {set: map[string]any{"use_path_style": true}, host: "s3.eu-central-1.amazonaws.com/states/app/state.agent-journal/scope/"},
		"FIPS, dual stack": {
			set: map[string]any{"use_fips_endpoint": true, "use_dualstack_endpoint": true}, host: "states.s3-fips.dualstack.eu-central-1.amazonaws.com/",
		},
		"endpoint":               {set: map[string]any{"endpoints": map[string]any{"s3": "s3.example.com", "iam": "i", "sts": nil}}, host: "states.s3.example.com/app"},
		"older endpoint":         {set: map[string]any{"endpoint": "https://s3.example.com"}, host: "states.s3.example.com/app"},
		"endpoint variable":      {variables: map[string]string{"AWS_S3_ENDPOINT": "https://s3.example.com"}, host: "states.s3.example.com/app"},
		"older path style":       {set: map[string]any{"force_path_style": true}, host: "s3.eu-central-1.amazonaws.com/states/app/"},
		"endpoint of a file":     {set: map[string]any{"shared_config_files": []any{"~/config"}}, host: "states.s3.example.com/app"},
		"the same, by variables": {variables: map[string]string{"AWS_SHARED_CONFIG_FILE": "$WHERE/config", "WHERE": home}, host: "states.s3.example.com/app"},
		"region variable":        {set: map[string]any{"region": nil}, variables: map[string]string{"AWS_REGION": "us-east-2"}, host: "states.s3.us-east-2.amazonaws.com/"},
		"encryption":             {set: map[string]any{"encrypt": true}, head: map[string]string{"X-Amz-Server-Side-Encryption": "AES256"}},
		"KMS": {set: map[string]any{"encrypt": true, "kms_key_id": "k", "acl": "bucket-owner-full-control"}, head: map[string]string{
			"X-Amz-Server-Side-Encryption": "aws:kms", "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id": "k", "X-Amz-Acl": "bucket-owner-full-control",
		}},
		"role": {
			set: map[string]any{"assume_role": role}, who: "role",
			roles: "DurationSeconds=1200 ExternalId=x Policy={} PolicyArns.member.1.arn=p1 RoleArn=role RoleSessionName=se SourceIdentity=so " +
				"Tags.member.1.Key=k Tags.member.1.Value=v TransitiveTagKeys.member.1=k",
		},
		"older role": {set: map[string]any{"role_arn": "old", "session_name": "se", "external_id": "x"}, who: "old",
			roles: "DurationSeconds=900 ExternalId=x RoleArn=old RoleSessionName=se"},
		"web identity, then a role": {
			set: map[string]any{
				"assume_role_with_web_identity": map[string]any{"role_arn": "web", "web_identity_token_file": token, "session_name": "w"},
				"assume_role":                   map[string]any{"role_arn": "second", "session_name": "se"},
			}, who: "second",
			roles: "DurationSeconds=900 RoleArn=second RoleSessionName=se; RoleArn=web RoleSessionName=w WebIdentityToken=a token",
		},
		"STS elsewhere": {
			set: map[string]any{"role_arn": "role", "session_name": "se", "sts_region": "us-east-2"}, who: "role",
			roles: "DurationSeconds=900 RoleArn=role RoleSessionName=se at=https://sts.us-east-2.amazonaws.com",
		},
		"STS endpoint": {
			set: map[string]any{"role_arn": "role", "session_name": "se", "sts_endpoint": "sts.example.com"}, who: "role",
			roles: "DurationSeconds=900 RoleArn=role RoleSessionName=se at=https://sts.example.com",
		},
		"STS endpoint, variable": {
			set: map[string]any{"role_arn": "role", "session_name": "se"}, who: "role",
			variables: map[string]string{"AWS_STS_ENDPOINT": "https://sts.example.com"},
			roles:     "DurationSeconds=900 RoleArn=role RoleSessionName=se at=https://sts.example.com",
		},
		"STS endpoint, role of a profile": {
			set: map[string]any{"profile": "second", "shared_config_files": []any{"~/roles"}, "endpoints": map[string]any{"sts": "https://sts.example.com"}},
			who: "second", roles: "DurationSeconds=900 RoleArn=first RoleSessionName=se at=https://sts.example.com; " +
				"DurationSeconds=900 RoleArn=second RoleSessionName=se at=https://sts.example.com",
		},
		"STS endpoint, web identity by its variables": {
			set: map[string]any{"sts_endpoint": "sts.example.com"}, who: "web",
			variables: map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_ROLE_ARN": "web", "AWS_WEB_IDENTITY_TOKEN_FILE": token, "AWS_ROLE_SESSION_NAME": "w"},
			roles:     "RoleArn=web RoleSessionName=w WebIdentityToken=a token at=https://sts.example.com",
		},
		"STS endpoint, FIPS and dual stack": {
			set: map[string]any{"role_arn": "role", "session_name": "se", "endpoints": map[string]any{"s3": "s3.example.com", "sts": "sts.example.com"}},
			who: "role", host: "states.s3.example.com/app",
			variables: map[string]string{"AWS_USE_FIPS_ENDPOINT": "true", "AWS_USE_DUALSTACK_ENDPOINT": "true"},
			roles:     "DurationSeconds=900 RoleArn=role RoleSessionName=se at=https://sts.example.com",
		},
		"older role of OpenTofu": {
			set: map[string]any{
				"role_arn": "old", "session_name": "se", "assume_role_duration_seconds": 1200.0, "assume_role_policy": "{}", "assume_role_policy_arns": []any{"p1"},
				"assume_role_tags": map[string]any{"k": "v"}, "assume_role_transitive_tag_keys": []any{"k"},
			}, who: "old",
			roles: "DurationSeconds=1200 Policy={} PolicyArns.member.1.arn=p1 RoleArn=old RoleSessionName=se " +
				"Tags.member.1.Key=k Tags.member.1.Value=v TransitiveTagKeys.member.1=k",
		},
		"keys, not the web identity": {
			set: map[string]any{
				"access_key": "of-setting", "secret_key": "s",
				"assume_role_with_web_identity": map[string]any{"role_arn": "web", "web_identity_token": "t"},
			}, who: "of-setting",
		},
		"web identity by the variables of OpenTofu": {
			set: map[string]any{"assume_role_with_web_identity": map[string]any{"role_arn": nil}}, who: "web",
			variables: map[string]string{"AWS_ROLE_ARN": "web", "AWS_WEB_IDENTITY_TOKEN": "t", "AWS_ROLE_SESSION_NAME": "w"},
			roles:     "RoleArn=web RoleSessionName=w WebIdentityToken=t",
		},
		"a token that only GitLab's examples know": {variables: map[string]string{"AWS_WEB_IDENTITY_TOKEN": "t"}, who: "of-env"},
		"file in the home folder": {
			variables: map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SHARED_CREDENTIALS_FILE": "~/credentials"}, who: "of-home",
		},
		"file of a variable, not the older setting": {
			set: map[string]any{"shared_credentials_file": shared}, who: "of-home",
			variables: map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SHARED_CREDENTIALS_FILE": "~/credentials"},
		},
		"account": {set: map[string]any{"allowed_account_ids": []any{"1"}, "forbidden_account_ids": []any{"2"}}, who: "of-env"},
		"http":    {set: map[string]any{"endpoint": "http://minio:9000", "use_path_style": true}, host: "minio:9000/states/app"},
		"http, variable": {
			variables: map[string]string{"AWS_ENDPOINT_URL": "http://minio:9000"}, host: "states.minio:9000/app",
		},
		"web identity in the settings": {
			set: map[string]any{"assume_role_with_web_identity": map[string]any{
				"role_arn": "web", "web_identity_token": "t", "session_name": "w", "duration": "20m", "policy": "{}", "policy_arns": []any{"p1"},
			}}, who: "web",
			roles: "DurationSeconds=1200 Policy={} PolicyArns.member.1.arn=p1 RoleArn=web RoleSessionName=w WebIdentityToken=t",
		},
		"web identity by its variables": {
			variables: map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_ROLE_ARN": "web", "AWS_WEB_IDENTITY_TOKEN_FILE": token, "AWS_ROLE_SESSION_NAME": "w"},
			who:       "web", roles: "RoleArn=web RoleSessionName=w WebIdentityToken=a token",
		},
	} {
		t.Run(name, func(t *testing.T) {
			onlyAWS(t, test.variables)
			t.Setenv("HOME", home)
			got, err := besideS3(t, test.set)
			if err != nil || test.who != "" && got.who != test.who || !strings.HasPrefix(got.host, test.host) {
				t.Errorf("%v: %s at %s, want %s at %s", err, got.who, got.host, test.who, test.host)
			}
			if diff := cmp.Diff(test.roles, got.lent()); diff != "" {
				t.Error(diff)
			}
			for key, value := range test.head {
				if got.head.Get(key) != value {
					t.Errorf("%s: %q, want %q", key, got.head.Get(key), value)
				}
			}
			if got.head.Get("X-Amz-Checksum-Sha256") == "" {
				t.Error("no checksum")
			}
		})
	}
}

// lent lists what STS got, sorted.
func (r received) lent() string {
	var all []string
	for _, form := range r.roles {
		if form.Get("at") == "https://sts.eu-central-1.amazonaws.com" { // the usual one
			form.Del("at")
		}
		if form.Get("Action") != "GetCallerIdentity" {
			form.Del("Action")
		}
		form.Del("Version")
		var one []string
		for _, name := range slices.Sorted(maps.Keys(form)) {
			one = append(one, name+"="+form.Get(name))
		}
		all = append(all, strings.Join(one, " "))
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "; ")
}

// onlyAWS hides what this machine has set.
func onlyAWS(t *testing.T, variables map[string]string) {
	t.Helper()
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("AWS_ACCESS_KEY_ID", "of-env")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s")
	t.Setenv("AWS_REGION", "eu-central-1")
	for name, value := range variables {
		t.Setenv(name, value)
	}
}

// What the journal cannot honour is an error that names it, and not its value. Only what is set counts.
func TestBeside_s3_refused(t *testing.T) {
	canary := map[string]any{ // of Terraform 1.16 and OpenTofu 1.12, but for where the state is
		"acl": "canary", "allowed_account_ids": []any{"canary"}, "assume_role": map[string]any{"canary": "canary"},
		"assume_role_duration_seconds": "canary", "assume_role_policy": "canary", "assume_role_policy_arns": []any{"canary"},
		"assume_role_tags": map[string]any{"canary": "canary"}, "assume_role_transitive_tag_keys": []any{"canary"},
		"assume_role_with_web_identity": map[string]any{"duration": "canary"}, "dynamodb_endpoint": "canary", "dynamodb_table": "canary",
		"ec2_metadata_service_endpoint": "canary", "ec2_metadata_service_endpoint_mode": "canary", "endpoints": map[string]any{"new": "canary"},
		"forbidden_account_ids": []any{"canary"}, "http_proxy": "canary", "https_proxy": "canary", "iam_endpoint": "canary", "insecure": true,
		"lock_tags": map[string]any{"a": "canary"}, "max_retries": 5.0, "no_proxy": "canary", "retry_mode": "canary",
		"skip_credentials_validation": true, "skip_region_validation": true, "skip_requesting_account_id": true, "sse_customer_key": "canary",
		"state_tags": map[string]any{"a": "canary"}, "use_lockfile": true, "workspace_key_prefix": "canary",
		"endpoint": "ftp://canary.example.com", "sts_endpoint": "canary", "custom_ca_bundle": "canary",
	}
	var refused []string
	for name, value := range canary {
		onlyAWS(t, nil)
		_, _, err := fromBackend(map[string]any{"bucket": "b", "key": "k", name: value})
		if err == nil {
			continue
		}
		refused = append(refused, name)
		if text := err.Error(); strings.Contains(text, "canary") || !strings.Contains(text, name) && !strings.Contains(text, "endpoint") {
			t.Errorf("%s: %v", name, err)
		}
	}
	slices.Sort(refused)
	want := []string{
		"assume_role", "assume_role_duration_seconds", "assume_role_with_web_identity", "ec2_metadata_service_endpoint_mode", "endpoint", "endpoints",
		"insecure", "sse_customer_key",
	}
	if diff := cmp.Diff(want, refused); diff != "" {
		t.Error(diff)
	}
	unset := map[string]any{"bucket": "b", "key": "k", "insecure": false, "http_proxy": nil, "endpoints": map[string]any{"sso": nil}, "no_proxy": ""}
	if _, _, err := fromBackend(unset); err != nil {
		t.Errorf("what is not set counts: %v", err)
	}
	for _, unusable := range []map[string]any{{"key": "k"}, {"bucket": "b"}} {
		if _, _, err := fromBackend(unusable); err == nil {
			t.Errorf("without bucket or key: %v", unusable)
		}
	}
	for name, test := range map[string]struct {
		variables map[string]string
		set       map[string]any
	}{
		"customer key":           {map[string]string{"AWS_SSE_CUSTOMER_KEY": "canary"}, nil},
		"no region":              {map[string]string{"AWS_REGION": ""}, map[string]any{"region": nil}},
		"role without a name":    {nil, map[string]any{"assume_role": map[string]any{"role_arn": nil}}},
		"web identity, no token": {nil, map[string]any{"assume_role_with_web_identity": map[string]any{"role_arn": "web"}}},
	} {
		onlyAWS(t, test.variables)
		got, err := besideS3(t, test.set)
		if err == nil || strings.Contains(err.Error(), "canary") || got.host != "" {
			t.Errorf("%s: %v, %s", name, err, got.host)
		}
		for _, form := range got.roles {
			if form.Get("Action") != "GetCallerIdentity" {
				t.Errorf("%s: %v", name, form)
			}
		}
	}
}

// An access whose credentials cannot be refreshed does not hold up the next one.
func TestBeside_stalledRefresh(t *testing.T) {
	onlyAWS(t, nil)
	c, prefix, err := fromBackend(map[string]any{
		"bucket": "states", "key": "app/state", "region": "eu-central-1", "assume_role": map[string]any{"role_arn": "arn:aws:iam::123456789012:role/a"},
	})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var stalls atomic.Bool
		store := bucket.New(c, prefix, "scope", roundTripper(func(request *http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			if !strings.HasPrefix(request.URL.Host, "sts.") {
				w.Header().Set("ETag", `"1"`)
				return w.Result(), nil
			}
			if stalls.CompareAndSwap(true, false) {
				<-request.Context().Done() // not that of the access
				return nil, request.Context().Err()
			}
			fmt.Fprintf(w, `<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>a</AccessKeyId><SecretAccessKey>s</SecretAccessKey>`+
				`<SessionToken>t</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`,
				time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
			return w.Result(), nil
		}))
		for _, want := range []error{nil, context.DeadlineExceeded, nil} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := store.Put(ctx, newText, []byte("{}")); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
			cancel()
			if want == nil { // what was lent ends
				time.Sleep(2 * time.Hour)
				stalls.Store(true)
			}
		}
	})
}
