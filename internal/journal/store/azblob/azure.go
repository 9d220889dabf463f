// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package azblob

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	azcloud "github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/bucket"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
)

// azureSettings say as whom a container is reached. The first of these that is set counts:
//
//  1. the account's key: access_key
//  2. a SAS token: sas_token
//  3. the account's key, which an identity looks up, unless use_azuread_auth is true
//  4. an identity; see the method identity
//
// Each setting can be a variable, too: ARM_ACCESS_KEY, and so on.
type azureSettings struct {
	key, sas   string
	looksUpKey bool
	group      string // of the account

	cloud            azcloud.Configuration
	tenant           string
	subscription     string // of the account
	client, secret   string // of an application
	proof, proofFile string // a token of another system that proves who we are
	requestURL       string // where GitHub Actions gives such a token
	requestToken     string
	audience         string // of such a token
	oidc, aks        bool   // whether a token counts, and whether Kubernetes has set the variables for one
	msi, cli         bool   // whether the machine's identity counts, and the Azure CLI's
	sdk              bool   // whether what the Azure SDK finds will do
}

var errNoAzureCredentials = errors.New("the azurerm backend's settings and ARM_* variables lead to no credentials for the journal")

// read reads what the azurerm backend knows, and returns the end of the host names of accounts.
// Beside a state, the credentials are the backend's and no others.
func (a *azureSettings) read(s *settings.Settings, isBeside bool) (suffix string, _ error) {
	// arm reads a setting or the variable that is named after it.
	arm := func(name string, variables ...string) string {
		return strings.TrimSpace(s.Text(name, append([]string{"ARM_" + strings.ToUpper(name)}, variables...)...))
	}
	isOn := func(name string, byDefault bool) bool { return s.Bool(name, byDefault, "ARM_"+strings.ToUpper(name)) }
	*a = azureSettings{
		key: arm("access_key"), sas: strings.TrimPrefix(arm("sas_token"), "?"),
		tenant: arm("tenant_id"), subscription: arm("subscription_id"), client: arm("client_id"), secret: arm("client_secret"),
		proof: arm("oidc_token"), proofFile: arm("oidc_token_file_path"),
		requestURL:   arm("oidc_request_url", "ACTIONS_ID_TOKEN_REQUEST_URL"),
		requestToken: arm("oidc_request_token", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"),
		oidc:         isOn("use_oidc", false), aks: isOn("use_aks_workload_identity", false), msi: isOn("use_msi", false),
		cli: isOn("use_cli", isBeside), sdk: !isBeside,
	}
	s.Ignore("snapshot", "timeout_seconds")
	switch strings.ToLower(arm("environment")) {
	case "", "public", "global":
		a.cloud, a.audience, suffix = azcloud.AzurePublic, "api://AzureADTokenExchange", "core.windows.net"
	case "usgovernment", "usgovernmentl4", "usgovernmentl5", "dod":
		a.cloud, a.audience, suffix = azcloud.AzureGovernment, "api://AzureADTokenExchangeUSGov", "core.usgovcloudapi.net"
	case "china":
		a.cloud, a.audience, suffix = azcloud.AzureChina, "api://AzureADTokenExchangeChina", "core.chinacloudapi.cn"
	default:
		return "", settings.Unsupported("environment")
	}
	if isBeside {
		return suffix, a.readBackend(s)
	}
	return suffix, nil
}

// readBackend reads the settings that say how a state is kept. They do not matter to a URL.
func (a *azureSettings) readBackend(s *settings.Settings) error {
	s.Ignore("endpoint") // of an API that the CLIs no longer use
	isKeyless := a.key == "" && a.sas == ""
	// With resource_group_name, the backend asks Azure Resource Manager for the account's key. Without
	// it, nothing shows how the backend reached the state, so the identity itself is used.
	a.group = s.Text("resource_group_name")
	a.looksUpKey = !s.Bool("use_azuread_auth", false, "ARM_USE_AZUREAD") && isKeyless && a.group != ""
	refused := []string{
		"ARM_METADATA_HOSTNAME", "ARM_METADATA_HOST", "ARM_CUSTOMER_PROVIDED_KEY", "ARM_USE_DNS_ZONE_ENDPOINT",
		"ARM_ENCYRPTION_SCOPE", //nolint:misspell // so does OpenTofu
	}
	if isKeyless { // with a key, these are for another provider
		refused = append(refused,
			"ARM_CLIENT_CERTIFICATE", "ARM_CLIENT_CERTIFICATE_PATH", "ARM_CLIENT_ID_FILE_PATH", "ARM_CLIENT_SECRET_FILE_PATH")
	}
	return settings.Refuse(refused...)
}

// identity finds one in the order of the backend:
//
//  1. an application with client_secret
//  2. an application with a token: oidc_token, or its file, or what GitHub Actions gives (use_oidc),
//     or the file of Kubernetes (use_aks_workload_identity)
//  3. the machine's managed identity (use_msi)
//  4. who has logged in with the Azure CLI (use_cli)
//  5. for a URL only, what the Azure SDK finds
func (a *azureSettings) identity(options azcore.ClientOptions) (azcore.TokenCredential, error) {
	tenant, client, proofFile := a.tenant, a.client, a.proofFile
	if a.aks {
		tenant, client = cmp.Or(os.Getenv("AZURE_TENANT_ID"), tenant), cmp.Or(os.Getenv("AZURE_CLIENT_ID"), client)
	}
	hasRequest := a.oidc && a.requestURL != "" && a.requestToken != ""
	if a.proof == "" && (a.aks || !hasRequest) {
		proofFile = cmp.Or(proofFile, os.Getenv("AZURE_FEDERATED_TOKEN_FILE"))
	}
	isApp, hasProof := tenant != "" && client != "", (a.oidc || a.aks) && (a.proof != "" || proofFile != "")
	switch {
	case isApp && a.secret != "":
		return azidentity.NewClientSecretCredential(tenant, client, a.secret, &azidentity.ClientSecretCredentialOptions{ClientOptions: options})
	case isApp && (hasProof || hasRequest):
		prove := func(ctx context.Context) (string, error) {
			switch {
			case !hasProof:
				return a.requestProof(ctx, options.Transport)
			case a.proof != "":
				return a.proof, nil
			}
			return readProof(proofFile)
		}
		return azidentity.NewClientAssertionCredential(tenant, client, prove,
			&azidentity.ClientAssertionCredentialOptions{ClientOptions: options})
	case a.msi:
		identity := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: options}
		if client != "" {
			identity.ID = azidentity.ClientID(client)
		}
		return azidentity.NewManagedIdentityCredential(identity)
	case a.cli:
		account := &azidentity.AzureCLICredentialOptions{TenantID: tenant}
		if tenant == "" { // az accepts only one of them
			account.Subscription = a.subscription
		}
		found, err := azidentity.NewAzureCLICredential(account)
		if err != nil { // it may show the value
			return nil, settings.Unsupported("tenant_id or subscription_id")
		}
		return cliCredential{found}, nil
	case a.sdk:
		return azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{ClientOptions: options})
	}
	return nil, errNoAzureCredentials
}

