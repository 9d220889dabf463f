// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

const (
	// envJournalURL is used if journal.url is not set.
	envJournalURL = "AGENT_JOURNAL_URL"
	// envJournalForget is added to journal.forget.
	envJournalForget = "AGENT_JOURNAL_FORGET"
)

// journal returns where the journal is kept, if it is enabled, and which entries to
// forget. A plan must know that, because it removes from the journal what the state shows.
func (m providerModel) journal(ctx context.Context, diags *diag.Diagnostics) (_ journal.Location, forget []string, enabled bool) {
	var block struct {
		Enabled types.Bool     `tfsdk:"enabled"`
		URL     types.String   `tfsdk:"url"`
		Forget  []types.String `tfsdk:"forget"`
	}
	at := path.Root("journal")
	if settings, _ := m.Journal.ToTerraformValue(ctx); !settings.IsFullyKnown() {
		diags.AddAttributeError(at, "Unknown journal settings", "The plan must know journal.enabled, journal.url and journal.forget. "+
			"Use values that do not depend on resources, or the environment variables "+envJournalURL+" and "+envJournalForget+".")
		return journal.Location{}, nil, false
	}
	if !m.Journal.IsNull() {
		diags.Append(m.Journal.As(ctx, &block, basetypes.ObjectAsOptions{})...)
	}
	if !block.Enabled.IsNull() && !block.Enabled.ValueBool() {
		return journal.Location{}, nil, false
	}
	for _, id := range block.Forget {
		forget = append(forget, id.ValueString())
	}
	for id := range strings.SplitSeq(os.Getenv(envJournalForget), ",") {
		forget = append(forget, strings.TrimSpace(id))
	}
	store := orEnv(block.URL, envJournalURL)
	if store.IsNull() {
		return journal.Location{Folder: filepath.Join(dataFolder(), typeName)}, forget, true
	}
	location, err := journal.ParseURL(store.ValueString())
	if err != nil {
		diags.AddAttributeError(at.AtName("url"), "Invalid journal URL", wording.Paragraphs(
			wording.Sentence(err), origin(block.URL, envJournalURL)))
	}
	return location, forget, true
}

// dataFolder is where the CLI stores the data of the root module.
func dataFolder() string { return cmp.Or(os.Getenv("TF_DATA_DIR"), ".terraform") }

// journalScope distinguishes states, because two of them must never share a job. The
// CLI does not pass this on, so its files are read; an unreadable one counts as empty.
// A named journal belongs to one state anyway. Slashes at the end of the base URL change
// no request.
func journalScope(baseURL string, location journal.Location) string {
	baseURL = strings.TrimRight(baseURL, "/")
	chosen, _ := os.ReadFile(filepath.Join(dataFolder(), "environment"))
	workspace := cmp.Or(os.Getenv("TF_WORKSPACE"), string(chosen), "default")
	if location.Named {
		return fmt.Sprintf("%s\n%s", baseURL, workspace)
	}
	return fmt.Sprintf("%s\n%s\n%x", baseURL, workspace, sha256.Sum256(backend()))
}

// locating are the settings of all backends that say where a state is. Others, such as
// tokens, may change with each run.
//
//nolint:gochecknoglobals // never changed
var locating = []string{
	"address", "bucket", "conn_str", "container_name", "endpoint", "endpoints", "hostname", "key",
	"namespace", "organization", "path", "prefix",
	"region", "resource_group_name", "schema_name", "secret_suffix", "storage_account_name", "table_name",
	"workspace_dir", "workspace_key_prefix", "workspaces",
}

// backend identifies the state that the folder was initialized for.
func backend() []byte {
	var initialized struct {
		Backend json.RawMessage `json:"backend"`
	}
	var settings struct {
		Type   string                     `json:"type"`
		Config map[string]json.RawMessage `json:"config"`
	}
	text, _ := os.ReadFile(filepath.Join(dataFolder(), "terraform.tfstate"))
	if json.Unmarshal(text, &initialized) != nil || json.Unmarshal(initialized.Backend, &settings) != nil {
		return initialized.Backend
	}
	known := map[string]any{"type": settings.Type}
	for _, name := range locating {
		var text string
		if value, set := settings.Config[name]; set && json.Unmarshal(value, &text) == nil {
			known[name] = withoutSecrets(text)
		} else if set {
			known[name] = value
		}
	}
	if len(known) == 1 { // unknown, or without settings
		return fmt.Append(nil, settings.Type, settings.Config)
	}
	located, _ := json.Marshal(known)
	return located
}

// withoutSecrets removes user and query from a URL, and the password from a connection string.
func withoutSecrets(text string) string {
	if at, err := url.Parse(text); err == nil && at.Host != "" {
		at.User, at.RawQuery = nil, ""
		return at.String()
	}
	return passwords.ReplaceAllString(text, "")
}

var passwords = regexp.MustCompile(`(?i)\b(password|passfile|user)\s*=\s*('[^']*'|\S*)\s*`)
