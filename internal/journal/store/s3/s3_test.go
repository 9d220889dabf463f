// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package s3

import (
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	awsbase "github.com/hashicorp/aws-sdk-go-base/v2"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/bucket"
	"github.com/agentjobs/terraform-provider-agent/internal/test/storetest"
)

// newText is what a key has that nothing was written to.
var newText = storetest.New("a")

// onlyAWS hides what this machine has set.
func onlyAWS(t *testing.T, variables map[string]string) {
	t.Helper()
	set := map[string]string{"HOME": t.TempDir(), "AWS_ACCESS_KEY_ID": "of-env", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "eu-central-1"}
	maps.Copy(set, variables)
	storetest.SetEnv(t, set, "AWS_")
}

// inState is where settings lead that locate a state, and others.
func inState(others map[string]any) (bucket.Cloud, string, error) {
	state := map[string]any{"bucket": "states", "key": "app/state", "region": "eu-central-1", "workspace_key_prefix": nil, "encrypt": false}
	return storetest.Beside(Kind(), state, others)
}

// openState opens the store there, with the credentials of onlyAWS.
func openState(t *testing.T, others map[string]any, network http.RoundTripper) store.Store {
	t.Helper()
	onlyAWS(t, nil)
	c, prefix, err := inState(others)
	if err != nil {
		t.Fatal(err)
	}
	return bucket.New(c, prefix, "scope", network)
}

func isSTS(r *http.Request) bool { return strings.HasPrefix(r.URL.Host, "sts.") }

// lent is what STS responds.
func lent() *http.Response {
	return storetest.Response(http.StatusOK, fmt.Sprintf(`<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>of-role</AccessKeyId>`+
		`<SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`,
		time.Now().Add(time.Hour).UTC().Format(time.RFC3339)))
}

