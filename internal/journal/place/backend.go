// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package place

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/bucket"
)

// dataFolder is where the CLI stores the data of the root module.
func dataFolder() string { return cmp.Or(os.Getenv("TF_DATA_DIR"), ".terraform") }

// workspace is the selected workspace. As the CLI does, it trims what the file holds, and
// not the variable.
func workspace() string {
	chosen, _ := os.ReadFile(filepath.Join(dataFolder(), "environment"))
	return cmp.Or(os.Getenv("TF_WORKSPACE"), strings.TrimSpace(string(chosen)), "default")
}

// backend is where the CLI keeps the state. The CLI does not tell its plugins, so this is what init
// wrote.
type backend struct {
	Type     string         `json:"type"` // empty: none; the state is local
	Settings map[string]any `json:"config"`

	stateStore string // the block of an experiment: with any difference, it is another state
}

// readBackend reads the backend, with the settings that were passed only to init.
func readBackend() (backend, error) {
	file := filepath.Join(dataFolder(), "terraform.tfstate")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return backend{}, nil
	}
	if err != nil {
		return backend{}, err
	}
	var initialized struct {
		Backend    backend         `json:"backend"`
		StateStore json.RawMessage `json:"state_store"`
	}
	if json.Unmarshal(text, &initialized) != nil { // its error may show a setting
		return backend{}, fmt.Errorf("%s, which has the settings of the backend, is damaged: run init again", file)
	}
	b := initialized.Backend
	if b.stateStore = string(initialized.StateStore); b.stateStore == "null" {
		b.stateStore = ""
	}
	return b, nil
}

// at returns the backend with the file that the flag -state names, or b without one. Only a local
// state has a file.
func (b backend) at(file string) backend {
	isLocal := b.Type == "local" || b.Type == "" && b.stateStore == ""
	if file == "" || !isLocal {
		return b
	}
	if here, err := os.Getwd(); err == nil && filepath.IsAbs(file) {
		file, _ = filepath.Rel(here, file)
	}
	at := backend{Type: "local", Settings: map[string]any{"path": filepath.Clean(file)}}
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

// id tells the state from all others that can use the same place. isKnown reports whether all
// machines find the same id. For other backends than those of Backends they may not, because each
// can spell the settings of one state in another way.
func (b backend) id() (id string, isKnown bool) {
	if kind, ok := find(func(k bucket.Kind) bool { return k.Backend == b.Type }); ok {
		return b.located(kind.Locating), true
	}
	if b.Type == "" {
		return b.stateStore, false
	}
	set := map[string]any{}
	for name, value := range b.Settings {
		if value == nil || value == "" {
			value = os.Getenv(variables[name])
		}
		// Credentials are no part of the id: a run with others is one of the same state.
		if value != "" && !credentials.MatchString(name) {
			set[name] = value
		}
	}
	where, _ := json.Marshal(set)
	return b.Type + string(where), false
}

// located names a state in a bucket by the settings that say where it is, each with its default.
// Region, endpoint and credentials are not among them: a laptop and a pipeline may reach one state
// through different ones.
func (b backend) located(defaults map[string]string) string {
	located := maps.Clone(defaults)
	for name := range located {
		if text, isText := b.Settings[name].(string); isText {
			located[name] = strings.Trim(text, "/")
		}
	}
	return fmt.Sprintf("%s%q", b.Type, located)
}

// variables are what these backends read for settings that are not set.
//
//nolint:gochecknoglobals // never changed
var variables = map[string]string{
	"address": "TF_HTTP_ADDRESS", "conn_str": "PG_CONN_STR", "hostname": "TF_CLOUD_HOSTNAME", "namespace": "KUBE_NAMESPACE",
	"organization": "TF_CLOUD_ORGANIZATION", "schema_name": "PG_SCHEMA_NAME", "table_name": "PG_TABLE_NAME",
}

var credentials = regexp.MustCompile(`^(username|password|(access_|security_)?token|(access|secret)_key|secret_id)$`)
