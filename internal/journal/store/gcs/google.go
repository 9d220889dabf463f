// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package gcs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/bucket"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
)

const (
	storageScope = "https://www.googleapis.com/auth/devstorage.read_write"
	cloudScope   = "https://www.googleapis.com/auth/cloud-platform" // to impersonate
)

// errCredentials replaces the library's errors, which can show a path or a part of a key.
var errCredentials = errors.New("there are no usable credentials for Google Cloud in credentials, GOOGLE_BACKEND_CREDENTIALS or " +
	"GOOGLE_CREDENTIALS, or, if none is set, in GOOGLE_APPLICATION_CREDENTIALS, in gcloud or on the machine")

// tokens finds the credentials in the order of the backend:
//
//  1. access_token, or GOOGLE_OAUTH_ACCESS_TOKEN
//  2. credentials, or GOOGLE_BACKEND_CREDENTIALS, or GOOGLE_CREDENTIALS
//  3. Application Default Credentials: the file of GOOGLE_APPLICATION_CREDENTIALS, or that of
//     "gcloud auth application-default login", or the machine's service account
//
// With impersonate_service_account, these only get the tokens of that service account.
func (c *cloud) tokens(ctx context.Context, client *http.Client) (oauth2.TokenSource, error) {
	ctx = context.WithValue(ctx, oauth2.HTTPClient, client)
	if c.impersonated == "" {
		return c.source(ctx, storageScope)
	}
	source, err := c.source(ctx, cloudScope)
	if err != nil {
		return nil, err
	}
	impersonate := tokenFunc(func() (*oauth2.Token, error) { return c.impersonate(ctx, client, source) })
	return oauth2.ReuseTokenSource(nil, impersonate), nil
}

func (c *cloud) source(ctx context.Context, scope string) (oauth2.TokenSource, error) {
	if c.token != "" {
		return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: c.token}), nil
	}
	find := func() (*google.Credentials, error) { return google.FindDefaultCredentials(ctx, scope) }
	if c.credentials != "" {
		find = func() (*google.Credentials, error) { return c.key(ctx, scope) }
	}
	found, err := find()
	if err != nil {
		return nil, errCredentials
	}
	if _, err := google.ConfigFromJSON(found.JSON); err == nil { // an application's secret: getting a token would panic
		return nil, errCredentials
	}
	return found.TokenSource, nil
}

// key reads the backend's credentials, which are a file's path, or its text.
func (c *cloud) key(ctx context.Context, scope string) (*google.Credentials, error) {
	text, err := os.ReadFile(settings.ExpandHome(c.credentials))
	if err != nil {
		text = []byte(c.credentials)
	}
	var key struct{ Type google.CredentialsType }
	if err := json.Unmarshal(text, &key); err != nil {
		return nil, err
	}
	return google.CredentialsFromJSONWithType(ctx, text, key.Type, scope)
}

type tokenFunc func() (*oauth2.Token, error)

func (f tokenFunc) Token() (*oauth2.Token, error) { return f() }

// impersonate gets a token of another service account. Google's library for it is too large.
func (c *cloud) impersonate(ctx context.Context, client *http.Client, source oauth2.TokenSource) (*oauth2.Token, error) {
	token, err := source.Token()
	if err != nil {
		return nil, err
	}
	at := "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/" + url.PathEscape(c.impersonated) + ":generateAccessToken"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(`{"scope": ["`+storageScope+`"]}`))
	if err != nil {
		return nil, err
	}
	token.SetAuthHeader(request)
	request.Header.Set("Content-Type", "application/json")
	response, err := bucket.Exchange(client, request, store.MaxText)
	if err != nil {
		return nil, err
	}
	var granted struct {
		AccessToken string
		ExpireTime  time.Time
		Error       struct{ Status string } // its message can show settings
	}
	err = json.Unmarshal(response.Body, &granted)
	if err == nil && response.Status == http.StatusOK && granted.AccessToken != "" {
		return &oauth2.Token{AccessToken: granted.AccessToken, Expiry: granted.ExpireTime}, nil
	}
	return nil, fmt.Errorf("impersonate_service_account: the service responded with status %d %.50s; the credentials may lack the role "+
		"roles/iam.serviceAccountTokenCreator on that service account", response.Status, granted.Error.Status)
}

// within returns when ctx ends, even if do continues: Google's library ignores a call's context.
func within[T any](ctx context.Context, do func() (T, error)) (result T, _ error) {
	type done struct {
		result T
		err    error
	}
	finished := make(chan done, 1)
	go func() {
		result, err := do()
		finished <- done{result, err}
	}()
	select {
	case d := <-finished:
		return d.result, d.err
	case <-ctx.Done():
		return result, context.Cause(ctx)
	}
}