// What leads to credentials reaches the library of the backend, as the backend passes it on.
func TestS3_signers(t *testing.T) {
	type values = map[string]any
	type texts = map[string]string
	role := values{
		"role_arn": "role", "duration": "20m", "external_id": "x1", "policy": "{}", "policy_arns": []any{"a"}, "session_name": "se",
		"source_identity": "so", "tags": values{"k": "v"}, "transitive_tag_keys": []any{"k"},
	}
	web := values{"role_arn": "web", "duration": "1h", "policy": "{}", "policy_arns": []any{"a"}, "session_name": "w", "web_identity_token": "token"}
	proxy, other := "http://proxy", "http://other"
	for name, test := range map[string]struct {
		set       values
		variables texts
		want      awsbase.Config // beside the region, and SkipCredsValidation
	}{
		"settings": {
			values{
				"access_key": "a", "secret_key": "s", "token": "t", "profile": "p", "shared_config_files": []any{"c"}, "shared_credentials_files": []any{"d"},
				"custom_ca_bundle": "ca", "ec2_metadata_service_endpoint": "http://ec2", "http_proxy": proxy, "https_proxy": other, "no_proxy": "n",
				"endpoints": values{"sts": "sts.example.com", "sso": "https://sso.example.com"}, "sts_region": "r", "use_fips_endpoint": true, "use_dualstack_endpoint": true,
			},
			texts{"AWS_SHARED_CONFIG_FILE": "b", "AWS_SHARED_CREDENTIALS_FILE": "b", "AWS_CA_BUNDLE": "b", "AWS_METADATA_URL": "b", "AWS_STS_ENDPOINT": "b"},
			awsbase.Config{
				AccessKey: "a", SecretKey: "s", Token: "t", Profile: "p", SharedConfigFiles: []string{"c"}, SharedCredentialsFiles: []string{"d"},
				CustomCABundle: "ca", EC2MetadataServiceEndpoint: "http://ec2", HTTPProxy: &proxy, HTTPSProxy: &other, NoProxy: "n",
				StsEndpoint: "https://sts.example.com", SsoEndpoint: "https://sso.example.com", StsRegion: "r", UseFIPSEndpoint: true, UseDualStackEndpoint: true,
			},
		},
		"variables": {
			nil,
			texts{"AWS_SHARED_CONFIG_FILE": "c", "AWS_SHARED_CREDENTIALS_FILE": "d", "AWS_CA_BUNDLE": "ca", "AWS_METADATA_URL": "http://ec2", "AWS_STS_ENDPOINT": "https://sts"},
			awsbase.Config{
				SharedConfigFiles: []string{"c"}, SharedCredentialsFiles: []string{"d"}, CustomCABundle: "ca", EC2MetadataServiceEndpoint: "http://ec2", StsEndpoint: "https://sts",
			},
		},
		"newer variables": {
			nil,
			texts{"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://ec2", "AWS_METADATA_URL": "b", "AWS_ENDPOINT_URL_STS": "https://sts", "AWS_STS_ENDPOINT": "b"},
			awsbase.Config{EC2MetadataServiceEndpoint: "http://ec2", StsEndpoint: "https://sts"},
		},
		"older settings": {
			values{
				"sts_endpoint": "sts", "shared_credentials_file": "d", "role_arn": "role", "session_name": "se", "external_id": "x1",
				"assume_role_duration_seconds": 1200.0, "assume_role_policy": "{}", "assume_role_policy_arns": []any{"a"},
				"assume_role_tags": values{"k": "v"}, "assume_role_transitive_tag_keys": []any{"k"},
			},
			nil,
			awsbase.Config{StsEndpoint: "https://sts", SharedCredentialsFiles: []string{"d"}, AssumeRole: []awsbase.AssumeRole{{
				RoleARN: "role", Duration: 20 * time.Minute, ExternalID: "x1", Policy: "{}", PolicyARNs: []string{"a"}, SessionName: "se",
				Tags: texts{"k": "v"}, TransitiveTagKeys: []string{"k"},
			}}},
		},
		"role": {values{"assume_role": role}, nil, awsbase.Config{AssumeRole: []awsbase.AssumeRole{{
			RoleARN: "role", Duration: 20 * time.Minute, ExternalID: "x1", Policy: "{}", PolicyARNs: []string{"a"}, SessionName: "se", SourceIdentity: "so",
			Tags: texts{"k": "v"}, TransitiveTagKeys: []string{"k"},
		}}}},
		"web identity": {
			values{"assume_role_with_web_identity": web},
			texts{"AWS_ROLE_ARN": "b", "AWS_ROLE_SESSION_NAME": "b", "AWS_WEB_IDENTITY_TOKEN_FILE": "b"},
			awsbase.Config{AssumeRoleWithWebIdentity: &awsbase.AssumeRoleWithWebIdentity{
				RoleARN: "web", Duration: time.Hour, Policy: "{}", PolicyARNs: []string{"a"}, SessionName: "w", WebIdentityToken: "token",
			}},
		},
		"web identity, variables": {
			values{"assume_role_with_web_identity": values{"role_arn": nil, "policy": "{}"}},
			texts{"AWS_ROLE_ARN": "web", "AWS_ROLE_SESSION_NAME": "w", "AWS_WEB_IDENTITY_TOKEN": "token", "AWS_WEB_IDENTITY_TOKEN_FILE": "file"},
			awsbase.Config{AssumeRoleWithWebIdentity: &awsbase.AssumeRoleWithWebIdentity{
				RoleARN: "web", Policy: "{}", SessionName: "w", WebIdentityToken: "token", WebIdentityTokenFile: "file",
			}},
		},
	} {
		onlyAWS(t, test.variables)
		c, _, err := inState(test.set)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		test.want.Region, test.want.SkipCredsValidation = "eu-central-1", true
		if diff := cmp.Diff(test.want, c.(*cloud).aws.Config); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Where the settings of the backend, a URL, and variables lead. What they say about credentials is in TestS3_signers.
func TestS3_settings(t *testing.T) {
	config := storetest.File(t, "config", "[default]\nendpoint_url = https://s3.example.com\n")
	type values = map[string]any
	type texts = map[string]string
	const beside = "/app/state.agent-journal/scope/"
	role := values{
		"assume_role": values{"role_arn": "role", "source_identity": "so"}, // which OpenTofu does not know
		"endpoints":   values{"s3": "s3.example.com", "iam": "i", "sts": "sts.example.com"},
	}
	for name, test := range map[string]struct {
		isURL     bool
		set       values
		variables texts
		at        string // where requests go; empty: the settings cannot be used
		head      texts
	}{
		"path style":       {set: values{"use_path_style": true}, at: "s3.eu-central-1.amazonaws.com/states" + beside},
		"older path style": {set: values{"force_path_style": true}, at: "s3.eu-central-1.amazonaws.com/states" + beside},
		"FIPS, dual stack": {
			set: values{"use_fips_endpoint": true, "use_dualstack_endpoint": true}, at: "states.s3-fips.dualstack.eu-central-1.amazonaws.com/",
		},
		"older endpoint":     {set: values{"endpoint": "https://s3.example.com"}, at: "states.s3.example.com" + beside},
		"endpoint of a file": {set: values{"shared_config_files": []any{config}}, at: "states.s3.example.com" + beside},
		"http":               {set: values{"endpoint": "http://minio:9000", "use_path_style": true}, at: "minio:9000/states" + beside},
		"http, variable":     {variables: texts{"AWS_ENDPOINT_URL": "http://minio:9000"}, at: "states.minio:9000" + beside},
		"endpoints":          {set: role, at: "sts.example.com/so states.s3.example.com" + beside},
		"endpoints, FIPS and dual stack": {
			set: role, variables: texts{"AWS_USE_FIPS_ENDPOINT": "true", "AWS_USE_DUALSTACK_ENDPOINT": "true"},
			at: "sts.example.com/so states.s3.example.com" + beside,
		},
		"customer key":           {variables: texts{"AWS_SSE_CUSTOMER_KEY": "canary"}},
		"no region":              {set: values{"region": nil}, variables: texts{"AWS_REGION": ""}},
		"no bucket":              {set: values{"bucket": nil}},
		"no key":                 {set: values{"key": nil}},
		"role without a name":    {set: values{"assume_role": values{"role_arn": nil}}},
		"web identity, no token": {set: values{"assume_role_with_web_identity": values{"role_arn": "web"}}},

		"URL": {
			isURL: true, at: "bucket.s3.eu-central-1.amazonaws.com/a/scope/a.record",
			variables: texts{ // of the backend
				"AWS_S3_ENDPOINT": "https://canary", "AWS_STS_ENDPOINT": "https://canary", "AWS_SHARED_CONFIG_FILE": config,
				"AWS_SSE_CUSTOMER_KEY": "canary", "AWS_WEB_IDENTITY_TOKEN": "canary", "AWS_METADATA_URL": "canary",
			}, head: texts{"X-Amz-Server-Side-Encryption": "", "X-Amz-Server-Side-Encryption-Customer-Key": ""},
		},
		"URL, a host each":    {isURL: true, set: values{"endpoint": "https://s3.example.com", "use_path_style": "false"}, at: "bucket.s3.example.com/a/"},
		"URL, endpoint":       {isURL: true, set: values{"endpoint": "https://s3.example.com"}, at: "s3.example.com/bucket/a/"},
		"URL, SDK's endpoint": {isURL: true, variables: texts{"AWS_ENDPOINT_URL_S3": "https://s3.example.com"}, at: "s3.example.com/bucket/a/"},
		"URL, path style":     {isURL: true, set: values{"use_path_style": "true"}, at: "s3.eu-central-1.amazonaws.com/bucket/a/"},
		"URL, no checksum":    {isURL: true, set: values{"skip_s3_checksum": "true"}, at: "bucket.", head: texts{"X-Amz-Checksum-Sha256": ""}},
		"URL, encryption":     {isURL: true, set: values{"encrypt": "true"}, at: "bucket.", head: texts{"X-Amz-Server-Side-Encryption": "AES256"}},
		"URL, a key alone":    {isURL: true, set: values{"kms_key_id": "k"}, at: "bucket.", head: texts{"X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id": ""}},
		"URL, no switch":      {isURL: true, set: values{"encrypt": "canary"}},
		"URL, http":           {isURL: true, set: values{"endpoint": "http://canary.example.com"}},
		"URL, http, variable": {isURL: true, variables: texts{"AWS_ENDPOINT_URL": "http://canary.example.com"}},
		"URL, KMS and ACL": {isURL: true, set: values{"encrypt": "true", "kms_key_id": "k", "acl": "bucket-owner-full-control"}, at: "bucket.", head: texts{
			"X-Amz-Server-Side-Encryption": "aws:kms", "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id": "k", "X-Amz-Acl": "bucket-owner-full-control",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			onlyAWS(t, test.variables)
			c, prefix, err := inState(test.set)
			if test.isURL {
				c, prefix, err = storetest.AtURL(Kind(), "bucket", "a/", test.set)
			}
			var at []string
			var head http.Header
			if err == nil {
				_, err = bucket.New(c, prefix, "scope", storetest.Network(func(r *http.Request) (*http.Response, error) {
					at, head = append(at, r.URL.Host+r.URL.Path+r.FormValue("SourceIdentity")), r.Header
					if isSTS(r) {
						return lent(), nil
					}
					return storetest.Response(http.StatusOK, "", "ETag", `"1"`), nil
				})).Put(t.Context(), newText, []byte("{}"))
			}
			got := strings.Join(slices.Compact(at), " ")
			if (err == nil) != (test.at != "") || !strings.HasPrefix(got, test.at) || test.at == "" && got != "" {
				t.Errorf("%v at %s, want %s", err, got, test.at)
			}
			for key, value := range test.head {
				if head.Get(key) != value {
					t.Errorf("%s: %q, want %q", key, head.Get(key), value)
				}
			}
			if strings.Contains(fmt.Sprint(err, head), "canary") {
				t.Error(err, head)
			}
			if os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT") != "" {
				t.Error("the library has set a variable, which commands that lend credentials would inherit")
			}
		})
	}
}

// What the journal cannot honour is an error that names it, and not its value. Only what is set counts.
func TestS3_refused(t *testing.T) {
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
		"endpoint": "ftp://canary.example.com", "sts_endpoint": "canary", "custom_ca_bundle": "canary", "skip_metadata_api_check": true,
		"role_arn": "canary", "session_name": "canary", "external_id": "canary", "shared_credentials_file": "canary",
	}
	onlyAWS(t, nil)
	var refused []string
	for name, value := range canary {
		_, _, err := inState(map[string]any{name: value})
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
		"assume_role", "assume_role_duration_seconds", "assume_role_with_web_identity", "ec2_metadata_service_endpoint_mode", "endpoint",
		"endpoints", "insecure", "sse_customer_key",
	}
	if diff := cmp.Diff(want, refused); diff != "" {
		t.Error(diff)
	}
	unset := map[string]any{"insecure": false, "http_proxy": nil, "endpoints": map[string]any{"sso": nil}, "no_proxy": ""}
	if _, _, err := inState(unset); err != nil {
		t.Errorf("what is not set counts: %v", err)
	}
}

