// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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

// ID tells the state from others that a folder can have a journal of, by all settings of its backend but credentials, as they are spelled.
func (b Backend) ID() string {
	if b.Type == "" {
		return b.stateStore
	}
	set := map[string]any{}
	for name, value := range b.Settings {
		if value == nil || value == "" {
			value = os.Getenv(variables[name])
		}
		if value != "" && !credentials.MatchString(name) {
			set[name] = value
		}
	}
	where, _ := json.Marshal(set)
	return b.Type + string(where)
}

// variables stand for settings that are not set.
//
//nolint:gochecknoglobals // never changed
var variables = map[string]string{
	"address": "TF_HTTP_ADDRESS", "conn_str": "PG_CONN_STR", "hostname": "TF_CLOUD_HOSTNAME", "namespace": "KUBE_NAMESPACE",
	"organization": "TF_CLOUD_ORGANIZATION", "schema_name": "PG_SCHEMA_NAME", "table_name": "PG_TABLE_NAME",
}

var credentials = regexp.MustCompile(`^(username|password|(access_|security_)?token|(access|secret)_key|secret_id)$`)
