// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A folder is shared by the states of one working directory. A run with other credentials is one of the same state.
func TestBackend(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TF_DATA_DIR", dir)
	backend := func(settings string) string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "terraform.tfstate"), []byte(`{"version":3,`+settings+`}`), 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := ReadBackend()
		if err != nil {
			return err.Error()
		}
		return b.ID()
	}
	for kind, test := range map[string]struct{ one, two, other string }{ // settings
		"http": {
			`"address":"https://host/state","username":null,"password":"1"`, `"address":"https://host/state","username":"ci","password":"2"`,
			`"address":"https://host/other"`,
		},
		"consul": {`"path":"p","datacenter":null,"access_token":"1"`, `"path":"p","datacenter":"","access_token":"2"`, `"path":"p","datacenter":"other"`},
		"cos": {
			`"bucket":"b","key":"k","secret_id":"1","secret_key":"1","security_token":"1"`, `"bucket":"b","key":"k","secret_id":"2"`, `"bucket":"b","key":"other"`,
		},
		"kubernetes": {`"secret_suffix":"s","token":"1"`, `"secret_suffix":"s","token":"2"`, `"secret_suffix":"other"`},
		"remote": {
			`"organization":"o","token":"1","workspaces":[{"name":"w"}]`, `"organization":"o","workspaces":[{"name":"w"}]`,
			`"organization":"o","workspaces":[{"name":"other"}]`,
		},
		"local": {`"path":null,"workspace_dir":null`, `"path":"","workspace_dir":null`, `"path":"other.tfstate"`},
	} {
		settings := func(text, hash string) string {
			return backend(`"backend":{"type":"` + kind + `","config":{` + text + `},"hash":` + hash + `}`)
		}
		one := settings(test.one, "1")
		if two := settings(test.two, "2"); one != two {
			t.Errorf("%s: two ways to one state are two states:\n%s\n%s", kind, one, two)
		}
		if one == settings(test.other, "1") {
			t.Errorf("%s: two states are one: %s", kind, one)
		}
	}
	const fromVariable = `"backend":{"type":"http","config":{"address":null}}`
	without := backend(fromVariable)
	t.Setenv("TF_HTTP_ADDRESS", "https://host/state")
	if backend(fromVariable) == without {
		t.Errorf("an address from the environment is no other state: %s", without)
	}
	if one, other := backend(`"state_store":{"type":"a_b","config":{"at":"a"}}`), backend(`"state_store":{"type":"a_b","config":{"at":"b"}}`); one == other {
		t.Errorf("two state stores are one: %s", one)
	}
	if got := backend(`"backend":{"type":"http","config":{"address":"canary"`); !strings.Contains(got, "run init again") || strings.Contains(got, "canary") {
		t.Errorf("a damaged file: %s", got)
	}
	if err := os.Mkdir(filepath.Join(dir, "as-folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TF_DATA_DIR", filepath.Join(dir, "as-folder"))
	if err := os.Mkdir(filepath.Join(dir, "as-folder", "terraform.tfstate"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadBackend(); err == nil {
		t.Errorf("a file that cannot be read is no backend: %v", got)
	}
	t.Setenv("TF_DATA_DIR", dir)
	if got := backend(`"backend":null`); got != "" {
		t.Errorf("a state that was moved back from a backend is not the local one: %s", got)
	}
}

// A file that a flag names is another state, unless it is the one that the settings name.
func TestBackend_At(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	local := func(path any) Backend {
		return Backend{Type: "local", Settings: map[string]any{"path": path, "workspace_dir": nil}}
	}
	bucket := Backend{Type: "s3", Settings: map[string]any{"bucket": "b", "key": "k"}}
	for _, test := range []struct {
		backend Backend
		file    string
		as      Backend
	}{
		{Backend{}, "", Backend{}},
		{Backend{}, "terraform.tfstate", Backend{}},
		{Backend{}, filepath.Join(here, "terraform.tfstate"), Backend{}},
		{Backend{}, "a.tfstate", local("a.tfstate")},
		{Backend{}, "./b/../a.tfstate", local("a.tfstate")},
		{Backend{}, filepath.Join(here, "a.tfstate"), local("a.tfstate")},
		{local(nil), "terraform.tfstate", local(nil)},
		{local("a.tfstate"), "", local("a.tfstate")},
		{local("a.tfstate"), "b.tfstate", local("b.tfstate")},
		{local("a.tfstate"), "terraform.tfstate", local("terraform.tfstate")},
		{bucket, "a.tfstate", bucket},
	} {
		if got, want := test.backend.At(test.file).ID(), test.as.ID(); got != want {
			t.Errorf("%+v at %q: %s, want %s", test.backend, test.file, got, want)
		}
	}
}

func TestWorkspace(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TF_DATA_DIR", dir)
	for _, test := range []struct{ selected, variable, want string }{
		{"", "", "default"}, {"a", "", "a"}, {"a", "b", "b"}, {" a\r\n", "", "a"}, {"\n", "", "default"},
	} {
		t.Setenv("TF_WORKSPACE", test.variable)
		if err := os.WriteFile(filepath.Join(dir, "environment"), []byte(test.selected), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := Workspace(); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}