// What S3 denies is named as a statement that a policy accepts, beside S3's own words, and what STS denies is not. A listing that lacks
// what follows says nothing.
func TestS3_denied(t *testing.T) {
	const page, says = `<ListBucketResult><Name>states</Name><IsTruncated>true</IsTruncated></ListBucketResult>`, "to perform: kms:GenerateDataKey"
	grants := map[string]string{
		"list":  `{"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "arn:aws:s3:::states"}`,
		"read":  `{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::states/app/state.agent-journal/*"}`,
		"write": `{"Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject"], "Resource": "arn:aws:s3:::states/app/state.agent-journal/*"}`,
	}
	grants["prove"] = grants["write"]
	for code, test := range map[string]struct {
		set      map[string]any
		isDenied bool
	}{
		"AccessDenied": {isDenied: true}, "InvalidAccessKeyId": {}, "AccessDenied ": {set: map[string]any{"assume_role": map[string]any{"role_arn": "canary"}}}, "": {},
	} {
		s := openState(t, test.set, storetest.Network(func(r *http.Request) (*http.Response, error) {
			text := "<Error><Code>" + strings.TrimSpace(code) + "</Code><Message>a is not authorized " + says + "</Message></Error>"
			switch {
			case isSTS(r):
				text = "<ErrorResponse>" + text + "</ErrorResponse>"
			case code == "":
				return storetest.Response(http.StatusOK, page), nil
			}
			return storetest.Response(http.StatusForbidden, text), nil
		}))
		for op, err := range storetest.Ops(t, s, "a") {
			text := fmt.Sprint(err)
			if err == nil || errors.Is(err, store.ErrDenied) != test.isDenied || strings.Contains(text, "may lack "+grants[op]) != test.isDenied ||
				strings.Contains(text, says) != (code != "") || strings.Contains(text, "canary") {
				t.Errorf("%s: %s: %v", code, op, err)
			}
		}
	}
}

// The transport is that of the settings, as the library makes it, but follows no redirect.
func TestS3_transport(t *testing.T) {
	var requests []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.URL.Path)
		http.Redirect(w, r, "/foreign", http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	bundle := storetest.File(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	set := map[string]any{"endpoint": server.URL, "custom_ca_bundle": bundle, "use_path_style": true}
	_, err := openState(t, set, nil).Get(t.Context(), "a")
	if diff := cmp.Diff([]string{"/states/app/state.agent-journal/scope/a.record"}, requests); diff != "" || err == nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestS3_stalledRefresh(t *testing.T) {
	open := func(t *testing.T, network storetest.Network) store.Store {
		return openState(t, map[string]any{"assume_role": map[string]any{"role_arn": "arn:aws:iam::123456789012:role/a"}}, network)
	}
	storetest.Stalled(t, open, func(r *http.Request) *http.Response {
		if !isSTS(r) {
			return nil
		}
		return lent()
	})
}
