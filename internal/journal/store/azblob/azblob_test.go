// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package azblob

import (
	stdcmp "cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/bucket"
	"github.com/agentjobs/terraform-provider-agent/internal/test/storetest"
)

// fakeBlobs records what is requested of Azure, and responds as if all went well. It plays Entra ID and CI systems, too, at all hosts, so
// that tests see where requests would go.
type fakeBlobs struct {
	requests []string              // all, as whom, and with which condition
	blobs    func() *http.Response // what the container responds; may be nil
	account  string                // what Azure Resource Manager says about it
	status   int                   // with which; 0: 200
}

func (f *fakeBlobs) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	response, request := f.login(r, string(body))
	if response == nil {
		response, request = f.serve(r, string(body))
	}
	if request != "" {
		f.requests = append(f.requests, strings.TrimSpace(request))
	}
	return response, nil
}

// serve plays the container.
func (f *fakeBlobs) serve(r *http.Request, body string) (_ *http.Response, request string) {
	auth, _, _ := strings.Cut(r.Header.Get("Authorization"), ":") // without the signature
	query := r.URL.Query()
	request = fmt.Sprintf("%s %s://%s%s %s%s %s%s %s", r.Method, r.URL.Scheme, r.URL.Host, r.URL.Path, auth, query.Get("sig"),
		r.Header.Get("If-None-Match"), r.Header.Get("If-Match"), body)
	switch {
	case f.blobs != nil:
		return f.blobs(), request
	case query.Get("comp") == "list":
		page := `<Blob><Name>a/scope/first.record</Name></Blob></Blobs><NextMarker>2</NextMarker>`
		if query.Get("marker") == "2" {
			page = `<Blob><Name>a/scope/foreign</Name></Blob><Blob><Name>a/scope/second.record</Name></Blob></Blobs><NextMarker/>`
		}
		return storetest.Response(200, `<EnumerationResults ContainerName="ci-state"><Blobs>`+page+`</EnumerationResults>`), request
	case r.Method == http.MethodPut:
		return storetest.Response(201, "", "ETag", `"0x2"`), request
	}
	return storetest.Response(200, "text", "ETag", "0x1"), request // without quotes
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
		s := openBlobs(t, &fakeBlobs{blobs: func() *http.Response {
			return storetest.Response(test.status, "", "X-Ms-Error-Code", test.code)
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

// login plays Entra ID, managed identities, and the CI systems' services for tokens. Without a response, the request is none for them.
func (f *fakeBlobs) login(r *http.Request, body string) (_ *http.Response, request string) {
	const token = `{"token_type": "Bearer", "access_token": %q, "expires_in": %s, "resource": "https://storage.azure.com"}`
	at, asked := "https://"+r.URL.Host+r.URL.Path, r.Method+" "+r.URL.String()+" "+r.Header.Get("Authorization")
	switch {
	case r.URL.Path == "/common/discovery/instance":
		return storetest.Response(200, "{}"), ""
	case strings.HasSuffix(r.URL.Path, "/openid-configuration"):
		tenant := "https://" + r.URL.Host + "/" + strings.Split(r.URL.Path, "/")[1]
		const known = `{"issuer": "%[1]s", "authorization_endpoint": "%[1]s/authorize", "token_endpoint": "%[1]s/token"}`
		return storetest.Response(200, fmt.Sprintf(known, tenant)), ""
	case strings.HasSuffix(r.URL.Path, "/token") && r.Method == http.MethodPost:
		form, _ := url.ParseQuery(body)
		scope, text := "", "token"
		if first, _, _ := strings.Cut(form.Get("scope"), " "); !strings.Contains(first, "://storage.azure.com/") {
			scope, text = " for "+first, "management"
		}
		return storetest.Response(200, fmt.Sprintf(token, text, "3600")),
			at + " " + form.Get("client_id") + " " + form.Get("client_secret") + form.Get("client_assertion") + scope
	case r.URL.Host == "169.254.169.254": // a token that lasts shorter than MSAL keeps it in a cache, which all tests share
		return storetest.Response(200, fmt.Sprintf(token, "token", `"60"`)), "managed identity " + r.URL.Query().Get("client_id")
	case r.URL.Host == "ci.example":
		return storetest.Response(200, `{"value": "proof"}`), asked
	case strings.HasPrefix(r.URL.Host, "management."):
		return storetest.Response(stdcmp.Or(f.status, 200), f.account), asked
	}
	return nil, ""
}

// setAzure sets variables, and removes what this machine's environment says about Azure.
func setAzure(t *testing.T, variables map[string]string) {
	t.Helper()
	storetest.SetEnv(t, variables, "ARM_", "AZURE", "ACTIONS_", "SYSTEM_", "IDENTITY_", "IMDS_", "MSI_")
}

type set = map[string]any

// The requests show what each setting, each variable and their order lead to.
func TestAzure_credentials(t *testing.T) {
	const (
		blobs = "GET https://devstate.blob.core.windows.net/ci-state "
		login = "https://login.microsoftonline.com/tenant/token "

		manage   = "https://management.azure.com/subscriptions"
		path     = "/providers/Microsoft.Storage/storageAccounts/devstate"
		listKeys = path + "/listKeys?api-version=2023-01-01"
		account  = `{"keys": [{"permissions": "READ", "value": "b3RoZXI="}, {"permissions": "FULL", "value": "a2V5"}]}`
	)
	app := func(more set) set {
		all := set{"tenant_id": "tenant", "client_id": "client"}
		maps.Copy(all, more)
		return all
	}
	az := t.TempDir()
	script := "#!/bin/sh\nif [ $2 = show ]; then echo cli; exit; fi\necho '{\"accessToken\": \"'\"$*\"'\", \"expires_on\": 4000000000}'\n"
	if err := os.WriteFile(filepath.Join(az, "az"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	ofCLI := blobs + "Bearer account get-access-token -o json --resource https"
	for what, test := range map[string]struct {
		settings set               // of the backend; nil: a URL
		env      map[string]string // beside them
		want     []string
	}{
		"key": {app(set{"access_key": "a2V5", "sas_token": "sig=sas", "client_secret": "secret"}),
			map[string]string{"ARM_CLIENT_CERTIFICATE": "a"}, []string{blobs + "SharedKey devstate"}},
		"SAS": {app(set{"sas_token": "?sig=sas", "client_secret": "secret"}), nil, []string{blobs + "sas"}},
		"irrelevant": {set{"sas_token": "sig=sas", "resource_group_name": "a", "snapshot": true, "timeout_seconds": 3.0, "use_azuread_auth": true,
			"subscription_id": "a", "lookup_blob_endpoint": false, "endpoint": "a", "metadata_host": nil}, nil, []string{blobs + "sas"}},
		"secret": {app(set{"client_secret": "secret", "use_msi": true}), nil, []string{login + "client secret", blobs + "Bearer token"}},
		"secret, key": {
			app(set{"client_secret": "secret", "resource_group_name": "a (b)", "subscription_id": "c/d"}), nil, []string{
				login + "client secret for https", "POST " + manage + "/c%2Fd/resourceGroups/a%20%28b%29" + listKeys + " Bearer management",
				blobs + "SharedKey devstate",
			},
		},
		"secret, key, China": {
			app(set{"client_secret": "secret", "resource_group_name": "a", "environment": "china"}),
			map[string]string{"ARM_SUBSCRIPTION_ID": "b"}, []string{
				"https://login.chinacloudapi.cn/tenant/token client secret for https://management.core.chinacloudapi.cn//.default",
				"POST https://management.chinacloudapi.cn/subscriptions/b/resourceGroups/a" + listKeys + " Bearer management",
				"GET https://devstate.blob.core.chinacloudapi.cn/ci-state SharedKey devstate",
			},
		},
		"secret, no key": {app(set{"client_secret": "secret", "resource_group_name": "a", "use_azuread_auth": true}), nil,
			[]string{login + "client secret", blobs + "Bearer token"}},
		"secret, no key, variable": {app(set{"client_secret": "secret", "resource_group_name": "a"}), map[string]string{"ARM_USE_AZUREAD": "true"},
			[]string{login + "client secret", blobs + "Bearer token"}},
		"OIDC": {app(set{"use_oidc": true, "oidc_token": "proof", "oidc_request_url": "https://ci.example", "oidc_request_token": "a"}), nil,
			[]string{login + "client proof", blobs + "Bearer token"}},
		"OIDC of a file": {app(set{"use_oidc": true, "oidc_token_file_path": storetest.File(t, "token", "proof\n")}), nil,
			[]string{login + "client proof", blobs + "Bearer token"}},
		"OIDC, AKS's file": {app(set{"use_oidc": true}), map[string]string{"AZURE_FEDERATED_TOKEN_FILE": storetest.File(t, "token", "proof")},
			[]string{login + "client proof", blobs + "Bearer token"}},
		"GitHub": {app(set{"use_oidc": true}), map[string]string{
			"ACTIONS_ID_TOKEN_REQUEST_URL": "https://ci.example/a?b=c", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "ci",
		}, []string{
			"GET https://ci.example/a?audience=api%3A%2F%2FAzureADTokenExchange&b=c Bearer ci", login + "client proof", blobs + "Bearer token",
		}},
		"AKS": {app(set{"use_aks_workload_identity": true, "tenant_id": "other", "client_id": "other"}), map[string]string{
			"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "client", "AZURE_FEDERATED_TOKEN_FILE": storetest.File(t, "token", "proof"),
		}, []string{login + "client proof", blobs + "Bearer token"}},
		"managed identity": {set{"use_msi": true}, nil, []string{"managed identity", blobs + "Bearer token"}},
		"managed identity by name": {set{"use_msi": true, "client_id": "client"}, nil,
			[]string{"managed identity client", blobs + "Bearer token"}},
		"Azure CLI": {set{}, map[string]string{"PATH": az}, []string{ofCLI}},
		"Azure CLI, key": {set{"resource_group_name": "a"}, map[string]string{"PATH": az + ":/bin:/usr/bin"}, []string{
			"POST " + manage + "/cli/resourceGroups/a" + listKeys + " Bearer account get-access-token -o json --resource https",
			blobs + "SharedKey devstate",
		}},
		"government": {app(set{"client_secret": "secret", "environment": "usgovernment"}), nil, []string{
			"https://login.microsoftonline.us/tenant/token client secret", "GET https://devstate.blob.core.usgovcloudapi.net/ci-state Bearer token",
		}},
		"URL": {nil, map[string]string{"ARM_SAS_TOKEN": "sig=sas", "ARM_USE_DNS_ZONE_ENDPOINT": "true", "ARM_METADATA_HOST": "a",
			"ARM_CUSTOMER_PROVIDED_KEY": "a", "ARM_MSI_ENDPOINT": "a"}, []string{blobs + "sas"}},
		"URL, Azure SDK": {nil, map[string]string{"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "client", "AZURE_CLIENT_SECRET": "secret"},
			[]string{login + "client secret", blobs + "Bearer token"}},
	} {
		t.Run(what, func(t *testing.T) {
			if test.env["PATH"] != "" && runtime.GOOS == "windows" {
				t.Skip("az is a shell script")
			}
			setAzure(t, test.env)
			c, prefix, err := storetest.AtURL(Kind(), "devstate", "ci-state", nil)
			if test.settings != nil {
				c, prefix, err = fromBackend(test.settings)
			}
			if err != nil || test.settings != nil && prefix != "prod.tfstate.agent-journal/" {
				t.Fatal(c, prefix, err)
			}
			f := &fakeBlobs{account: account, blobs: func() *http.Response {
				return storetest.Response(200, "<EnumerationResults><Blobs/></EnumerationResults>")
			}}
			if _, err := bucket.New(c, prefix, "scope", f).List(t.Context()); err != nil {
				t.Fatal(err)
			}
			for i, request := range f.requests {
				f.requests[i], _, _ = strings.Cut(request, "://storage.azure.com")
				f.requests[i], _, _ = strings.Cut(f.requests[i], "://management.core.windows.net")
			}
			if diff := cmp.Diff(test.want, f.requests); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func fromBackend(values ...set) (bucket.Cloud, string, error) {
	state := set{"storage_account_name": "devstate", "container_name": "ci-state", "key": "prod.tfstate"}
	return storetest.Beside(Kind(), append([]set{state}, values...)...)
}

// An error names the setting or the variable, or what was tried in vain and both ways out, and shows no value. Nothing is requested of
// the container.
func TestAzure_refused(t *testing.T) {
	const canary = "canary"
	const looksUp = "cannot look up the key of the storage account devstate (with listKeys), as the azurerm backend does: "
	const waysOut = `; to avoid that, set use_azuread_auth (ARM_USE_AZUREAD) to true and grant the role "` + contributor +
		`" on the container ci-state, or set ARM_ACCESS_KEY`
	ofGroup := set{"client_secret": canary, "subscription_id": canary, "resource_group_name": canary}
	app := set{"tenant_id": "tenant", "client_id": "client"}
	type row struct {
		names    string // what the error must name
		settings set
		env      map[string]string
		account  string // what is responded to a look-up of its key
		status   int
	}
	var rows []row
	for _, name := range []string{
		"client_id_file_path", "client_certificate", "client_certificate_path", "ado_pipeline_service_connection_id", "msi_endpoint", "environment",
		"metadata_host", "encryption_scope", "customer_provided_key",
	} {
		rows = append(rows, row{names: name, settings: set{name: canary}})
	}
	for _, name := range []string{
		"ARM_CLIENT_CERTIFICATE", "ARM_CUSTOMER_PROVIDED_KEY", "ARM_METADATA_HOSTNAME", "ARM_METADATA_HOST", "ARM_CLIENT_SECRET_FILE_PATH",
	} {
		rows = append(rows, row{names: name, env: map[string]string{name: canary}})
	}
	for _, test := range append(rows, []row{
		{names: "ARM_USE_DNS_ZONE_ENDPOINT", env: map[string]string{"ARM_USE_DNS_ZONE_ENDPOINT": "true"}},
		{names: "storage account", settings: set{"storage_account_name": "canary.example.com/"}},
		{names: "container", settings: set{"container_name": "canary--a"}},
		{names: "container", settings: set{"container_name": strings.Repeat("canary-", 9) + canary}},
		{names: "no credentials", settings: set{"use_cli": false}},
		{names: "access_key", settings: set{"access_key": canary + "%"}},
		{names: "lookup_blob_endpoint", settings: set{"lookup_blob_endpoint": true}},
		{names: "oidc_token_file_path", settings: set{"use_oidc": true, "oidc_token_file_path": "/" + canary}},
		{
			names:    "cannot use the setting oidc_request_url",
			settings: set{"use_oidc": true, "oidc_request_url": "http://canary.example", "oidc_request_token": canary},
		},
		{names: "no subscription_id", settings: set{"resource_group_name": canary, "client_secret": canary}},
		{names: "subscription_id", settings: set{"tenant_id": "", "subscription_id": canary + "$"}},
		{names: "URL", settings: set{"sas_token": canary + "\n="}},
		{
			names:    looksUp + "the service responded with status 403 AuthorizationFailed" + waysOut,
			settings: ofGroup, status: http.StatusForbidden, account: `{"error": {"code": "AuthorizationFailed", "message": "canary"}}`,
		},
		{names: "invalid character '<'", settings: ofGroup, account: "<canary>"},
		{names: "no key that permits everything", settings: ofGroup, account: `{"keys": [{"permissions": "Read", "value": "canary"}]}`},
	}...) {
		t.Run(test.names, func(t *testing.T) {
			setAzure(t, test.env)
			c, prefix, err := fromBackend(app, test.settings)
			f := &fakeBlobs{account: test.account, status: test.status}
			if err == nil {
				_, err = bucket.New(c, prefix, "scope", f).List(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), test.names) || strings.Contains(err.Error(), canary) {
				t.Error(err)
			}
			if text := strings.Join(f.requests, "\n"); strings.Contains(text, "ci-state") {
				t.Error(text)
			}
		})
	}
}
