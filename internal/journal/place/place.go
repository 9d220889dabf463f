// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package place decides where a journal is kept, and what distinguishes the states that keep theirs
// at one place. A journal is beside its state if that is in a bucket, or where a URL says, or else
// in the working directory.
package place

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/azblob"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/bucket"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/folder"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/gcs"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/s3"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/settings"
)

// defaultFolder is in the working directory, and not in the data folder, which people delete and
// pipelines cache.
const defaultFolder = ".agent-journal"

// Place is where the records of one state are kept.
type Place struct {
	Location Location
	Scope    string // tells apart states and services, and each run of "terraform test"
}

// Find returns where this run keeps the records of what it sends to a service: at the location that
// a person has chosen, or else at the default one. If the location cannot be used, its store says so
// when it is accessed.
func Find(chosen Location, service *url.URL, process *cli.Process) Place {
	b, err := readBackend()
	id, isKnown := b.id(process.State)
	isTest := process.Command == "test"
	l := chosen
	switch {
	case err != nil:
		l = Location{Misconfigured: fmt.Errorf("the backend of this state, and so its journal, cannot be found: %w", err)}
	case chosen.String() == "":
		l = defaultLocation(b)
	case !isKnown && chosen.State == "" && !isTest:
		l.Misconfigured = errNoStateName
	}
	scope := fmt.Sprintf("%s\n%s\n%s", CanonicalURL(service), workspace(), cmp.Or(l.State, id))
	if isTest { // it must neither adopt the jobs of the state nor those of another test
		scope += fmt.Sprintf("\ntest %s", process.Run)
	}
	return Place{Location: l, Scope: scope}
}

// errNoStateName keeps two states from adopting each other's jobs.
var errNoStateName = errors.New("several states can use this place, and this one has no name that all machines know, as a state " +
	"in a bucket has: add ?state=NAME (or &state=NAME) to the URL of the journal, with a name that only this state has")

// defaultLocation is where a journal is kept if nobody has chosen a place: beside a state in a
// bucket, or else in the working directory. All workspaces share it, and no listing of workspaces
// shows it.
func defaultLocation(b backend) Location {
	kind, ok := b.kind()
	if !ok {
		folder, err := filepath.Abs(defaultFolder)
		return Location{Folder: folder, Default: true, Misconfigured: err}
	}
	s := settings.New(b.Settings)
	cloud, prefix, err := kind.Beside(s)
	if err = errors.Join(err, s.Unread()); err != nil { // it names settings, and never shows one
		return Location{Misconfigured: fmt.Errorf(
			"the journal is kept beside the state, but not all settings of the backend %s can be used: %w", b.Type, err)}
	}
	return Location{cloud: cloud, Prefix: prefix}
}

// Location is where a journal is kept: in a folder or in a bucket.
type Location struct {
	State string // a person's name for the state, instead of the backend's settings; may be empty

	Misconfigured error // why it cannot be used, if not nil; each operation of its store returns it

	Folder  string // of a journal on disk
	Default bool   // nobody chose the folder, so it is made if it is missing

	cloud  bucket.Cloud // of a journal in a bucket; nil: it is on disk
	Prefix string       // there; empty, or ends in a slash
}

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

// Examples are URLs, one of each kind.
func Examples() (urls []string) {
	for _, k := range kinds() {
		urls = append(urls, k.Example)
	}
	return urls
}

// Open returns the store for the texts of a scope, without accessing it yet.
func (l Location) Open(scope string, process *cli.Process) store.Store {
	switch {
	case l.Misconfigured != nil:
		return store.Misconfigured(l.String(), l.Misconfigured)
	case l.cloud != nil:
		return bucket.New(l.cloud, l.Prefix, scope, process.Network)
	}
	return folder.New(l.Folder, l.Default, scope)
}
