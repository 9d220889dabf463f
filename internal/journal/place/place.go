// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package place finds where a journal is kept: beside the state, or where a URL says.
package place

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/azblob"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/bucket"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/folder"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/gcs"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/s3"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
)

// Location is where a journal is kept: in a folder or in a bucket.
type Location struct {
	State   string // names the state, instead of the backend's settings; may be empty
	Default bool   // nobody chose it; a folder is made

	Unusable error  // why the place cannot be used; each operation of its store returns it
	Instead  string // if it cannot be used: a URL that leads to the same place, if there is one
	URL      string // as a person has named it; empty if nobody has

	Folder string // of a journal on disk

	cloud  bucket.Cloud // of a journal in a bucket
	Prefix string       // there; empty, or ends in a slash
}

// IsBucket reports whether it is in one.
func (l Location) IsBucket() bool { return l.cloud != nil }

// String names the folder, or the bucket and the prefix there.
func (l Location) String() string {
	if l.cloud == nil {
		return l.Folder
	}
	return l.cloud.String() + "/" + l.Prefix
}

// Unencrypted returns the endpoint of a store beside a state if requests go there without encryption, as the state does, and else
// nothing. It reads the files that the cloud's own library reads, and requests nothing.
func (l Location) Unencrypted(ctx context.Context) string {
	if c, ok := l.cloud.(interface {
		Unencrypted(ctx context.Context) string
	}); ok {
		return c.Unencrypted(ctx)
	}
	return ""
}

// kind is a cloud whose buckets keep a journal.
type kind struct {
	backend string // of the CLI
	beside  func(*settings.Settings) (in bucket.Cloud, prefix string, _ error)
	scheme  string // of URLs
	example string // of a URL
	named   func(host, path string, _ *settings.Settings) (in bucket.Cloud, prefix string, _ error)
	accepts []string // parameters of URLs, beside endpoint and state
	path    []string // settings of the backend that are the host and path of a URL; they are required
	suffix  string   // what beside adds to the last of these
	moves   []string // settings and variables of the backend that no URL has, and with which it would lead to another store
}

// kinds has a line for each cloud.
//
//nolint:gochecknoglobals // never changed
var kinds = []kind{
	{
		backend: "s3", beside: s3.Beside, scheme: "s3", example: "s3://bucket/prefix?region=eu-central-1", named: s3.Named,
		accepts: []string{"region", "profile", "use_path_style", "skip_s3_checksum", "acl", "encrypt", "kms_key_id"},
		path:    []string{"bucket", "key"}, suffix: "." + settings.Beside,
		moves: []string{"endpoint", "endpoints", "AWS_S3_ENDPOINT"},
	},
	{
		backend: "gcs", beside: gcs.Beside, scheme: "gs", example: "gs://bucket/prefix", named: gcs.Named,
		accepts: []string{"kms_encryption_key"},
		path:    []string{"bucket", "prefix"}, suffix: "/" + settings.Beside, // each of its states is in a folder
		moves: []string{
			"storage_custom_endpoint", "GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT", "GOOGLE_STORAGE_CUSTOM_ENDPOINT", "STORAGE_EMULATOR_HOST",
			"universe_domain", "GOOGLE_BACKEND_UNIVERSE_DOMAIN", "GOOGLE_CLOUD_UNIVERSE_DOMAIN",
		},
	},
	{
		backend: "azurerm", beside: azblob.Beside, scheme: "azblob", example: "azblob://account/container/prefix", named: azblob.Named,
		path: []string{"storage_account_name", "container_name", "key"}, suffix: "." + settings.Beside,
		moves: []string{
			"environment", "lookup_blob_endpoint", "ARM_USE_DNS_ZONE_ENDPOINT", "metadata_host", "ARM_METADATA_HOST", "ARM_METADATA_HOSTNAME",
		},
	},
}

// Backends are those of the CLI beside whose states a journal can be kept.
func Backends() (names []string) {
	for _, k := range kinds {
		names = append(names, k.backend)
	}
	return names
}

