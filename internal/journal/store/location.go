// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package store

import (
	"errors"
	"net/netip"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
)

// Location is where a journal is kept: in a folder or in a bucket.
type Location struct {
	State   string // names the state, instead of the backend's settings; may be empty
	Default bool   // nobody chose it; a folder is made

	Unusable error // why the place cannot be used; each operation of its store returns it

	Folder string // of a journal on disk

	cloud  cloud  // of a journal in a bucket
	Prefix string // there; empty, or ends in a slash
}

// String names the folder, or the bucket and the prefix there.
func (l Location) String() string {
	if l.cloud == nil {
		return l.Folder
	}
	return l.cloud.String() + "/" + l.Prefix
}

// besideState is what the key of the default workspace's state, or of a folder of states, is followed by.
const besideState = "agent-journal/"

// Beside returns the place beside a state that is in a bucket; ok is false if it is not in one. It is the same in all
// workspaces, and no listing of workspaces meets it. Its errors name settings, and never show one.
func Beside(b cli.Backend) (l Location, ok bool, err error) {
	s := newSettings(b.Settings)
	switch b.Type {
	case "s3":
		s.ignore("workspace_key_prefix")
		l.Prefix = s.text("key") + "." + besideState
		l.cloud, err = newS3(s.text("bucket"), s)
	case "gcs":
		l.Prefix = path.Join(strings.TrimLeft(s.text("prefix"), "/"), besideState) + "/" // the backend joins so, too
		l.cloud, err = newGCS(s.text("bucket"), "", s)
	case "azurerm":
		l.Prefix = s.text("key") + "." + besideState
		l.cloud, err = newAzureContainer(s.text("storage_account_name"), s.text("container_name"), "", true, s)
	default:
		return Location{}, false, nil
	}
	if err = errors.Join(err, s.unread()); err != nil {
		return Location{}, true, err
	}
	if strings.HasSuffix(l.cloud.String(), "/") || l.Prefix == "."+besideState {
		return Location{}, true, errors.New("the backend's settings lack the bucket or the key")
	}
	return l, true, nil
}

var (
	errURL = errors.New("the journal's URL must be an absolute path, or like s3://bucket/prefix?region=eu-central-1, gs://bucket/prefix or " +
		"azblob://account/container/prefix, without user, port and fragment; it accepts the parameters endpoint, state and, for s3, region, " +
		"each once, and after a path only state")
	errEndpoint = errors.New("the endpoint of the journal's store must be an absolute https URL without user, query and fragment, " +
		"or http for a loopback address")
)

// ParseURL reads where a named journal is kept: the absolute path of a folder that exists, or
// s3://BUCKET/PREFIX?region=REGION, gs://BUCKET/PREFIX or azblob://ACCOUNT/CONTAINER/PREFIX, each with endpoint=URL and
// state=NAME. Its errors never repeat the text.
func ParseURL(text string) (Location, error) {
	if filepath.IsAbs(text) {
		folder, state, named := strings.Cut(text, "?state=")
		if named && state == "" {
			return Location{}, errURL
		}
		return Location{Folder: filepath.Clean(folder), State: state}, nil
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
	parameters := map[string]any{}
	for name, values := range query {
		if len(values) != 1 || values[0] == "" || name != "region" && name != "endpoint" && name != "state" {
			return Location{}, errURL
		}
		parameters[name] = values[0]
	}
	s := newSettings(parameters)
	l, path := Location{State: s.text("state")}, strings.Trim(parsed.Path, "/")
	switch parsed.Scheme {
	case "s3":
		_, isOther := parameters["endpoint"]
		s.values["use_path_style"] = isOther // most stores other than AWS have no host name for each bucket
		l.cloud, err = newS3(parsed.Host, s)
	case "gs":
		l.cloud, err = newGCS(parsed.Host, s.text("endpoint"), s)
	case "azblob":
		var container string
		container, path, _ = strings.Cut(path, "/")
		l.cloud, err = newAzureContainer(parsed.Host, container, s.text("endpoint"), false, s)
	default:
		return Location{}, errURL
	}
	if l.Prefix = strings.Trim(path, "/"); l.Prefix != "" {
		l.Prefix += "/"
	}
	if err != nil {
		return Location{}, err
	}
	if s.unread() != nil {
		return Location{}, errURL
	}
	return l, nil
}

// checkEndpoint checks where requests go, with tokens perhaps; empty is where a cloud's own library sends them.
func checkEndpoint(text string) error {
	endpoint, err := url.Parse(text)
	switch {
	case text == "":
		return nil
	case err != nil, endpoint.Hostname() == "", endpoint.User != nil, endpoint.RawQuery != "", endpoint.Fragment != "":
		return errEndpoint
	case endpoint.Scheme != "https" && (endpoint.Scheme != "http" || !IsLoopback(endpoint.Hostname())):
		return errEndpoint
	}
	return nil
}

// IsLoopback reports whether a host is this machine, which needs no encryption.
func IsLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}
