// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package azblob keeps texts in a container of Azure Blob Storage.
package azblob

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/bucket"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
)

// cloud is a container of Azure Blob Storage, reached as the azurerm backend does.
type cloud struct {
	account, name string
	endpoint      string // of the account
	azure         azureSettings
}

var (
	azureAccounts   = regexp.MustCompile(`^[a-z0-9]{3,24}$`)
	azureContainers = regexp.MustCompile(`^[a-z0-9](?:-?[a-z0-9])+$`)

	// ErrNames reports a name that no account or container of Azure can have.
	ErrNames = errors.New("the journal's storage account must have 3 to 24 lowercase letters and digits as its name, " +
		"and the container 3 to 63, and single hyphens between them")
)

// Kind is Azure Blob Storage.
func Kind() bucket.Kind {
	return bucket.Kind{
		Backend: "azurerm", Beside: besideState, Scheme: "azblob", Example: "azblob://account/container/prefix", AtURL: atURL,
		Parameters:    []string{"endpoint"},
		StateSettings: map[string]string{"storage_account_name": "", "container_name": "", "key": ""},
	}
}

// besideState is where the azurerm backend keeps a state.
func besideState(s *settings.Settings) (bucket.Cloud, string, error) {
	account, accountErr := s.Required("storage_account_name")
	name, nameErr := s.Required("container_name")
	key, keyErr := s.Required("key")
	if err := errors.Join(accountErr, nameErr, keyErr); err != nil {
		return nil, "", err
	}
	c := &cloud{account: account, name: name}
	err := c.read(s, true)
	return c, key + "." + settings.JournalName, err
}

// atURL is where a URL leads.
func atURL(host, path string, s *settings.Settings) (bucket.Cloud, string, error) {
	container, prefix, _ := strings.Cut(path, "/")
	c := &cloud{account: host, name: container}
	err := c.read(s, false)
	endpoint := s.Text("endpoint")
	c.endpoint = strings.TrimSuffix(cmp.Or(endpoint, c.endpoint), "/")
	return c, prefix, errors.Join(err, checkEmulator(endpoint))
}

// ErrEmulator reports an endpoint that would get a token, which its receiver could use elsewhere.
var ErrEmulator = errors.New("the endpoint of an azblob URL must be a loopback address: a token for Azure goes to Azure alone")

// checkEmulator checks the endpoint of a journal's URL, which any configuration can set. It must be
// this machine, because whoever gets a token of the cloud can use it.
func checkEmulator(text string) error {
	if endpoint, err := url.Parse(text); text != "" && (err != nil || !settings.IsLoopback(endpoint.Hostname())) {
		return ErrEmulator
	}
	return settings.CheckEndpoint(text, false)
}

// read checks the names, too, because they become parts of a URL that tokens are sent to.
func (c *cloud) read(s *settings.Settings, isBeside bool) error {
	suffix, err := c.azure.read(s, isBeside)
	c.endpoint = "https://" + c.account + ".blob." + suffix
	if !azureAccounts.MatchString(c.account) || !azureContainers.MatchString(c.name) || len(c.name) < 3 || len(c.name) > 63 {
		err = errors.Join(err, ErrNames)
	}
	return err
}

func (c *cloud) String() string { return "azblob://" + c.account + "/" + c.name }

func (c *cloud) Grant(op, _ string) string {
	if c.azure.sas != "" {
		return fmt.Sprintf("the permission to %s blobs in the SAS token", op)
	}
	role := fmt.Sprintf("the role %q", contributor)
	if op == "list" || op == "read" {
		role += ` (or, to plan only, "Storage Blob Data Reader")`
	}
	return fmt.Sprintf("%s on the container %s of the storage account %s, which ARM_ACCESS_KEY does not need", role, c.name, c.account)
}

