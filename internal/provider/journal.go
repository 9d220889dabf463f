// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// envJournalURL is used if journal.url is not set.
const envJournalURL = "AGENT_JOURNAL_URL"

// journal returns where the journal is kept, if it is enabled. A plan must know that,
// because it removes from the journal what the state shows.
func (m providerModel) journal(ctx context.Context, diags *diag.Diagnostics) (_ journal.Location, enabled bool) {
	var block struct {
		Enabled types.Bool   `tfsdk:"enabled"`
		URL     types.String `tfsdk:"url"`
	}
	if !m.Journal.IsNull() && !m.Journal.IsUnknown() {
		diags.Append(m.Journal.As(ctx, &block, basetypes.ObjectAsOptions{})...)
	}
	at := path.Root("journal")
	if m.Journal.IsUnknown() || block.Enabled.IsUnknown() || block.URL.IsUnknown() {
		diags.AddAttributeError(at, "Unknown journal settings", "The plan must know journal.enabled and journal.url. Use values that do not depend on resources, or the environment variable "+envJournalURL+".")
		return journal.Location{}, false
	}
	url := orEnv(block.URL, envJournalURL)
	if !block.Enabled.IsNull() && !block.Enabled.ValueBool() {
		return journal.Location{}, false
	}
	if url.IsNull() {
		return journal.Location{Folder: filepath.Join(dataFolder(), typeName)}, true
	}
	location, err := journal.ParseURL(url.ValueString())
	if err != nil {
		diags.AddAttributeError(at.AtName("url"), "Invalid journal URL", wording.Paragraphs(wording.Sentence(err), origin(block.URL, envJournalURL)))
	}
	return location, true
}

// dataFolder is where the CLI stores the data of the root module.
func dataFolder() string { return cmp.Or(os.Getenv("TF_DATA_DIR"), ".terraform") }

// journalScope distinguishes states, because two of them must never share a job. The
// CLI does not pass this on, so its files are read; an unreadable one counts as empty.
// A named journal belongs to one state anyway, and a backend's settings may contain
// tokens that change with each run. Slashes at the end of the base URL change no request.
func journalScope(baseURL string, location journal.Location) string {
	baseURL = strings.TrimRight(baseURL, "/")
	chosen, _ := os.ReadFile(filepath.Join(dataFolder(), "environment"))
	workspace := cmp.Or(os.Getenv("TF_WORKSPACE"), string(chosen), "default")
	if location.Named {
		return fmt.Sprintf("%s\n%s", baseURL, workspace)
	}
	var initialised struct {
		Backend json.RawMessage `json:"backend"`
	}
	if text, err := os.ReadFile(filepath.Join(dataFolder(), "terraform.tfstate")); err == nil {
		_ = json.Unmarshal(text, &initialised)
	}
	return fmt.Sprintf("%s\n%s\n%x", baseURL, workspace, sha256.Sum256(initialised.Backend))
}
