// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package gcs keeps texts in a bucket of Google Cloud Storage.
package gcs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/bucket"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
	"github.com/agentjobs/terraform-provider-agent/internal/sleep"
)

// cloud is a bucket of Google Cloud Storage, reached as the gcs backend does. Google's library is
// too large for this program, and its JSON API needs three requests.
type cloud struct {
	name, kmsKey       string
	token, credentials string // if both are empty, Application Default Credentials
	impersonated       string // service account whose tokens these credentials get; may be empty
}

const (
	server  = "https://storage.googleapis.com"
	maxBody = 4 << 20 // a page of a listing has at most 1000 names
)

// Kind is Google Cloud Storage.
func Kind() bucket.Kind {
	return bucket.Kind{
		Backend: "gcs", Beside: besideState, Scheme: "gs", Example: "gs://bucket/prefix", AtURL: atURL,
		Parameters:    []string{"kms_encryption_key"},
		StateSettings: map[string]string{"bucket": "", "prefix": ""},
	}
}

// besideState is where the gcs backend keeps its states.
func besideState(s *settings.Settings) (bucket.Cloud, string, error) {
	name, err := s.Required("bucket")
	c := newCloud(name, s)
	c.kmsKey = s.Text("kms_encryption_key", "GOOGLE_KMS_ENCRYPTION_KEY")
	prefix := path.Join(strings.TrimLeft(s.Text("prefix"), "/"), settings.JournalName) + "/" // the backend joins so, too
	return c, prefix, errors.Join(err, settings.Refuse("GOOGLE_ENCRYPTION_KEY",
		"GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT", "GOOGLE_STORAGE_CUSTOM_ENDPOINT", "STORAGE_EMULATOR_HOST",
		"GOOGLE_BACKEND_UNIVERSE_DOMAIN", "GOOGLE_CLOUD_UNIVERSE_DOMAIN"))
}

// atURL is where a URL leads.
func atURL(host, path string, s *settings.Settings) (bucket.Cloud, string, error) {
	c := newCloud(host, s)
	c.kmsKey = s.Text("kms_encryption_key")
	return c, path, nil
}

// newCloud reads whose credentials to use. For a URL, too, the variables of the backend count.
func newCloud(name string, s *settings.Settings) *cloud {
	return &cloud{
		name:        name,
		token:       s.Text("access_token", "GOOGLE_OAUTH_ACCESS_TOKEN"),
		credentials: s.Text("credentials", "GOOGLE_BACKEND_CREDENTIALS", "GOOGLE_CREDENTIALS"), // a file, or its text
		impersonated: s.Text("impersonate_service_account", "GOOGLE_BACKEND_IMPERSONATE_SERVICE_ACCOUNT",
			"GOOGLE_IMPERSONATE_SERVICE_ACCOUNT"),
	}
}

func (c *cloud) String() string { return "gs://" + c.name }

func (c *cloud) Grant(op, _ string) string {
	role := "objectUser"
	if op == "list" || op == "read" {
		role = "objectViewer"
	}
	return fmt.Sprintf("the role roles/storage.%s on the bucket %s", role, c.name)
}

func (c *cloud) Connect(ctx context.Context, network http.RoundTripper) (bucket.Objects, error) {
	client := bucket.Client(network)
	tokens, err := within(ctx, func() (oauth2.TokenSource, error) {
		return c.tokens(context.WithoutCancel(ctx), client) // a later call refreshes the token with the same context
	})
	return &objects{c, client, tokens}, err
}

type objects struct {
	*cloud

	client *http.Client
	source oauth2.TokenSource
}

// path is that of the bucket's objects.
func (o *objects) path() string { return "/storage/v1/b/" + url.PathEscape(o.name) + "/o" }

func (o *objects) pathOf(key string) string { return o.path() + "/" + url.PathEscape(key) }

func (o *objects) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		query := url.Values{"prefix": {prefix}, "fields": {"kind,items(name),nextPageToken"}}
		for {
			text, _, err := o.send(ctx, http.MethodGet, o.path(), query, nil)
			var page struct {
				Kind, NextPageToken string
				Items               []struct{ Name string }
			}
			if err == nil {
				err = json.Unmarshal(text, &page)
			}
			if err == nil && page.Kind != "storage#objects" { // it is not Google that says so
				err = newError(http.StatusOK, text)
			}
			if err != nil {
				yield("", err)
				return
			}
			for _, item := range page.Items {
				if !yield(item.Name, nil) {
					return
				}
			}
			if page.NextPageToken == "" {
				return
			}
			query.Set("pageToken", page.NextPageToken)
		}
	}
}

