// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// DataFolder is where the CLI stores the data of the root module.
func DataFolder() string { return cmp.Or(os.Getenv("TF_DATA_DIR"), ".terraform") }

// Workspace is the selected workspace. As the CLI does, it trims what the file holds, and
// not the variable.
func Workspace() string {
	chosen, _ := os.ReadFile(filepath.Join(DataFolder(), "environment"))
	return cmp.Or(os.Getenv("TF_WORKSPACE"), strings.TrimSpace(string(chosen)), "default")
}

// Backend is what the data folder was initialized for. The CLI does not pass it on, so its file is read.
type Backend struct {
	Type     string         `json:"type"` // empty: none; the state is local
	Settings map[string]any `json:"config"`

	stateStore string // experimental: any difference makes another state
}

// ReadBackend reads the backend, with the settings that only init got.
func ReadBackend() (Backend, error) {
	file := filepath.Join(DataFolder(), "terraform.tfstate")
	text, err := os.ReadFile(file) //nolint:gosec // the CLI reads it there, too
	if errors.Is(err, fs.ErrNotExist) {
		return Backend{}, nil
	}
	if err != nil {
		return Backend{}, err
	}
	var initialized struct {
		Backend    Backend         `json:"backend"`
		StateStore json.RawMessage `json:"state_store"`
	}
	if json.Unmarshal(text, &initialized) != nil { // its error may show a setting
		return Backend{}, fmt.Errorf("%s, which has the settings of the backend, is damaged: run init again", file)
	}
	b := initialized.Backend
	if b.stateStore = string(initialized.StateStore); b.stateStore == "null" {
		b.stateStore = ""
	}
	return b, nil
}

// IsLocal reports whether the state is on disk.
func (b Backend) IsLocal() bool { return b.Type == "local" || b.Type == "" && b.stateStore == "" }

// At returns the backend with the file that a flag names, or b without one. Only a local state has a file.
func (b Backend) At(file string) Backend {
	if file == "" || !b.IsLocal() {
		return b
	}
	if here, err := os.Getwd(); err == nil && filepath.IsAbs(file) {
		file, _ = filepath.Rel(here, file)
	}
	at := Backend{Type: "local", Settings: map[string]any{"path": filepath.Clean(file)}}
	for name, value := range b.Settings {
		if name != "path" {
			at.Settings[name] = value
		}
	}
	if path := b.Settings["path"]; at.Settings["path"] == "terraform.tfstate" && (path == nil || path == "") { // the default
		return b
	}
	return at
}

// ID identifies the state by the settings of its backend that say where it is, each with its default; nil stands for those of backends
// beside which no journal is kept. Region, endpoint and credentials are not among them: a laptop and a pipeline may reach one state
// through different ones.
func (b Backend) ID(of map[string]string) string {
	if b.Type == "" {
		return b.stateStore
	}
	if of == nil {
		of = locating
	}
	located, isKnown := map[string]any{}, false
	for name, value := range b.Settings {
		usual, locates := of[name]
		isKnown = isKnown || locates
		text, isText := value.(string)
		switch {
		case !locates:
			continue
		case !isText && value != nil:
			located[name] = withoutNulls(value)
			continue
		case text == "":
			text = os.Getenv(variables[name])
		}
		if value == nil && text == "" {
			text = usual
		}
		if text = withoutCredentials(name, text); text != usual {
			located[name] = text
		}
	}
	if !isKnown {
		return fmt.Sprint(b)
	}
	where, _ := json.Marshal(located)
	return b.Type + string(where)
}

// locating are such settings of the other backends, with their defaults. Some backends have no more than an address.
//
//nolint:gochecknoglobals // never changed
var locating = map[string]string{
	"address": "", "bucket": "", "conn_str": "", "datacenter": "", "hostname": "app.terraform.io", "key": "", "namespace": "default",
	"organization": "", "path": "", "prefix": "", "schema_name": "terraform_remote_state", "secret_suffix": "", "table_name": "states",
	"workspace_dir": "", "workspaces": "",
}

// variables are what else sets some of them.
//
//nolint:gochecknoglobals // never changed
var variables = map[string]string{
	"address": "TF_HTTP_ADDRESS", "conn_str": "PG_CONN_STR", "hostname": "TF_CLOUD_HOSTNAME", "namespace": "KUBE_NAMESPACE",
	"organization": "TF_CLOUD_ORGANIZATION", "schema_name": "PG_SCHEMA_NAME", "table_name": "PG_TABLE_NAME",
}

// withoutNulls removes what a later CLI may add to a setting that has parts.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		set := map[string]any{}
		for name, part := range value {
			if part != nil {
				set[name] = withoutNulls(part)
			}
		}
		return set
	case []any:
		var parts []any
		for _, part := range value {
			parts = append(parts, withoutNulls(part))
		}
		return parts
	}
	return value
}

// withoutCredentials removes what may differ between two ways to reach one state: scheme, user
// and query of a URL, outer slashes, and how a host is spelled.
func withoutCredentials(name, text string) string {
	if name == "hostname" {
		return CanonicalURL(&url.URL{Scheme: "https", Host: text}).Host
	}
	if at, err := url.Parse(text); err == nil && at.Host != "" {
		at = CanonicalURL(at)
		return at.Host + "/" + strings.Trim(at.Path, "/")
	}
	return strings.Trim(text, "/")
}
