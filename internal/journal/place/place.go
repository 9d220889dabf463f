// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package place finds where a journal is kept: beside the state, or where a URL says.
package place

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

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

// kinds has a line for each cloud.
func kinds() []bucket.Kind {
	return []bucket.Kind{
		s3.Kind(),
		gcs.Kind(),
		azblob.Kind(),
	}
}

func find(is func(bucket.Kind) bool) (kind bucket.Kind, ok bool) {
	i := slices.IndexFunc(kinds(), is)
	if i < 0 {
		return kind, false
	}
	return kinds()[i], true
}

// Backends are those of the CLI beside whose states a journal can be kept.
func Backends() (names []string) {
	for _, k := range kinds() {
		names = append(names, k.Backend)
	}
	return names
}

// Examples are URLs, one of each kind.
func Examples() (urls []string) {
	for _, k := range kinds() {
		urls = append(urls, k.Example)
	}
	return urls
}

// Beside returns the place beside a state that is in a bucket; ok is false if it is not in one. It is the same in all
// workspaces, and no listing of workspaces meets it. Its errors name settings, and never show one.
func Beside(b cli.Backend) (l Location, ok bool, err error) {
	kind, ok := find(func(k bucket.Kind) bool { return k.Backend == b.Type })
	if !ok {
		return Location{}, false, nil
	}
	s := settings.OfBackend(b.Settings)
	l.cloud, l.Prefix, err = kind.Beside(s)
	if err = errors.Join(err, s.Unread()); err != nil {
		return Location{}, true, err
	}
	return l, true, nil
}

// StateID identifies a state by the settings of its backend that say where it is, each with its default. Region, endpoint and credentials
// are not among them: a laptop and a pipeline may reach one state through different ones. ok is false for backends beside whose states no
// journal is kept: no machine knows what identifies theirs.
func StateID(b cli.Backend) (id string, ok bool) {
	kind, ok := find(func(k bucket.Kind) bool { return k.Backend == b.Type })
	if !ok {
		return b.ID(), false
	}
	located := map[string]string{}
	for name, usual := range kind.Locating {
		located[name] = usual
		if text, isText := b.Settings[name].(string); isText {
			located[name] = strings.Trim(text, "/")
		}
	}
	return fmt.Sprintf("%s%q", b.Type, located), true
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

// errInvisible refuses what would quietly be another place: it comes with a copy, or from a file.
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

// ParseURL reads where a named journal is kept: the absolute path of a folder that exists, or the URL of a kind, with endpoint=URL and
// state=NAME. Its errors never repeat the text.
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
