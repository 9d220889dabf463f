// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package store

import (
	"errors"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
)

// Location is where a journal is kept: in a folder or in a bucket.
type Location struct {
	State   string // names the state, instead of the backend's settings; may be empty
	Folder  string // of a journal on disk
	Default bool   // nobody chose the folder: it is made

	Bucket   string // of a journal in an S3-compatible store
	Prefix   string // empty, or ends in a slash
	Region   string // empty: from the environment, or asked of the store
	Endpoint string // host and port; empty: that of AWS
	Secure   bool   // https
}

var (
	errURL = errors.New("the journal's URL must be an absolute path, or like s3://bucket/prefix?region=eu-central-1 without user, port and " +
		"fragment; it accepts the parameters region, endpoint and state, each once, and after a path only state")
	errEndpoint = errors.New("the endpoint in the journal's URL must be an absolute https URL without user, path and query, " +
		"or http for a loopback address")
)

// ParseURL reads where a named journal is kept: the absolute path of a folder that exists, or
// s3://BUCKET/PREFIX?region=REGION&endpoint=URL, and either with state=NAME. Its errors
// never repeat the text.
func ParseURL(text string) (Location, error) {
	if filepath.IsAbs(text) {
		path, state, named := strings.Cut(text, "?state=")
		if named && state == "" {
			return Location{}, errURL
		}
		return Location{Folder: filepath.Clean(path), State: state}, nil
	}
	parsed, err := url.Parse(text)
	if err != nil || parsed.Scheme != "s3" || parsed.Hostname() == "" || parsed.Host != parsed.Hostname() ||
		parsed.User != nil || strings.Contains(text, "#") {
		return Location{}, errURL
	}
	l := Location{Bucket: parsed.Host, Secure: true}
	if l.Prefix = strings.Trim(parsed.Path, "/"); l.Prefix != "" {
		l.Prefix += "/"
	}
	query, err := url.ParseQuery(parsed.RawQuery)
	if err != nil {
		return Location{}, errURL
	}
	for name, values := range query {
		if len(values) != 1 || values[0] == "" {
			return Location{}, errURL
		}
		switch name {
		case "region":
			l.Region = values[0]
		case "state":
			l.State = values[0]
		case "endpoint":
			if l.Endpoint, l.Secure, err = parseEndpoint(values[0]); err != nil {
				return Location{}, err
			}
		default:
			return Location{}, errURL
		}
	}
	return l, nil
}

func parseEndpoint(text string) (host string, secure bool, _ error) {
	endpoint, err := url.Parse(text)
	switch {
	case err != nil, endpoint.Hostname() == "", endpoint.User != nil, strings.Trim(endpoint.Path, "/") != "",
		endpoint.RawQuery != "", endpoint.Fragment != "":
		return "", false, errEndpoint
	case endpoint.Scheme != "https" && (endpoint.Scheme != "http" || !IsLoopback(endpoint.Hostname())):
		return "", false, errEndpoint
	}
	return endpoint.Host, endpoint.Scheme == "https", nil
}

// IsLoopback reports whether a host is this machine, which needs no encryption.
func IsLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}
