// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package azblob

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/bucket"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
)

// login plays Entra ID, managed identities, and the CI systems' services for tokens.
func (f *fakeBlobs) login(w http.ResponseWriter, r *http.Request, body string) bool {
	const token = `"token_type": "Bearer", "access_token": "token", "expires_in": %s, "resource": "https://storage.azure.com"}`
	at := "https://" + r.URL.Host + r.URL.Path
	switch {
	case r.URL.Path == "/common/discovery/instance":
		_, _ = io.WriteString(w, "{}")
	case strings.HasSuffix(r.URL.Path, "/openid-configuration"):
		tenant := "https://" + r.URL.Host + "/" + strings.Split(r.URL.Path, "/")[1]
		_, _ = fmt.Fprintf(w, `{"issuer": "%[1]s", "authorization_endpoint": "%[1]s/authorize", "token_endpoint": "%[1]s/token"}`, tenant)
	case strings.HasSuffix(r.URL.Path, "/token") && r.Method == http.MethodPost:
		form, _ := url.ParseQuery(body)
		if strings.Count(form.Get("client_assertion"), ".") == 2 {
			form.Set("client_assertion", "JWT")
		}
		f.requests = append(f.requests, at+" "+form.Get("client_id")+" "+form.Get("client_secret")+form.Get("client_assertion"))
		_, _ = fmt.Fprintf(w, `{`+token, "3600")
	case r.URL.Host == "169.254.169.254":
		f.requests = append(f.requests, "managed identity "+r.URL.Query().Get("client_id"))
		_, _ = fmt.Fprintf(w, `{`+token, `"60"`) // shorter than MSAL keeps in a cache, which all tests share
	case r.URL.Host == "ci.example":
		f.requests = append(f.requests, r.Method+" "+r.URL.String()+" "+r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, map[string]string{http.MethodGet: `{"value": "proof"}`, http.MethodPost: `{"oidcToken": "proof"}`}[r.Method])
	default:
		return false
	}
	return true
}

// clearAzure removes what this machine's environment says about Azure.
func clearAzure(t *testing.T) {
	t.Helper()
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		for _, prefix := range []string{"ARM_", "AZURE", "ACTIONS_", "SYSTEM_", "IDENTITY_", "IMDS_", "MSI_"} {
			if strings.HasPrefix(name, prefix) {
				t.Setenv(name, "")
				_ = os.Unsetenv(name)
			}
		}
	}
}

// certificate returns the file of a new one.
func certificate(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return file(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}))+
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})))
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

type set = map[string]any

