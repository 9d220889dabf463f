// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package gcs

import (
	"context"
	"encoding/json"
	"errors"
	"os"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
)

const googleScope = "https://www.googleapis.com/auth/devstorage.read_write"

// errCredentials replaces the library's errors, which can show a path or a part of a key.
var errCredentials = errors.New("there are no usable credentials for Google Cloud in credentials, GOOGLE_BACKEND_CREDENTIALS or " +
	"GOOGLE_CREDENTIALS, or, if none is set, in GOOGLE_APPLICATION_CREDENTIALS, in gcloud or on the machine")

// tokens finds the credentials in the order of the backend.
func (b *cloud) tokens(ctx context.Context) (oauth2.TokenSource, error) {
	if b.token != "" {
		return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: b.token}), nil
	}
	find := func() (*google.Credentials, error) { return google.FindDefaultCredentials(ctx, googleScope) }
	if b.credentials != "" {
		find = func() (*google.Credentials, error) { return b.key(ctx) }
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

// key reads the backend's credentials: a file's path, or its text.
func (b *cloud) key(ctx context.Context) (*google.Credentials, error) {
	text := []byte(b.credentials)
	if file, err := os.ReadFile(settings.ExpandHome(b.credentials)); err == nil {
		text = file
	}
	var key struct{ Type google.CredentialsType }
	if err := json.Unmarshal(text, &key); err != nil {
		return nil, err
	}
	return google.CredentialsFromJSONWithType(ctx, text, key.Type, googleScope)
}

// within returns when ctx ends, even if do continues: Google's library ignores the context of a call that needs a token.
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
