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

// kind is the cloud that has the state.
func (b backend) kind() (kind bucket.Kind, ok bool) {
	for _, kind := range kinds() {
		if kind.Backend == b.Type {
			return kind, true
		}
	}
	return kind, false
}

// id tells the state from all others that can use the same place. stateFile is what the flag -state
// names, which counts for a local state only. isKnown reports whether all machines find the same
// id: only those of kinds do, because each machine can spell another backend's settings in another
// way.
func (b backend) id(stateFile string) (id string, isKnown bool) {
	if kind, ok := b.kind(); ok {
		return b.located(kind.StateSettings), true
	}
	if b.stateStore != "" {
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
	if b.Type == "" || b.Type == "local" {
		b.Type, set["path"] = "local", localPath(stateFile, b.Settings["path"])
	}
	where, _ := json.Marshal(set)
	return b.Type + string(where), false
}

// localPath is the path of a local state: that of the flag -state, or of the setting, or the default.
func localPath(flag string, setting any) string {
	path, _ := setting.(string)
	path = filepath.Clean(cmp.Or(flag, path, "terraform.tfstate"))
	if here, err := os.Getwd(); err == nil && filepath.IsAbs(path) {
		if relative, err := filepath.Rel(here, path); err == nil {
			return relative
		}
	}
	return path
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
