// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package gcs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
)

const (
	storageScope = "https://www.googleapis.com/auth/devstorage.read_write"
	cloudScope   = "https://www.googleapis.com/auth/cloud-platform" // to impersonate
)

// errCredentials replaces the library's errors, which can show a path or a part of a key.
var errCredentials = errors.New("there are no usable credentials for Google Cloud in credentials, GOOGLE_BACKEND_CREDENTIALS or " +
	"GOOGLE_CREDENTIALS, or, if none is set, in GOOGLE_APPLICATION_CREDENTIALS, in gcloud or on the machine")

// tokens finds the credentials in the order of the backend.
func (b *cloud) tokens(ctx context.Context, client *http.Client) (oauth2.TokenSource, error) {
	ctx = context.WithValue(ctx, oauth2.HTTPClient, client)
	if b.impersonated == "" {
		return b.source(ctx, storageScope)
	}
	source, err := b.source(ctx, cloudScope)
	if err != nil {
		return nil, err
	}
	impersonate := tokenFunc(func() (*oauth2.Token, error) { return b.impersonate(ctx, client, source) })
	return oauth2.ReuseTokenSource(nil, impersonate), nil
}

func (b *cloud) source(ctx context.Context, scope string) (oauth2.TokenSource, error) {
	if b.token != "" {
		return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: b.token}), nil
	}
	find := func() (*google.Credentials, error) { return google.FindDefaultCredentials(ctx, scope) }
	if b.credentials != "" {
		find = func() (*google.Credentials, error) { return b.key(ctx, scope) }
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
func (b *cloud) key(ctx context.Context, scope string) (*google.Credentials, error) {
	text, err := os.ReadFile(settings.ExpandHome(b.credentials))
	if err != nil {
		text = []byte(b.credentials)
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
func (b *cloud) impersonate(ctx context.Context, client *http.Client, source oauth2.TokenSource) (*oauth2.Token, error) {
	token, err := source.Token()
	if err != nil {
		return nil, err
	}
	const accounts = "projects/-/serviceAccounts/"
	wanted := struct {
		Delegates []string `json:"delegates,omitempty"`
		Scope     []string `json:"scope"`
	}{Scope: []string{storageScope}}
	for _, delegate := range b.delegates {
		wanted.Delegates = append(wanted.Delegates, accounts+delegate)
	}
	body, err := json.Marshal(wanted)
	if err != nil {
		return nil, err
	}
	at := "https://iamcredentials.googleapis.com/v1/" + accounts + url.PathEscape(b.impersonated) + ":generateAccessToken"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	token.SetAuthHeader(request)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return nil, failed.Err // without the URL, which has a setting
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	var granted struct {
		AccessToken string
		ExpireTime  time.Time
		Error       struct{ Status string } // its message can show settings
	}
	err = json.NewDecoder(io.LimitReader(response.Body, store.MaxText)).Decode(&granted)
	if err == nil && response.StatusCode == http.StatusOK && granted.AccessToken != "" {
		return &oauth2.Token{AccessToken: granted.AccessToken, Expiry: granted.ExpireTime}, nil
	}
	return nil, fmt.Errorf("impersonate_service_account: the service responded with status %d %.50s; the credentials may lack the role "+
		"roles/iam.serviceAccountTokenCreator on that service account", response.StatusCode, granted.Error.Status)
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