func (c *cloud) Connect(ctx context.Context, network http.RoundTripper) (bucket.Objects, error) {
	options := azcore.ClientOptions{
		Cloud: c.azure.cloud, Transport: bucket.Client(network), Telemetry: policy.TelemetryOptions{Disabled: true},
	}
	at, ofContainer := c.endpoint+"/"+c.name, &container.ClientOptions{ClientOptions: options}
	if c.azure.key == "" && c.azure.sas != "" {
		client, err := container.NewClientWithNoCredential(at+"?"+c.azure.sas, ofContainer)
		return &objects{client}, azureError(err)
	}
	key := c.azure.key
	if key == "" {
		identity, err := c.azure.identity(options)
		if err != nil {
			return nil, err
		}
		if !c.azure.looksUpKey {
			client, err := container.NewClient(at, identity, ofContainer)
			return &objects{client}, azureError(err)
		}
		if key, err = c.lookUpKey(ctx, identity, options); err != nil {
			return nil, fmt.Errorf("cannot look up the key of the storage account %s (with listKeys), as the azurerm backend does: %w; "+
				"to avoid that, set use_azuread_auth (ARM_USE_AZUREAD) to true and grant the role %q on the container %s, or set ARM_ACCESS_KEY",
				c.account, err, contributor, c.name)
		}
	}
	shared, err := container.NewSharedKeyCredential(c.account, key)
	if err != nil {
		return nil, settings.Unsupported("access_key")
	}
	client, err := container.NewClientWithSharedKeyCredential(at, shared, ofContainer)
	return &objects{client}, azureError(err)
}

type objects struct{ container *container.Client }

func (o *objects) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for pages := o.container.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix}); pages.More(); {
			page, err := pages.NextPage(ctx)
			if err == nil && page.Segment == nil {
				err = errors.New("the response is not a listing") // a proxy's perhaps; not an empty journal
			}
			if err != nil {
				yield("", azureError(err))
				return
			}
			for _, item := range page.Segment.BlobItems {
				if !yield(deref(item.Name), nil) {
					return
				}
			}
		}
	}
}

func (o *objects) Get(ctx context.Context, key string) (io.ReadCloser, store.Version, error) {
	response, err := o.container.NewBlobClient(key).DownloadStream(ctx, nil)
	if err != nil {
		return nil, "", azureError(err)
	}
	return response.Body, bucket.Quoted(string(deref(response.ETag))), nil
}

func (o *objects) Put(ctx context.Context, key string, body []byte, ifVersion store.Version) (store.Version, error) {
	conditions := &blob.ModifiedAccessConditions{IfNoneMatch: new(azcore.ETagAny)}
	if ifVersion != "" {
		conditions = &blob.ModifiedAccessConditions{IfMatch: new(azcore.ETag(ifVersion))}
	}
	response, err := o.container.NewBlockBlobClient(key).Upload(ctx, streaming.NopCloser(bytes.NewReader(body)), &blockblob.UploadOptions{
		HTTPHeaders:      &blob.HTTPHeaders{BlobContentType: new("application/json")},
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: conditions},
	})
	if err != nil {
		return "", azureError(err)
	}
	return bucket.Quoted(string(deref(response.ETag))), nil
}

// deref returns what the SDK has read, or nothing.
func deref[T any](value *T) (zero T) {
	if value == nil {
		return zero
	}
	return *value
}

// azureError believes only the store's code: a proxy's 404 has none. A URL may have a SAS token.
func azureError(err error) error {
	switch {
	case bloberror.HasCode(err, bloberror.BlobNotFound):
		return bucket.ErrNoObject
	case bloberror.HasCode(err, bloberror.BlobAlreadyExists, bloberror.ConditionNotMet):
		return store.ErrConflict
	}
	if response, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return azureResponse{response}
	}
	return bucket.WithoutURL(err)
}

// azureResponse says in a line what the SDK's error says in many.
type azureResponse struct{ *azcore.ResponseError }

func (r azureResponse) Is(target error) bool {
	return target == store.ErrDenied && r.StatusCode == http.StatusForbidden && bloberror.HasCode(r.ResponseError,
		bloberror.AuthorizationPermissionMismatch, bloberror.AuthorizationResourceTypeMismatch, bloberror.InsufficientAccountPermissions)
}

func (r azureResponse) Error() string {
	text := strings.TrimSpace(fmt.Sprintf("the service responded with status %d %s", r.StatusCode, r.ErrorCode))
	switch bloberror.Code(r.ErrorCode) {
	case bloberror.AuthorizationFailure:
		text += ": the network rules of the storage account may not allow it"
	case "KeyBasedAuthenticationNotPermitted":
		text += fmt.Sprintf(": the storage account permits no keys, so set use_azuread_auth (ARM_USE_AZUREAD) to true "+
			"and grant the role %q", contributor)
	}
	return text
}

const contributor = "Storage Blob Data Contributor"
