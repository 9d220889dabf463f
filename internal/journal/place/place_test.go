// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package place

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/test/storetest"
)

// initialized makes a data folder that has what init writes, and a selected workspace.
func initialized(t *testing.T, state, workspace string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TF_DATA_DIR", dir)
	t.Setenv("TF_WORKSPACE", "")
	for file, text := range map[string]string{"terraform.tfstate": state, "environment": workspace} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The first of each row is a place and a scope of its own. The others of the row are further ways to it.
// A test shares its records with no state, nor with another test. (N26)
//
// Red without: each part of Find and of the scope; errNoStateName, each part of its condition.
func TestFind(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("TF_HTTP_ADDRESS", "b")
	folder := t.TempDir()
	inFolder, err := filepath.Abs(".agent-journal")
	if err != nil {
		t.Fatal(err)
	}
	here := filepath.Dir(inFolder)
	type run struct {
		backend, workspace, variable, flag, command, id string
		named, service                                  string
	}
	const s3, bucketOf, http = `"s3","config":{"bucket":"b","region":"r","key":`, `"gcs","config":{"bucket":`, `"http","config":{"address":`
	// of are runs with settings of a backend that are ways to one state.
	of := func(kind string, settings ...string) (runs []run) {
		for _, set := range settings {
			runs = append(runs, run{backend: fmt.Sprintf(`%q,"config":{%s}`, kind, set)})
		}
		return runs
	}
	seen := map[string]int{}
	for row, test := range []struct {
		want string // empty: unusable
		says string // then in the error
		runs []run
	}{
		{want: inFolder, runs: []run{{}, {service: "HTTP://LOCALHOST:80//"}, {workspace: "default"}, {id: "2"}, {flag: "terraform.tfstate"}, {flag: filepath.Join(here, "terraform.tfstate")},
			{backend: `"local","config":{"path":null,"workspace_dir":null}`}, {backend: `"local","config":{"path":""}`},
			{backend: `"","config":{}},"state_store":null,"more":{`}, {workspace: "\n"}}},
		{want: inFolder, runs: []run{{backend: `"","config":{}},"state_store":{"type":"a_b"`}}},
		{want: inFolder, runs: []run{{service: "http://localhost/v1"}}},
		{want: inFolder, runs: []run{{workspace: "w"}, {workspace: " w\r\n"}, {workspace: "other", variable: "w"}}},
		{want: inFolder, runs: []run{{flag: "a"}, {flag: "./b/../a"}, {flag: filepath.Join(here, "a")}, {backend: `"local","config":{"path":"a"}`},
			{backend: `"local","config":{"path":"b"}`, flag: "a"}}},
		{want: inFolder, runs: []run{{backend: `"local","config":{"workspace_dir":"w"}`}}},
		{want: inFolder, runs: of("http", `"address":"a","username":null,"password":"1"`, `"address":"a","username":"ci","password":"2"`)},
		{want: inFolder, runs: of("http", `"address":"b"`, `"address":null`)}, // of the environment
		{want: inFolder, runs: of("consul", `"path":"p","datacenter":null,"access_token":"1"`, `"path":"p","datacenter":"","access_token":"2"`)},
		{want: inFolder, runs: of("consul", `"path":"p","datacenter":"other"`)},
		{want: inFolder, runs: of("cos", `"bucket":"b","key":"k","secret_id":"1","secret_key":"1","security_token":"1"`, `"bucket":"b","key":"k","secret_id":"2"`)},
		{want: inFolder, runs: of("cos", `"bucket":"b","key":"other"`)},
		{want: inFolder, runs: of("remote", `"organization":"o","token":"1","workspaces":[{"name":"w"}]`, `"organization":"o","workspaces":[{"name":"w"}]`)},
		{want: inFolder, runs: of("remote", `"organization":"o","workspaces":[{"name":"other"}]`)},
		{want: "gs://b/p/agent-journal/", runs: of("gcs", `"bucket":"b","prefix":"p/","credentials":"laptop.json"`,
			`"bucket":"b","prefix":"p","impersonate_service_account":"ci@example.com"`)},
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
		{says: "add ?state=NAME", runs: []run{{named: folder}, {named: folder, backend: http + `"a"}`}, {named: folder, flag: "a"}}},
	} {
		for _, run := range test.runs {
			initialized(t, `{"backend":{"type":`+cmp.Or(run.backend, `"","config":{}`)+`}}`, run.workspace)
			t.Setenv("TF_WORKSPACE", run.variable)
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
				if err := got.Location.Misconfigured; err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "canary") {
					t.Errorf("%+v: %v", run, err)
				}
				for op, err := range storetest.Ops(t, got.Location.Open("scope", new(cli.Process)), "a") {
					if !errors.Is(err, got.Location.Misconfigured) {
						t.Errorf("%+v: %s: %v", run, op, err)
					}
				}
				continue
			}
			if got.Location.String() != test.want || got.Location.Misconfigured != nil || got.Location.Default != (test.want == inFolder) {
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
	t.Setenv("TF_DATA_DIR", t.TempDir())
	if err := os.Mkdir(filepath.Join(dataFolder(), "terraform.tfstate"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := Find(Location{}, new(url.URL), new(cli.Process)); got.Location.Misconfigured == nil {
		t.Errorf("a file that cannot be read is no backend: %+v", got)
	}
}

// Each setting that says where a state in a bucket is identifies it, and null is its default.
func TestBackend_located(t *testing.T) {
	for _, kind := range kinds() {
		settings := map[string]any{}
		for name := range kind.StateSettings {
			settings[name] = "aaa"
		}
		with := func(name string, value any) (id, at string) {
			b := backend{Type: kind.Backend, Settings: maps.Clone(settings)}
			b.Settings[name] = value
			id, _ = b.id("")
			return id, defaultLocation(b).String()
		}
		same, _ := with("", nil)
		for name, usually := range kind.StateSettings {
			if other, _ := with(name, "bbb"); other == same {
				t.Errorf("%s: another %s is no other state", kind.Backend, name)
			}
			null, atNull := with(name, nil)
			if byDefault, at := with(name, usually); byDefault != null || at != atNull {
				t.Errorf("%s: with %s = null and %q, the states are %s and %s, at %s and %s", kind.Backend, name, usually, null, byDefault, atNull, at)
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
