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
		Backend: "azurerm", Beside: beside, Scheme: "azblob", Example: "azblob://account/container/prefix", Named: named,
		Locating: map[string]string{"storage_account_name": "", "container_name": "", "key": ""},
	}
}

// beside is where the azurerm backend keeps a state.
func beside(s *settings.Settings) (bucket.Cloud, string, error) {
	account, accountErr := s.Required("storage_account_name")
	name, nameErr := s.Required("container_name")
	key, keyErr := s.Required("key")
	if err := errors.Join(accountErr, nameErr, keyErr); err != nil {
		return nil, "", err
	}
	c, err := newCloud(account, name, "", true, s)
	return c, key + "." + settings.JournalName, err
}

// named is where a URL leads.
func named(host, path string, s *settings.Settings) (bucket.Cloud, string, error) {
	container, prefix, _ := strings.Cut(path, "/")
	endpoint := s.Text("endpoint")
	c, err := newCloud(host, container, endpoint, false, s)
	return c, prefix, errors.Join(err, settings.CheckEmulator(endpoint))
}

// newCloud checks the names, because they become parts of a URL that tokens are sent to. Beside a
// state, the credentials are the backend's and no others.
func newCloud(account, name, endpoint string, isBeside bool, s *settings.Settings) (*cloud, error) {
	c := &cloud{account: account, name: name}
	suffix, err := c.azure.read(s, isBeside)
	if err != nil {
		return nil, err
	}
	if !azureAccounts.MatchString(account) || !azureContainers.MatchString(name) || len(name) < 3 || len(name) > 63 {
		return nil, ErrNames
	}
	c.endpoint = strings.TrimSuffix(cmp.Or(endpoint, "https://"+account+".blob."+suffix), "/")
	return c, settings.CheckEndpoint(c.endpoint)
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

// Never has the form of Azure's ETags, which count the time, and is earlier than any journal.
func (c *cloud) Never() store.Version { return `"0x8D0000000000000"` }

func (c *cloud) Connect(ctx context.Context, network http.RoundTripper) (bucket.Objects, error) {
	options := azcore.ClientOptions{
		Cloud: c.azure.cloud, Transport: &http.Client{Transport: network, CheckRedirect: bucket.NoRedirect},
		Telemetry: policy.TelemetryOptions{Disabled: true},
	}
	key := c.azure.key
	var identity azcore.TokenCredential
	if key == "" && c.azure.sas == "" {
		var err error
		if identity, err = c.azure.credential(options); err != nil {
			return nil, err
		}
	}
	if c.azure.looksUpKey {
		var err error
		if key, err = c.lookUpKey(ctx, identity, options); err != nil {
			return nil, c.lookUpError(err)
		}
	}
	at, ofContainer := c.endpoint+"/"+c.name, &container.ClientOptions{ClientOptions: options}
	if key != "" {
		shared, err := container.NewSharedKeyCredential(c.account, key)
		if err != nil {
			return nil, settings.Unsupported("access_key")
		}
		client, err := container.NewClientWithSharedKeyCredential(at, shared, ofContainer)
		return &objects{c, client, true}, err
	}
	if c.azure.sas != "" {
		client, err := container.NewClientWithNoCredential(at+"?"+c.azure.sas, ofContainer)
		return &objects{c, client, false}, azureError(err)
	}
	client, err := container.NewClient(at, identity, ofContainer)
	return &objects{c, client, false}, err
}

type objects struct {
	*cloud

	container *container.Client
	isKey     bool // which has every right
}

func (o *objects) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var seen bucket.Tokens
		for pages := o.container.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix}); pages.More(); {
			page, err := pages.NextPage(ctx)
			if err == nil && page.Segment == nil {
				err = errors.New("the response is not a listing") // a proxy's perhaps; not an empty journal
			}
			if err == nil {
				err = seen.Add(deref(page.NextMarker))
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

func (o *objects) IsDenied(err error) bool {
	response, ok := errors.AsType[azureResponse](err)
	return ok && !o.isKey && response.StatusCode == http.StatusForbidden && bloberror.HasCode(err, bloberror.AuthorizationFailure,
		bloberror.AuthorizationPermissionMismatch, bloberror.AuthorizationResourceTypeMismatch, bloberror.InsufficientAccountPermissions)
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
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}

// azureResponse says in a line what the SDK's error says in many.
type azureResponse struct{ *azcore.ResponseError }

func (r azureResponse) Unwrap() error { return r.ResponseError }

func (r azureResponse) Error() string {
	text := strings.TrimSpace(fmt.Sprintf("the service responded with status %d %s", r.StatusCode, r.ErrorCode))
	if r.ErrorCode == "KeyBasedAuthenticationNotPermitted" {
		text += fmt.Sprintf(": the storage account permits no keys, so set use_azuread_auth (ARM_USE_AZUREAD) to true "+
			"and grant the role %q", contributor)
	}
	return text
}
