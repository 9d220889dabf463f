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
	examples, parameters := []string{"an absolute path"}, []string{"the parameter state"}
	for _, k := range kinds() {
		examples = append(examples, k.Example)
		if len(k.Parameters) > 0 {
			parameters = append(parameters, fmt.Sprintf("for %s %s", k.Scheme, strings.Join(k.Parameters, ", ")))
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

// ParseURL reads where a person has chosen to keep the journal: the absolute path of a folder that
// exists, or the URL of a kind, with its parameters and state=NAME. Its errors never repeat the text.
func ParseURL(text string) (Location, error) {
	switch {
	case isInvisible(text):
		return Location{}, errInvisible
	case filepath.IsAbs(text):
		folder, state, isNamed := strings.Cut(text, "?state=")
		if isNamed && state == "" {
			return Location{}, errURL
		}
		return Location{Folder: filepath.Clean(folder), State: state}, nil
	}
	parsed, err := url.Parse(text)
	if err != nil || parsed.Hostname() == "" || parsed.Host != parsed.Hostname() || parsed.User != nil || strings.Contains(text, "#") {
		return Location{}, errURL
	}
	if isInvisible(parsed.Path) {
		return Location{}, errInvisible
	}
	i := slices.IndexFunc(kinds(), func(k bucket.Kind) bool { return k.Scheme == parsed.Scheme })
	if i < 0 {
		return Location{}, errURL
	}
	kind := kinds()[i]
	parameters, err := parseParameters(parsed.RawQuery, kind.Parameters)
	if err != nil {
		return Location{}, err
	}
	s := settings.New(parameters)
	l := Location{State: s.Text("state")}
	l.cloud, l.Prefix, err = kind.AtURL(parsed.Host, strings.Trim(parsed.Path, "/"), s)
	if err = errors.Join(err, s.Unread()); err != nil {
		return Location{}, err
	}
	if l.Prefix = strings.Trim(l.Prefix, "/"); l.Prefix != "" {
		l.Prefix += "/"
	}
	return l, nil
}

// parseParameters reads the query of a URL, which has each parameter once.
func parseParameters(text string, accepted []string) (map[string]any, error) {
	query, err := url.ParseQuery(text)
	if err != nil {
		return nil, errURL
	}
	parameters := map[string]any{}
	for name, values := range query {
		switch {
		case len(values) != 1, values[0] == "", name != "state" && !slices.Contains(accepted, name):
			return nil, errURL
		case isInvisible(values[0]):
			return nil, errInvisible
		}
		parameters[name] = values[0]
	}
	return parameters, nil
}