// Beside returns the place beside a state that is in a bucket; ok is false if it is not in one. It is the same in all
// workspaces, and no listing of workspaces meets it. Its errors name settings, and never show one.
func Beside(b cli.Backend) (l Location, ok bool, err error) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.backend == b.Type })
	if i < 0 {
		return Location{}, false, nil
	}
	s := settings.OfBackend(b.Settings)
	l.cloud, l.Prefix, err = kinds[i].beside(s)
	if err = errors.Join(err, s.Unread()); err != nil {
		return Location{}, true, err
	}
	return l, true, nil
}

// URL is that of the place beside a state, for who cannot use the settings of its backend. It is empty if no URL leads there.
func URL(b cli.Backend) string {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.backend == b.Type })
	if i < 0 {
		return ""
	}
	s, at, query := settings.OfBackend(b.Settings), []string{}, url.Values{}
	if slices.ContainsFunc(kinds[i].moves, func(name string) bool { return os.Getenv(name) != "" || s.Has(name) }) {
		return ""
	}
	for _, name := range kinds[i].path {
		at = append(at, strings.Trim(s.Text(name), "/"))
	}
	for _, name := range kinds[i].accepts {
		if value, isText := b.Settings[name].(string); isText && value != "" {
			query.Set(name, value)
		} else if b.Settings[name] == true {
			query.Set(name, "true")
		}
	}
	text := url.URL{Scheme: kinds[i].scheme, Host: at[0], RawQuery: query.Encode()}
	text.Path = strings.TrimRight("/"+strings.Join(at[1:], "/")+kinds[i].suffix, "/")
	if l, err := ParseURL(text.String()); err != nil || l.String() != text.Scheme+"://"+at[0]+text.Path+"/" {
		return ""
	}
	return text.String()
}

// Open returns the store for the texts of a scope, without accessing it yet.
func (l Location) Open(scope string, process *cli.Process) store.Store {
	switch {
	case l.Unusable != nil:
		return store.Unusable(l.String(), l.Unusable)
	case l.cloud != nil:
		return bucket.New(l.cloud, l.Prefix, scope, process.Network)
	}
	return folder.New(l.Folder, l.Default, scope)
}

// errURL says what a URL can be.
var errURL = func() error {
	examples, parameters := []string{"an absolute path"}, []string{"the parameters endpoint and state"}
	for _, k := range kinds {
		examples = append(examples, k.example)
		if len(k.accepts) > 0 {
			parameters = append(parameters, fmt.Sprintf("for %s %s", k.scheme, strings.Join(k.accepts, ", ")))
		}
	}
	return fmt.Errorf("the journal's URL must be %s, without user, port and fragment; it accepts %s, each once, and after a path only state",
		strings.Join(examples, ", or "), strings.Join(parameters, "; "))
}()

// ParseURL reads where a named journal is kept: the absolute path of a folder that exists, or the URL of a kind, with endpoint=URL and
// state=NAME. Its errors never repeat the text.
func ParseURL(text string) (Location, error) {
	if filepath.IsAbs(text) {
		folder, state, named := strings.Cut(text, "?state=")
		if named && state == "" {
			return Location{}, errURL
		}
		return Location{Folder: filepath.Clean(folder), State: state, URL: text}, nil
	}
	parsed, err := url.Parse(text)
	if err != nil || parsed.Hostname() == "" || parsed.Host != parsed.Hostname() ||
		parsed.User != nil || strings.Contains(text, "#") {
		return Location{}, errURL
	}
	query, err := url.ParseQuery(parsed.RawQuery)
	if err != nil {
		return Location{}, errURL
	}
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.scheme == parsed.Scheme })
	if i < 0 {
		return Location{}, errURL
	}
	parameters := map[string]any{}
	for name, values := range query {
		if len(values) != 1 || values[0] == "" || name != "endpoint" && name != "state" && !slices.Contains(kinds[i].accepts, name) {
			return Location{}, errURL
		}
		parameters[name] = values[0]
	}
	s := settings.OfURL(parameters)
	l := Location{State: s.Text("state"), URL: text}
	l.cloud, l.Prefix, err = kinds[i].named(parsed.Host, strings.Trim(parsed.Path, "/"), s)
	if err = errors.Join(err, s.Unread()); err != nil {
		return Location{}, err
	}
	if l.Prefix = strings.Trim(l.Prefix, "/"); l.Prefix != "" {
		l.Prefix += "/"
	}
	return l, nil
}