// cliCredential is what a laptop has. Because it is tried last, its error says that nothing is set.
type cliCredential struct{ *azidentity.AzureCLICredential }

func (c cliCredential) GetToken(ctx context.Context, options policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, err := c.AzureCLICredential.GetToken(ctx, options)
	if err != nil {
		err = fmt.Errorf("%w; the last that was tried: %w", errNoAzureCredentials, err)
	}
	return token, err
}

// requestProof requests, from GitHub Actions, the token that proves which workflow this is.
func (a *azureSettings) requestProof(ctx context.Context, network policy.Transporter) (string, error) {
	at, err := url.Parse(a.requestURL)
	if err != nil || at.Scheme != "https" && !settings.IsLoopback(at.Hostname()) { // the token goes there
		return "", settings.Unsupported("oidc_request_url")
	}
	query := at.Query()
	if !query.Has("audience") {
		query.Set("audience", a.audience)
	}
	at.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return "", settings.Unsupported("oidc_request_url")
	}
	request.Header.Set("Authorization", "Bearer "+a.requestToken)
	request.Header.Set("Accept", "application/json")
	response, err := bucket.Exchange(network, request, store.MaxText)
	if err != nil {
		return "", err
	}
	var proof struct{ Value string }
	err = json.Unmarshal(response.Body, &proof)
	if err == nil && response.Status == http.StatusOK && proof.Value != "" {
		return proof.Value, nil
	}
	return "", fmt.Errorf("the service of the setting oidc_request_url responded with status %d, without a token", response.Status)
}

// readProof does not show the file's name.
func readProof(file string) (string, error) {
	content, err := os.ReadFile(file) //nolint:gosec // the setting names it
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return "", fmt.Errorf("cannot read the file of the setting oidc_token_file_path: %w", failed.Err)
	}
	return strings.TrimSpace(string(content)), err
}
