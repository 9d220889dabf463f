// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/validate"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

const (
	// envJournalURL is used if journal.url is not set.
	envJournalURL = "AGENT_JOURNAL_URL"
	// envJournalForget is added to journal.forget.
	envJournalForget = "AGENT_JOURNAL_FORGET"
	// defaultJournal is in the working directory, and not in the data folder, which people delete and pipelines cache.
	defaultJournal = ".agent-journal"
)

// journal returns where the journal is kept, if it is enabled, and which entries to
// forget. A plan must know that, because it removes from the journal what the state shows.
func (m providerModel) journal(ctx context.Context, diags *diag.Diagnostics) (_ store.Location, forget []string, enabled bool) {
	var block struct {
		Enabled types.Bool     `tfsdk:"enabled"`
		URL     types.String   `tfsdk:"url"`
		Forget  []types.String `tfsdk:"forget"`
	}
	at := path.Root("journal")
	if settings, _ := m.Journal.ToTerraformValue(ctx); !settings.IsFullyKnown() {
		validate.ErrorAt(diags, at, wording.UnknownJournalSettings(envJournalURL, envJournalForget))
		return store.Location{}, nil, false
	}
	if !m.Journal.IsNull() {
		diags.Append(m.Journal.As(ctx, &block, basetypes.ObjectAsOptions{})...)
	}
	if !block.Enabled.IsNull() && !block.Enabled.ValueBool() {
		return store.Location{}, nil, false
	}
	for _, id := range block.Forget {
		forget = append(forget, id.ValueString())
	}
	for id := range strings.SplitSeq(os.Getenv(envJournalForget), ",") {
		if id = strings.TrimSpace(id); id == "" {
			continue
		}
		if !store.ValidID(id) {
			validate.ErrorAt(diags, at.AtName("forget"), wording.InvalidEntry.Because(fmt.Errorf(
				"the environment variable %s contains %s, which is not the id of an entry", envJournalForget, wording.Quote(id))))
		}
		forget = append(forget, id)
	}
	where := orEnv(block.URL, envJournalURL)
	if where.IsNull() {
		return defaultLocation(), forget, true
	}
	location, err := store.ParseURL(where.ValueString())
	if err != nil {
		validate.ErrorAt(diags, at.AtName("url"), wording.InvalidJournalURL.Because(err, origin(block.URL, envJournalURL)))
	}
	return location, forget, true
}

func defaultLocation() store.Location {
	folder, err := filepath.Abs(defaultJournal)
	if err != nil {
		folder = defaultJournal
	}
	return store.Location{Folder: folder, Default: true}
}

// onRunner reports whether this is a pipeline, whose working directory usually does not outlive it.
func onRunner() bool {
	return slices.ContainsFunc([]string{"CI", "TF_BUILD", "TFC_RUN_ID"}, func(variable string) bool {
		value := os.Getenv(variable)
		return value != "" && !strings.EqualFold(value, "false")
	})
}

// journalScope distinguishes states, because two of them must never share a job. Slashes at
// the end of the base URL change no request.
func journalScope(baseURL string, location store.Location) string {
	state := cmp.Or(location.State, cli.Backend())
	return fmt.Sprintf("%s\n%s\n%s", strings.TrimRight(baseURL, "/"), cli.Workspace(), state)
}
