// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package place

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
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

// A run with other credentials, or that reaches the state in another way, is one of the same state.
func TestBackend_id(t *testing.T) {
	of := func(kind, settings string) string {
		t.Helper()
		initialized(t, `{"version":3,"backend":{"type":"`+kind+`","config":{`+settings+`},"hash":1}}`, "")
		b, err := readBackend()
		id, isKnown := b.id("")
		if err != nil || isKnown != (kind == "gcs") {
			t.Errorf("%s: %v, known: %t", kind, err, isKnown)
		}
		return id
	}
	for _, test := range []struct{ kind, one, two, other string }{ // settings
		{"gcs", `"bucket":"b","prefix":"p/","credentials":"laptop.json"`, `"bucket":"b","prefix":"p","impersonate_service_account":"ci@example.com"`,
			`"bucket":"b"`},
		{"http", `"address":"https://host/state","username":null,"password":"1"`, `"address":"https://host/state","username":"ci","password":"2"`,
			`"address":"https://host/other"`},
		{"consul", `"path":"p","datacenter":null,"access_token":"1"`, `"path":"p","datacenter":"","access_token":"2"`, `"path":"p","datacenter":"other"`},
		{"cos", `"bucket":"b","key":"k","secret_id":"1","secret_key":"1","security_token":"1"`, `"bucket":"b","key":"k","secret_id":"2"`,
			`"bucket":"b","key":"other"`},
		{"remote", `"organization":"o","token":"1","workspaces":[{"name":"w"}]`, `"organization":"o","workspaces":[{"name":"w"}]`,
			`"organization":"o","workspaces":[{"name":"other"}]`},
		{"local", `"path":null,"workspace_dir":null`, `"path":"","workspace_dir":null`, `"path":"other.tfstate"`},
	} {
		one := of(test.kind, test.one)
		if two := of(test.kind, test.two); one != two {
			t.Errorf("%s: two ways to one state are two states:\n%s\n%s", test.kind, one, two)
		}
		if one == of(test.kind, test.other) {
			t.Errorf("%s: two states are one: %s", test.kind, one)
		}
	}
	without := of("http", `"address":null`)
	t.Setenv("TF_HTTP_ADDRESS", "https://host/state")
	if of("http", `"address":null`) == without {
		t.Errorf("an address from the environment is no other state: %s", without)
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

// What cannot be read is an error, which shows no setting.
func TestReadBackend(t *testing.T) {
	for text, want := range map[string]string{
		`{"backend":null,"state_store":null}`:                           `local{"path":"terraform.tfstate"}`,
		`{"state_store":{"type":"a_b"}}`:                                `{"type":"a_b"}`,
		`{"backend":{"type":"http","config":{"address":"canary","a":[}`: "run init again",
	} {
		initialized(t, text, "")
		b, err := readBackend()
		got, _ := b.id("")
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) || strings.Contains(got, "canary") {
			t.Errorf("%s: %s", text, got)
		}
	}
	t.Setenv("TF_DATA_DIR", t.TempDir())
	if err := os.Mkdir(filepath.Join(dataFolder(), "terraform.tfstate"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := readBackend(); err == nil {
		t.Errorf("a file that cannot be read is no backend: %v", got)
	}
}

func TestWorkspace(t *testing.T) {
	for _, test := range []struct{ selected, variable, want string }{
		{"", "", "default"}, {"a", "", "a"}, {"a", "b", "b"}, {" a\r\n", "", "a"}, {"\n", "", "default"},
	} {
		initialized(t, "", test.selected)
		t.Setenv("TF_WORKSPACE", test.variable)
		if got := workspace(); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}
