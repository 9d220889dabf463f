// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package place

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/bucket"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
)

// errURL says what a URL can be.
var errURL = func() error {
	examples, parameters := []string{"an absolute path"}, []string{"the parameters state and endpoint (of s3, or on this machine)"}
	for _, k := range kinds() {
		examples = append(examples, k.Example)
		if len(k.Accepts) > 0 {
			parameters = append(parameters, fmt.Sprintf("for %s %s", k.Scheme, strings.Join(k.Accepts, ", ")))
		}
	}
	return fmt.Errorf("the journal's URL must be %s, without user, port and fragment; it accepts %s, each once, and after a path only state",
		strings.Join(examples, ", or "), strings.Join(parameters, "; "))
}()

// errInvisible refuses what a copy or a file adds to a URL unseen: with it, the URL would quietly
// lead to another place.
var errInvisible = errors.New("the journal's URL has a line break, a blank before or after a part of it, or another character that " +
	"nobody sees: remove it")

func isInvisible(text string) bool {
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '/' || r == '?' }) {
		if part != strings.TrimSpace(part) {
			return true
		}
	}
	return strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// ParseURL reads where a named journal is kept: the absolute path of a folder that exists, or the
// URL of a kind, with endpoint=URL and state=NAME. Its errors never repeat the text.
func ParseURL(text string) (Location, error) {
	if isInvisible(text) {
		return Location{}, errInvisible
	}
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
	if isInvisible(parsed.Path) {
		return Location{}, errInvisible
	}
	kind, ok := find(func(k bucket.Kind) bool { return k.Scheme == parsed.Scheme })
	if !ok {
		return Location{}, errURL
	}
	parameters := map[string]any{}
	for name, values := range query {
		if len(values) != 1 || values[0] == "" || name != "endpoint" && name != "state" && !slices.Contains(kind.Accepts, name) {
			return Location{}, errURL
		}
		if isInvisible(values[0]) {
			return Location{}, errInvisible
		}
		parameters[name] = values[0]
	}
	s := settings.OfURL(parameters)
	l := Location{State: s.Text("state"), URL: text}
	l.cloud, l.Prefix, err = kind.Named(parsed.Host, strings.Trim(parsed.Path, "/"), s)
	if err = errors.Join(err, s.Unread()); err != nil {
		return Location{}, err
	}
	if l.Prefix = strings.Trim(l.Prefix, "/"); l.Prefix != "" {
		l.Prefix += "/"
	}
	return l, nil
}
