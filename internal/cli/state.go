// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
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

// locating are the settings of all backends that say where a state is. Region, endpoint
// and credentials are not among them: a laptop and a pipeline may reach one state through
// different ones. But some backends have no more than an address.
//
//nolint:gochecknoglobals // never changed
var locating = map[string]struct{ variable, usual string }{
	"address": {variable: "TF_HTTP_ADDRESS"}, "bucket": {}, "conn_str": {variable: "PG_CONN_STR"}, "container_name": {},
	"hostname": {"TF_CLOUD_HOSTNAME", "app.terraform.io"}, "key": {}, "namespace": {"KUBE_NAMESPACE", "default"},
	"organization": {variable: "TF_CLOUD_ORGANIZATION"}, "path": {}, "prefix": {},
	"schema_name": {"PG_SCHEMA_NAME", "terraform_remote_state"}, "secret_suffix": {}, "storage_account_name": {},
	"workspace_dir": {}, "workspace_key_prefix": {usual: "env:"}, "workspaces": {},
}

// Backend identifies the state that the data folder was initialized for, as far as its
// settings show it. The CLI does not pass it on, so its file is read; an unreadable one
// counts as empty.
func Backend() string {
	type settings struct {
		Type   string                     `json:"type"`
		Config map[string]json.RawMessage `json:"config"`
	}
	var initialized struct {
		Backend    settings        `json:"backend"`
		StateStore json.RawMessage `json:"state_store"` // experimental: any difference makes another state
	}
	text, _ := os.ReadFile(filepath.Join(DataFolder(), "terraform.tfstate"))
	if json.Unmarshal(text, &initialized) != nil {
		return ""
	}
	located, isKnown := map[string]any{}, false
	for name, value := range initialized.Backend.Config {
		setting, locates := locating[name]
		isKnown = isKnown || locates
		var text string
		switch {
		case !locates:
			continue
		case json.Unmarshal(value, &text) != nil:
			located[name] = value
			continue
		case text == "":
			text = os.Getenv(setting.variable)
		}
		if text != "" && text != setting.usual {
			located[name] = withoutCredentials(text)
		}
	}
	if !isKnown {
		return fmt.Sprint(initialized.Backend, string(initialized.StateStore))
	}
	where, _ := json.Marshal(located)
	return initialized.Backend.Type + string(where)
}

// withoutCredentials removes what may differ between two ways to reach one state: user,
// query and trailing slashes of a URL.
func withoutCredentials(text string) string {
	if at, err := url.Parse(text); err == nil && at.Host != "" {
		return host(at.Host) + "/" + strings.Trim(at.Path, "/")
	}
	return strings.Trim(text, "/")
}

// host is a host in lower case, without the usual ports of HTTP and PostgreSQL.
func host(text string) string {
	text = strings.ToLower(text)
	for _, port := range []string{":80", ":443", ":5432"} {
		text = strings.TrimSuffix(text, port)
	}
	return text
}