func (o *objects) Get(ctx context.Context, key string) (io.ReadCloser, store.Version, error) {
	text, header, err := o.send(ctx, http.MethodGet, o.pathOf(key), url.Values{"alt": {"media"}}, nil)
	if err != nil {
		return nil, "", o.withoutObject(ctx, key, err)
	}
	return io.NopCloser(bytes.NewReader(text)), store.Version(header.Get("X-Goog-Generation")), nil
}

func (o *objects) Put(ctx context.Context, key string, body []byte, ifVersion store.Version) (store.Version, error) {
	// The version is that of another kind of store, or 0, which Google takes for no object.
	if generation, _ := strconv.ParseInt(string(ifVersion), 10, 64); ifVersion != "" && generation <= 0 {
		return "", store.ErrConflict
	}
	query := url.Values{"uploadType": {"media"}, "name": {key}, "ifGenerationMatch": {cmp.Or(string(ifVersion), "0")}}
	if o.kmsKey != "" {
		query.Set("kmsKeyName", o.kmsKey)
	}
	text, _, err := o.send(ctx, http.MethodPost, "/upload"+o.path(), query, body)
	if failed, ok := errors.AsType[*apiError](err); ok && failed.Status == http.StatusPreconditionFailed {
		return "", store.ErrConflict
	}
	var written struct{ Generation string }
	if err == nil && json.Unmarshal(text, &written) != nil {
		err = newError(http.StatusOK, text)
	}
	return store.Version(written.Generation), err
}

// withoutObject makes a 404 bucket.ErrNoObject if a listing lacks the object: listings show each
// write at once. The 404 itself can also come from a proxy, or mean that there is no bucket.
func (o *objects) withoutObject(ctx context.Context, key string, err error) error {
	if failed, ok := errors.AsType[*apiError](err); !ok || failed.Status != http.StatusNotFound {
		return err
	}
	for found, listErr := range o.List(ctx, key) {
		if listErr != nil {
			return listErr
		}
		if found == key {
			return err
		}
	}
	return bucket.ErrNoObject
}

// send repeats what Google says to repeat, such as a second write of a record within a second.
func (o *objects) send(ctx context.Context, method, path string, query url.Values, body []byte) ([]byte, http.Header, error) {
	var refused error
	for wait := 500 * time.Millisecond; ; wait = min(2*wait, 4*time.Second) {
		text, header, err := o.sendOnce(ctx, method, path, query, body)
		failed, ok := errors.AsType[*apiError](err)
		if !ok || failed.Status != http.StatusTooManyRequests && failed.Status != http.StatusRequestTimeout && failed.Status < 500 {
			if err != nil && ctx.Err() != nil {
				err = cmp.Or(refused, err)
			}
			return text, header, err
		}
		refused = err
		if sleep.For(ctx, wait/2+rand.N(wait)) != nil {
			return nil, nil, refused
		}
	}
}

func (o *objects) sendOnce(ctx context.Context, method, path string, query url.Values, body []byte) ([]byte, http.Header, error) {
	token, err := within(ctx, func() (*oauth2.Token, error) {
		token, err := o.source.Token()
		if err != nil {
			err = fmt.Errorf("the credentials for Google Cloud give no token: %.500q", err.Error()) // it can have a whole response
		}
		return token, err
	})
	if err != nil {
		return nil, nil, err
	}
	at := strings.TrimSuffix(server+path+"?"+query.Encode(), "?")
	request, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	token.SetAuthHeader(request)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header["Idempotency-Key"] = nil // is not sent; lets the transport replace a connection that the server has closed
	response, err := bucket.Exchange(o.client, request, maxBody)
	if response.Status != 0 && response.Status/100 != 2 {
		return nil, nil, newError(response.Status, response.Body)
	}
	return response.Body, response.Header, err
}

// apiError is a response of the store, or of a proxy, other than success.
type apiError struct {
	Status  int
	Message string
}

func newError(status int, text []byte) *apiError {
	var body struct{ Error struct{ Message string } }
	_ = json.Unmarshal(text, &body) // a proxy's response is shown as it is
	return &apiError{status, fmt.Sprintf("%.500s", cmp.Or(body.Error.Message, string(text)))}
}

func (e *apiError) Is(target error) bool {
	return target == store.ErrDenied && e.Status == http.StatusForbidden
}

func (e *apiError) Error() string {
	return fmt.Sprintf("Google Cloud Storage responded with status %d: %q", e.Status, e.Message)
}
