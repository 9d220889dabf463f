// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/agentjobs/terraform-provider-agent/internal/check"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/place"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

const (
	// envJournalURL is used if journal.url is not set.
	envJournalURL = "AGENT_JOURNAL_URL"
	// envJournalForget is added to journal.forget.
	envJournalForget = "AGENT_JOURNAL_FORGET"
)

// journal returns the place that a person names for the journal, empty for the usual one, and the
// requests that a person has given up. A plan must know them, or it could not say what an earlier run
// has sent.
func (m providerModel) journal(
	ctx context.Context, diags *diag.Diagnostics,
) (named place.Location, forget []string, isEnabled bool) {
	var block struct {
		Enabled types.Bool     `tfsdk:"enabled"`
		URL     types.String   `tfsdk:"url"`
		Forget  []types.String `tfsdk:"forget"`
	}
	at := path.Root("journal")
	if value, _ := m.Journal.ToTerraformValue(ctx); !value.IsFullyKnown() {
		check.ErrorAt(diags, at, wording.UnknownJournalSettings(envJournalURL, envJournalForget))
		return named, forget, false
	}
	if !m.Journal.IsNull() {
		diags.Append(m.Journal.As(ctx, &block, basetypes.ObjectAsOptions{})...)
	}
	if !block.Enabled.IsNull() && !block.Enabled.ValueBool() {
		return named, forget, false
	}
	for _, id := range block.Forget {
		forget = append(forget, id.ValueString())
	}
	for id := range strings.SplitSeq(m.getenv(envJournalForget), ",") {
		if id = strings.TrimSpace(id); id == "" {
			continue
		}
		if !journal.ValidID(id) {
			check.ErrorAt(diags, at.AtName("forget"), wording.InvalidID.Because(fmt.Errorf(
				"the environment variable %s contains %s, which is not the id of a request", envJournalForget, wording.Quote(id))))
		}
		forget = append(forget, id)
	}
	if where := m.orEnv(block.URL, envJournalURL); !where.IsNull() {
		var err error
		if named, err = place.ParseURL(where.ValueString()); err != nil {
			check.ErrorAt(diags, at.AtName("url"), wording.InvalidJournalURL.Because(err, origin(block.URL, envJournalURL)))
		}
	}
	return named, forget, true
}