// The requests show what each setting, each variable and their order lead to.
func TestAzure_credentials(t *testing.T) {
	const (
		blobs = "GET https://devstate.blob.core.windows.net/ci-state "
		login = "https://login.microsoftonline.com/tenant/token "

		ofDevOps = "POST https://ci.example/a?api-version=7.1&serviceConnectionId=connection Bearer ci"
	)
	app := func(more set) set {
		all := set{"tenant_id": "tenant", "client_id": "client"}
		maps.Copy(all, more)
		return all
	}
	az := t.TempDir()
	script := "#!/bin/sh\necho '{\"accessToken\": \"'\"$*\"'\", \"expires_on\": 4000000000}'\n"
	if err := os.WriteFile(filepath.Join(az, "az"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	ofCLI := blobs + "Bearer account get-access-token -o json --resource https"
	for what, test := range map[string]struct {
		settings set               // of the backend; nil: a URL
		env      map[string]string // beside them
		want     []string
	}{
		"key": {app(set{"access_key": "a2V5", "sas_token": "sig=sas", "client_secret": "secret", "client_certificate": "a", "msi_endpoint": "a"}),
			map[string]string{"ARM_CLIENT_CERTIFICATE": "a"}, []string{blobs + "SharedKey devstate"}},
		"SAS":           {app(set{"sas_token": "?sig=sas", "client_secret": "secret", "client_certificate": "a"}), nil, []string{blobs + "sas"}},
		"variable":      {app(set{}), map[string]string{"ARM_SAS_TOKEN": "sig=sas"}, []string{blobs + "sas"}},
		"setting first": {set{"sas_token": "sig=sas"}, map[string]string{"ARM_SAS_TOKEN": "sig=other"}, []string{blobs + "sas"}},
		"irrelevant": {set{"sas_token": "sig=sas", "resource_group_name": "a", "snapshot": true, "timeout_seconds": 3.0, "use_azuread_auth": true,
			"subscription_id": "a", "lookup_blob_endpoint": false, "endpoint": "", "metadata_host": nil}, nil, []string{blobs + "sas"}},
		"secret": {app(set{"client_secret": "secret", "use_msi": true}), nil, []string{login + "client secret", blobs + "Bearer token"}},
		"secret in files": {
			set{"tenant_id": "tenant", "client_id_file_path": file(t, "client\n"), "client_secret_file_path": file(t, "secret\n")},
			nil, []string{login + "client secret", blobs + "Bearer token"},
		},
		"certificate": {app(set{"client_certificate_path": certificate(t), "client_secret": "secret"}), nil,
			[]string{login + "client JWT", blobs + "Bearer token"}},
		"OIDC": {app(set{"use_oidc": true, "oidc_token": "proof", "oidc_request_url": "https://ci.example", "oidc_request_token": "a"}), nil,
			[]string{login + "client proof", blobs + "Bearer token"}},
		"OIDC of a file": {app(set{"use_oidc": true, "oidc_token_file_path": file(t, "proof\n")}), nil,
			[]string{login + "client proof", blobs + "Bearer token"}},
		"OIDC, AKS's file": {app(set{"use_oidc": true}), map[string]string{"AZURE_FEDERATED_TOKEN_FILE": file(t, "proof")},
			[]string{login + "client proof", blobs + "Bearer token"}},
		"GitHub": {app(set{"use_oidc": true}), map[string]string{
			"ACTIONS_ID_TOKEN_REQUEST_URL": "https://ci.example/a?b=c", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "ci",
		}, []string{
			"GET https://ci.example/a?audience=api%3A%2F%2FAzureADTokenExchange&b=c Bearer ci", login + "client proof", blobs + "Bearer token",
		}},
		"Azure DevOps": {app(set{"use_oidc": true, "ado_pipeline_service_connection_id": "connection"}), map[string]string{
			"SYSTEM_OIDCREQUESTURI": "https://ci.example/a", "SYSTEM_ACCESSTOKEN": "ci",
		}, []string{ofDevOps, login + "client proof", blobs + "Bearer token"}},
		"Azure DevOps, OpenTofu": {app(set{"use_oidc": true, "oidc_request_token": "ci", "ado_service_connection_id": "connection"}),
			map[string]string{"ARM_OIDC_REQUEST_URL": "https://ci.example/a"}, []string{ofDevOps, login + "client proof", blobs + "Bearer token"}},
		"AKS": {app(set{"use_aks_workload_identity": true, "tenant_id": "other", "client_id": "other"}), map[string]string{
			"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "client", "AZURE_FEDERATED_TOKEN_FILE": file(t, "proof"),
		}, []string{login + "client proof", blobs + "Bearer token"}},
		"managed identity": {set{"use_msi": true}, nil, []string{"managed identity ", blobs + "Bearer token"}},
		"managed identity by name": {set{"use_msi": true, "client_id": "client"}, nil,
			[]string{"managed identity client", blobs + "Bearer token"}},
		"Azure CLI": {set{}, map[string]string{"PATH": az}, []string{ofCLI}},
		"government": {app(set{"client_secret": "secret", "environment": "usgovernment"}), nil, []string{
			"https://login.microsoftonline.us/tenant/token client secret", "GET https://devstate.blob.core.usgovcloudapi.net/ci-state Bearer token",
		}},
		"China": {app(set{"client_secret": "secret"}), map[string]string{"ARM_ENVIRONMENT": "china"}, []string{
			"https://login.chinacloudapi.cn/tenant/token client secret", "GET https://devstate.blob.core.chinacloudapi.cn/ci-state Bearer token",
		}},
		"URL": {nil, map[string]string{"ARM_SAS_TOKEN": "sig=sas"}, []string{blobs + "sas"}},
		"URL, Azure SDK": {nil, map[string]string{"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "client", "AZURE_CLIENT_SECRET": "secret"},
			[]string{login + "client secret", blobs + "Bearer token"}},
	} {
		t.Run(what, func(t *testing.T) {
			clearAzure(t)
			if test.env["PATH"] != "" && runtime.GOOS == "windows" {
				t.Skip("az is a shell script")
			}
			for name, value := range test.env {
				t.Setenv(name, value)
			}
			c, prefix, err := Named("devstate", "ci-state", settings.OfURL(nil))
			if test.settings != nil {
				c, prefix, err = beside(test.settings)
			}
			if err != nil || test.settings != nil && prefix != "prod.tfstate.agent-journal/" {
				t.Fatal(c, prefix, err)
			}
			f := &fakeBlobs{blobs: map[string]string{}}
			if _, err := bucket.New(c, prefix, "scope", f).List(t.Context()); err != nil {
				t.Fatal(err)
			}
			for i, request := range f.requests {
				f.requests[i], _, _ = strings.Cut(request, "://storage.azure.com")
			}
			if diff := cmp.Diff(test.want, f.requests); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func beside(values set) (bucket.Cloud, string, error) {
	all := set{"storage_account_name": "devstate", "container_name": "ci-state", "key": "prod.tfstate"}
	maps.Copy(all, values)
	s := settings.OfBackend(all)
	c, prefix, err := Beside(s)
	return c, prefix, errors.Join(err, s.Unread())
}

// An error names the setting or the variable, and shows no value.
func TestAzure_refused(t *testing.T) {
	const canary = "canary"
	app := set{"tenant_id": "tenant", "client_id": "client"}
	for _, test := range []struct {
		names    string // what the error must name
		settings set
		env      map[string]string
	}{
		{names: "endpoint", settings: set{"endpoint": canary}},
		{names: "metadata_host", settings: set{"metadata_host": canary}},
		{names: "msi_endpoint", settings: set{"msi_endpoint": canary}},
		{names: "client_certificate", settings: set{"client_certificate": canary}},
		{names: "customer_provided_key", settings: set{"customer_provided_key": canary}},
		{names: "encryption_scope", settings: set{"encryption_scope": canary}},
		{names: "lookup_blob_endpoint", settings: set{"lookup_blob_endpoint": true}},
		{names: "lookup_blob_endpoint", env: map[string]string{"ARM_USE_DNS_ZONE_ENDPOINT": "true"}},
		{names: "environment", settings: set{"environment": canary}},
		{names: "of_a_later_version", settings: set{"of_a_later_version": canary}},
		{names: "ARM_METADATA_HOSTNAME", env: map[string]string{"ARM_METADATA_HOSTNAME": canary}},
		{names: "ARM_METADATA_HOST", env: map[string]string{"ARM_METADATA_HOST": canary}},
		{names: "ARM_MSI_ENDPOINT", env: map[string]string{"ARM_MSI_ENDPOINT": canary}},
		{names: "ARM_CLIENT_CERTIFICATE", env: map[string]string{"ARM_CLIENT_CERTIFICATE": canary}},
		{names: "ARM_CUSTOMER_PROVIDED_KEY", env: map[string]string{"ARM_CUSTOMER_PROVIDED_KEY": canary}},
		{names: "ARM_ENCYRPTION_SCOPE", env: map[string]string{"ARM_ENCYRPTION_SCOPE": canary}}, //nolint:misspell // so does OpenTofu
		{names: "storage account", settings: set{"storage_account_name": "canary.example.com/"}},
		{names: "container", settings: set{"container_name": "canary--a"}},
		{names: "container", settings: set{"container_name": strings.Repeat("canary-", 9) + canary}},
		{names: "no credentials", settings: set{"use_cli": false}},
		{names: "access_key", settings: set{"access_key": canary + "%"}},
		{names: "client_id_file_path", settings: set{"client_id_file_path": "/" + canary}},
		{names: "client_id_file_path", settings: set{"client_id": canary, "client_id_file_path": file(t, "canary2")}},
		{names: "client_secret_file_path", settings: set{"client_secret_file_path": "/" + canary}},
		{names: "client_certificate_path", settings: set{"client_certificate_path": "/" + canary}},
		{names: "client_certificate_path", settings: set{"client_certificate_path": file(t, canary)}},
		{names: "oidc_token_file_path", settings: set{"use_oidc": true, "oidc_token_file_path": "/" + canary}},
		{
			names:    "cannot use the setting oidc_request_url",
			settings: set{"use_oidc": true, "oidc_request_url": "http://canary.example", "oidc_request_token": canary},
		},
		{names: "subscription_id", settings: set{"tenant_id": "", "subscription_id": canary + "$"}},
		{names: "URL", settings: set{"sas_token": canary + "\n="}},
	} {
		t.Run(test.names, func(t *testing.T) {
			clearAzure(t)
			for name, value := range test.env {
				t.Setenv(name, value)
			}
			all := maps.Clone(app)
			maps.Copy(all, test.settings)
			c, prefix, err := beside(all)
			if err == nil {
				_, err = bucket.New(c, prefix, "scope", &fakeBlobs{}).List(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), test.names) || strings.Contains(err.Error(), canary) {
				t.Error(err)
			}
		})
	}
}
