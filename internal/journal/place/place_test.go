// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package place

import (
	"cmp"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakes3"
	"github.com/agentjobs/terraform-provider-agent/internal/test/storetest"
)

// The first of each row is a place and a scope of its own. The others of the row are further ways to it.
// A test shares its records with no state, nor with another test. (N26)
//
// Red without: each part of Find and of the scope; errNoStateName, each part of its condition.
func TestFind(t *testing.T) {
	t.Chdir(t.TempDir())
	folder := t.TempDir()
	inFolder, err := filepath.Abs(".agent-journal")
	if err != nil {
		t.Fatal(err)
	}
	here := filepath.Dir(inFolder)
	type run struct {
		backend, workspace, flag, command, id string
		named, service                        string
	}
	const s3, bucketOf = `"s3","config":{"bucket":"b","region":"r","key":`, `"gcs","config":{"bucket":`
	seen := map[string]int{}
	for row, test := range []struct {
		want string // empty: unusable
		says string // then in the error
		runs []run
	}{
		{want: inFolder, runs: []run{{}, {service: "HTTP://LOCALHOST:80//"}, {workspace: "default"}, {id: "2"}, {flag: "terraform.tfstate"}, {flag: filepath.Join(here, "terraform.tfstate")},
			{backend: `"local","config":{"path":null,"workspace_dir":null}`}}},
		{want: inFolder, runs: []run{{service: "http://localhost/v1"}}},
		{want: inFolder, runs: []run{{workspace: "w"}}},
		{want: inFolder, runs: []run{{flag: "a"}, {flag: "./b/../a"}, {flag: filepath.Join(here, "a")}, {backend: `"local","config":{"path":"a"}`},
			{backend: `"local","config":{"path":"b"}`, flag: "a"}}},
		{want: inFolder, runs: []run{{backend: `"local","config":{"workspace_dir":"w"}`}}},
		{want: inFolder, runs: []run{{backend: `"http","config":{"address":"a","password":"1"}`}, {backend: `"http","config":{"address":"a","password":"2"}`}}},
		{want: inFolder, runs: []run{{command: "test", id: "1"}}},
		{want: inFolder, runs: []run{{command: "test", id: "2"}}},
		{want: "s3://b/k.agent-journal/", runs: []run{{backend: s3 + `"k"}`}, {backend: s3 + `"k","profile":null}`}, {backend: s3 + `"k"}`, flag: "a"}}},
		{want: "s3://b/k.agent-journal/", runs: []run{{backend: s3 + `"k"}`, command: "test", id: "1"}}},
		{want: "s3://b/other.agent-journal/", runs: []run{{backend: s3 + `"other"}`}}},
		{want: folder, runs: []run{{named: folder, backend: s3 + `"k","unknown":"a"}`}}},
		{want: folder, runs: []run{{named: folder, backend: bucketOf + `"b"}`}}},
		{want: folder, runs: []run{{named: folder, command: "test", id: "1"}}},
		{want: folder, runs: []run{{named: folder + "?state=a"}, {named: folder + "?state=a", backend: bucketOf + `"b"}`}, {named: folder + "?state=a", flag: "a"}}},
		{says: "unknown", runs: []run{{backend: s3 + `"k","unknown":"canary"}`}}},
		{says: "init again", runs: []run{{backend: `"canary`}, {backend: `"canary`, named: folder + "?state=a"}}},
		{says: "add ?state=NAME", runs: []run{{named: folder}, {named: folder, backend: `"http","config":{"address":"a"}`}, {named: folder, flag: "a"}}},
	} {
		for _, run := range test.runs {
			initialized(t, `{"backend":{"type":`+cmp.Or(run.backend, `"","config":{}`)+`}}`, run.workspace)
			service, err := url.Parse(cmp.Or(run.service, "http://localhost"))
			if err != nil {
				t.Fatal(err)
			}
			var named Location
			if run.named != "" {
				named = parse(t, run.named)
			}
			got := Find(named, service, &cli.Process{Command: run.command, State: run.flag, Run: cli.Run(run.id)})
			if test.want == "" {
				if err := got.Location.Unusable; err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "canary") {
					t.Errorf("%+v: %v", run, err)
				}
				continue
			}
			if got.Location.String() != test.want || got.Location.Unusable != nil || got.Location.Default != (test.want == inFolder) {
				t.Errorf("%+v: %+v", run, got.Location)
			}
			at := got.Location.String() + got.Scope
			if other, isSeen := seen[at]; isSeen && other != row {
				t.Errorf("%+v shares its records with row %d: %q", run, other, at)
			}
			if seen[at] = row; len(seen) > row+1 {
				t.Fatalf("%+v is no way to its row's place: %q", run, at)
			}
		}
	}
}

// A place that cannot be used is an error of each operation, and of nothing before.
func TestOpen_unusable(t *testing.T) {
	cause := errors.New("a setting")
	for _, l := range []Location{{Unusable: cause}, {Folder: t.TempDir(), Unusable: cause}} {
		s := l.Open("scope", new(cli.Process))
		for op, err := range storetest.Ops(t, s, "a") {
			if !errors.Is(err, cause) {
				t.Errorf("%s: %v", op, err)
			}
		}
		if s.Name("") != l.Folder {
			t.Errorf("named %s", s.Name(""))
		}
	}
}

// What is no key becomes no part of a path.
func TestCheckKey(t *testing.T) {
	bucket := parse(t, fakes3.New(t).URL)
	for key, isKey := range map[string]bool{
		"a": true, "a-1": true, strings.Repeat("k", 62): true, strings.Repeat("k", 63): false, "": false, "a/b": false, "..": false, "A": false,
	} {
		for _, l := range []Location{{Folder: t.TempDir()}, bucket} {
			s := l.Open("scope", new(cli.Process))
			_, putErr := s.Put(t.Context(), storetest.New(key), nil)
			if _, err := s.Get(t.Context(), key); (err == nil) != isKey || (putErr == nil) != isKey {
				t.Errorf("%q: %v, %v", key, err, putErr)
			}
		}
	}
}

// The guide has a section for each kind of store.
func TestKinds_areInTheGuide(t *testing.T) {
	guide, err := os.ReadFile("../../../templates/guides/journal.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds() {
		_, section, _ := strings.Cut(string(guide), "\n- With the backend `"+kind.Backend+"`")
		section, _, _ = strings.Cut(section, "\n#")
		if !strings.Contains(section, "\n- A URL is `"+kind.Scheme+"://") || !strings.Contains(section, "\n- A plan needs ") {
			t.Errorf("the guide does not say what a person must know of %s: %s", kind.Backend, section)
		}
		for _, parameter := range kind.Parameters {
			if !strings.Contains(section, "`"+parameter+"`") {
				t.Errorf("the guide does not name the parameter %s of %s", parameter, kind.Scheme)
			}
		}
	}
	described, err := filepath.Glob(filepath.Join("..", "store", "*", "README.md"))
	if folder := 1; err != nil || len(described) != len(kinds())+folder {
		t.Errorf("%d READMEs for %d kinds of stores, and the folder: %v", len(described), len(kinds()), err)
	}
}
