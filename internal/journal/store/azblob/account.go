// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package azblob

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	armruntime "github.com/Azure/azure-sdk-for-go/sdk/azcore/arm/runtime"
	azcloud "github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// lookUpKey asks Azure Resource Manager for the account's key.
func (c *cloud) lookUpKey(ctx context.Context, identity azcore.TokenCredential, options azcore.ClientOptions) (key string, err error) {
	subscription := c.azure.subscription
	if _, isCLI := identity.(cliCredential); subscription == "" && isCLI {
		if subscription, err = cliSubscription(ctx); err != nil {
			return "", err
		}
	}
	if subscription == "" {
		return "", errors.New("no subscription_id or ARM_SUBSCRIPTION_ID is set")
	}
	pipeline, err := armruntime.NewPipeline("", "", identity, runtime.PipelineOptions{},
		&arm.ClientOptions{ClientOptions: options, DisableRPRegistration: true})
	if err != nil {
		return "", err
	}
	at := fmt.Sprintf("%s/subscriptions/%s/resourceGroups/%s/providers/Microsoft.Storage/storageAccounts/%s/listKeys?api-version=2023-01-01",
		c.azure.cloud.Services[azcloud.ResourceManager].Endpoint, url.PathEscape(subscription), url.PathEscape(c.azure.group), c.account)
	request, err := runtime.NewRequest(ctx, http.MethodPost, at)
	if err != nil {
		return "", errors.New("subscription_id or resource_group_name cannot be a part of a URL") // the error may show them
	}
	response, err := pipeline.Do(request)
	if err != nil {
		return "", azureError(err)
	}
	defer func() { _ = response.Body.Close() }()
	if !runtime.HasStatusCode(response, http.StatusOK) {
		return "", azureError(runtime.NewResponseError(response))
	}
	var found struct {
		Keys []struct{ Permissions, Value string }
	}
	if err := runtime.UnmarshalAsJSON(response, &found); err != nil {
		return "", err
	}
	for _, key := range found.Keys {
		if strings.EqualFold(key.Permissions, "full") && key.Value != "" {
			return key.Value, nil
		}
	}
	return "", errors.New("the response has no key that permits everything")
}

// cliSubscription is what the Azure CLI uses by default.
func cliSubscription(ctx context.Context) (string, error) {
	command := exec.CommandContext(ctx, "az", "account", "show", "--query", "id", "--output", "tsv")
	command.WaitDelay = time.Second // az can leave a process behind
	id, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%w; the last that was tried, az account show: %w", errNoAzureCredentials, err)
	}
	return strings.TrimSpace(string(id)), nil
}
