// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package store

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
)

// azureContainer is a container of Azure Blob Storage, reached as the azurerm backend does.
type azureContainer struct {
	account, name string
	endpoint      string // of the account
	azure         azureSettings
}

var (
	azureAccounts   = regexp.MustCompile(`^[a-z0-9]{3,24}$`)
	azureContainers = regexp.MustCompile(`^[a-z0-9](?:-?[a-z0-9])+$`)

	errAzureNames = errors.New("the journal's storage account must have 3 to 24 lowercase letters and digits as its name, " +
		"and the container 3 to 63, and single hyphens between them")
)

// newAzureContainer checks the names, because they become parts of a URL that tokens are sent to. Beside a state, the
// credentials are the backend's and no others.
func newAzureContainer(account, name, endpoint string, isBeside bool, s *settings) (*azureContainer, error) {
	c := &azureContainer{account: account, name: name}
	suffix, err := c.azure.read(s, isBeside)
	if err != nil {
		return nil, err
	}
	if !azureAccounts.MatchString(account) || !azureContainers.MatchString(name) || len(name) < 3 || len(name) > 63 {
		return nil, errAzureNames
	}
	if endpoint == "" && s.is("lookup_blob_endpoint", false, "ARM_USE_DNS_ZONE_ENDPOINT") {
		return nil, unsupported("lookup_blob_endpoint")
	}
	c.endpoint = strings.TrimSuffix(cmp.Or(endpoint, "https://"+account+".blob."+suffix), "/")
	return c, checkEndpoint(c.endpoint)
}

func (c *azureContainer) String() string { return "azblob://" + c.account + "/" + c.name }

func (c *azureContainer) grant(op, _ string) string {
	if c.azure.sas != "" {
		return fmt.Sprintf("the permission to %s blobs in the SAS token", op)
	}
	role := `the role "Storage Blob Data Contributor"`
	if op == "list" || op == "read" {
		role += ` (or, to plan only, "Storage Blob Data Reader")`
	}
	return fmt.Sprintf("%s on the container %s of the storage account %s", role, c.name, c.account)
}

// never has the form of Azure's, which count the time: it is one before the first journal.
func (c *azureContainer) never() Version { return `"0x8D0000000000000"` }

func (c *azureContainer) connect(_ context.Context, network http.RoundTripper) (objects, error) {
	options := azcore.ClientOptions{
		Cloud: c.azure.cloud, Transport: &http.Client{Transport: network, CheckRedirect: noRedirect},
		Telemetry: policy.TelemetryOptions{Disabled: true},
	}
	at, ofContainer := c.endpoint+"/"+c.name, &container.ClientOptions{ClientOptions: options}
	if c.azure.key != "" {
		key, err := container.NewSharedKeyCredential(c.account, c.azure.key)
		if err != nil {
			return nil, unsupported("access_key")
		}
		client, err := container.NewClientWithSharedKeyCredential(at, key, ofContainer)
		return &azureBlobs{client, true}, err
	}
	if c.azure.sas != "" {
		client, err := container.NewClientWithNoCredential(at+"?"+c.azure.sas, ofContainer)
		return &azureBlobs{client, false}, azureError(err)
	}
	token, err := c.azure.credential(options)
	if err != nil {
		return nil, err
	}
	client, err := container.NewClient(at, token, ofContainer)
	return &azureBlobs{client, false}, err
}

type azureBlobs struct {
	container *container.Client
	isKey     bool // which has every right
}

func (o *azureBlobs) list(ctx context.Context, prefix string) iter.Seq2[object, error] {
	return func(yield func(object, error) bool) {
		for pages := o.container.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix}); pages.More(); {
			page, err := pages.NextPage(ctx)
			if err == nil && page.Segment == nil {
				err = errors.New("the response is not a listing") // a proxy's perhaps; not an empty journal
			}
			if err != nil {
				yield(object{}, azureError(err))
				return
			}
			for _, item := range page.Segment.BlobItems {
				if item.Name == nil || item.Properties == nil {
					continue
				}
				listed := Listed{quoted(string(deref(item.Properties.ETag))), deref(item.Properties.LastModified)}
				if !yield(object{*item.Name, listed}, nil) {
					return
				}
			}
		}
	}
}

func (o *azureBlobs) get(ctx context.Context, key string) (io.ReadCloser, Version, error) {
	response, err := o.container.NewBlobClient(key).DownloadStream(ctx, nil)
	if err != nil {
		return nil, "", azureError(err)
	}
	return response.Body, quoted(string(deref(response.ETag))), nil
}

func (o *azureBlobs) put(ctx context.Context, key string, body []byte, ifVersion Version) (Version, error) {
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
	return quoted(string(deref(response.ETag))), nil
}

// deref returns what the SDK has read, or nothing.
func deref[T any](value *T) (zero T) {
	if value == nil {
		return zero
	}
	return *value
}

func (o *azureBlobs) isDenied(err error) bool {
	response, ok := errors.AsType[azureResponse](err)
	return ok && !o.isKey && response.StatusCode == http.StatusForbidden && bloberror.HasCode(err, bloberror.AuthorizationFailure,
		bloberror.AuthorizationPermissionMismatch, bloberror.AuthorizationResourceTypeMismatch, bloberror.InsufficientAccountPermissions)
}

// azureError believes the store's own code only: a proxy's 404 has none. An error about a URL may show a SAS token.
func azureError(err error) error {
	switch {
	case bloberror.HasCode(err, bloberror.BlobNotFound):
		return errNoObject
	case bloberror.HasCode(err, bloberror.BlobAlreadyExists, bloberror.ConditionNotMet):
		return ErrConflict
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
	return strings.TrimSpace(fmt.Sprintf("the service responded with status %d %s", r.StatusCode, r.ErrorCode))
}
