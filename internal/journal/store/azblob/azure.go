// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package azblob

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
)

// azureSettings say as whom a container is reached: with the account's key, else with a SAS token,
// else with the key that an identity may look up, else as that identity.
type azureSettings struct {
	key, sas   string
	looksUpKey bool
	group      string // of the account

	cloud                 azcloud.Configuration
	audience              string // of a token that proves who we are
	tenant, subscription  string
	client, secret, proof azureText
	requestURL            string // where GitHub gives a proof
	requestToken          string
	oidc, aks, msi, cli   bool
	others                bool // whether what the Azure SDK finds will do
}

// azureText is a setting whose text another setting may keep in a file.
type azureText struct{ name, text, file string }

var errNoAzureCredentials = errors.New("the azurerm backend's settings and ARM_* variables lead to no credentials for the journal")

// read reads what the azurerm backend knows, and returns the end of the host names of accounts.
func (a *azureSettings) read(s *settings.Settings, isBeside bool) (suffix string, _ error) {
	// arm reads a setting or the variable that is named after it.
	arm := func(name string, variables ...string) string {
		return strings.TrimSpace(s.Text(name, append([]string{"ARM_" + strings.ToUpper(name)}, variables...)...))
	}
	isOn := func(name string, usually bool) bool { return s.Is(name, usually, "ARM_"+strings.ToUpper(name)) }
	orFile := func(name string) azureText { return azureText{name, arm(name), arm(name + "_file_path")} }
	*a = azureSettings{
		key: arm("access_key"), sas: strings.TrimPrefix(arm("sas_token"), "?"),
		tenant: arm("tenant_id"), subscription: arm("subscription_id"),
		client: orFile("client_id"), secret: orFile("client_secret"), proof: orFile("oidc_token"),
		requestURL:   arm("oidc_request_url", "ACTIONS_ID_TOKEN_REQUEST_URL"),
		requestToken: arm("oidc_request_token", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"),
		oidc:         isOn("use_oidc", false), aks: isOn("use_aks_workload_identity", false), msi: isOn("use_msi", false),
		cli: isOn("use_cli", isBeside), others: !isBeside,
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
	a.group = s.Text("resource_group_name")
	// The backend looks up a key in the resource group. Without one, its settings do not show how it
	// reached the state, so the identity itself is tried.
	a.looksUpKey = !s.Is("use_azuread_auth", false, "ARM_USE_AZUREAD") && isKeyless && a.group != ""
	refused := []string{
		"ARM_METADATA_HOSTNAME", "ARM_METADATA_HOST", "ARM_CUSTOMER_PROVIDED_KEY", "ARM_USE_DNS_ZONE_ENDPOINT",
		"ARM_ENCYRPTION_SCOPE", //nolint:misspell // so does OpenTofu
	}
	if isKeyless { // with a key, a certificate is for another provider
		refused = append(refused, "ARM_CLIENT_CERTIFICATE", "ARM_CLIENT_CERTIFICATE_PATH")
	}
	return s.Refuse(refused...)
}

// credential finds an identity in the order of the backend.
func (a *azureSettings) credential(options azcore.ClientOptions) (azcore.TokenCredential, error) {
	client, clientErr := a.client.read()
	secret, secretErr := a.secret.read()
	if err := errors.Join(clientErr, secretErr); err != nil {
		return nil, err
	}
	tenant, proof := a.tenant, a.proof
	if a.aks {
		tenant, client = cmp.Or(os.Getenv("AZURE_TENANT_ID"), tenant), cmp.Or(os.Getenv("AZURE_CLIENT_ID"), client)
	}
	hasRequest := a.oidc && a.requestURL != "" && a.requestToken != ""
	if proof.text == "" && (a.aks || !hasRequest) {
		proof.file = cmp.Or(proof.file, os.Getenv("AZURE_FEDERATED_TOKEN_FILE"))
	}
	isApp, hasProof := tenant != "" && client != "", (a.oidc || a.aks) && (proof.text != "" || proof.file != "")
	switch {
	case isApp && secret != "":
		return azidentity.NewClientSecretCredential(tenant, client, secret, &azidentity.ClientSecretCredentialOptions{ClientOptions: options})
	case isApp && (hasProof || hasRequest):
		prove := func(context.Context) (string, error) { return proof.read() }
		if !hasProof {
			prove = func(ctx context.Context) (string, error) { return a.requestProof(ctx, options.Transport) }
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
	case a.others:
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
	response, err := network.Do(request)
	if err != nil {
		return "", azureError(err)
	}
	defer func() { _ = response.Body.Close() }()
	var proof struct{ Value string }
	err = json.NewDecoder(io.LimitReader(response.Body, store.MaxText)).Decode(&proof)
	if err == nil && response.StatusCode == http.StatusOK && proof.Value != "" {
		return proof.Value, nil
	}
	return "", fmt.Errorf("the service of the setting oidc_request_url responded with status %d, without a token", response.StatusCode)
}

// read does not show the file. The backend has already refused a text that differs from it.
func (t azureText) read() (string, error) {
	if t.text != "" || t.file == "" {
		return t.text, nil
	}
	content, err := os.ReadFile(t.file)
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return "", fmt.Errorf("cannot read the file of the setting %s_file_path: %w", t.name, failed.Err)
	}
	return strings.TrimSpace(string(content)), err
}
