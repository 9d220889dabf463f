// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/place"
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

// journalSettings say where the journal of a state is kept, and which requests a person has given up.
type journalSettings struct {
	location place.Location
	backend  cli.Backend
	forget   []string
	isTest   bool // the CLI tests the configuration
}

// journal returns the journal's settings, if it is enabled. A plan must know them, or it could not say what an earlier run has sent.
func (m providerModel) journal(ctx context.Context, isTest bool, diags *diag.Diagnostics) (settings journalSettings, enabled bool) {
	settings.isTest = isTest
	var block struct {
		Enabled types.Bool     `tfsdk:"enabled"`
		URL     types.String   `tfsdk:"url"`
		Forget  []types.String `tfsdk:"forget"`
	}
	at := path.Root("journal")
	if value, _ := m.Journal.ToTerraformValue(ctx); !value.IsFullyKnown() {
		validate.ErrorAt(diags, at, wording.UnknownJournalSettings(envJournalURL, envJournalForget))
		return settings, false
	}
	if !m.Journal.IsNull() {
		diags.Append(m.Journal.As(ctx, &block, basetypes.ObjectAsOptions{})...)
	}
	if !block.Enabled.IsNull() && !block.Enabled.ValueBool() {
		return settings, false
	}
	for _, id := range block.Forget {
		settings.forget = append(settings.forget, id.ValueString())
	}
	for id := range strings.SplitSeq(m.getenv(envJournalForget), ",") {
		if id = strings.TrimSpace(id); id == "" {
			continue
		}
		if !journal.ValidID(id) {
			validate.ErrorAt(diags, at.AtName("forget"), wording.InvalidRequest.Because(fmt.Errorf(
				"the environment variable %s contains %s, which is not the id of a request", envJournalForget, wording.Quote(id))))
		}
		settings.forget = append(settings.forget, id)
	}
	where := m.orEnv(block.URL, envJournalURL)
	var named *place.Location
	if !where.IsNull() {
		l, err := place.ParseURL(where.ValueString())
		if err != nil {
			validate.ErrorAt(diags, at.AtName("url"), wording.InvalidJournalURL.Because(err, origin(block.URL, envJournalURL)))
		}
		named = &l
	}
	settings.locate(named)
	return settings, true
}

// locate finds the journal's place: the named one, if a person has named one. What makes it unusable is no error before something
// is sent.
func (s *journalSettings) locate(named *place.Location) {
	var err error
	if s.backend, err = cli.ReadBackend(); err != nil {
		s.location = place.Location{Unusable: fmt.Errorf("the backend of this state, and so its journal, cannot be found: %w", err)}
		return
	}
	if named == nil {
		s.location = usualPlace(s.backend)
		return
	}
	s.location = *named
	if _, isKnown := place.StateID(s.backend); !isKnown && named.State == "" && !s.isTest {
		s.location.Unusable = errNoStateName
	}
}

// errNoStateName keeps two states from adopting each other's jobs.
var errNoStateName = fmt.Errorf("several states can use this place, and only those of the backends %s have names that all machines know: "+
	"add ?state=NAME (or &state=NAME) to the URL of the journal, with a name that only this state has", strings.Join(place.Backends(), ", "))

// usualPlace is where the journal of a state is kept if nobody has chosen a place.
func usualPlace(b cli.Backend) place.Location {
	l, isBeside, err := place.Beside(b)
	switch {
	case !isBeside:
		return defaultFolder()
	case err != nil:
		return place.Location{Unusable: fmt.Errorf(
			"the journal is kept beside the state, but not all settings of the backend %s can be used: %w", b.Type, err)}
	}
	return l
}

func defaultFolder() place.Location {
	folder, err := filepath.Abs(defaultJournal)
	if err != nil {
		folder = defaultJournal
	}
	return place.Location{Folder: folder, Default: true}
}

// options are the journal's place. A test has a journal of its own at the same place: it must not adopt the jobs of the state.
func (s journalSettings) options(baseURL *url.URL, run cli.Run) journal.Options {
	// Two states must never share a job.
	id, _ := place.StateID(s.backend)
	scope := fmt.Sprintf("%s\n%s\n%s", cli.CanonicalURL(baseURL), cli.Workspace(), cmp.Or(s.location.State, id))
	if s.isTest {
		scope += fmt.Sprintf("\ntest %s", run)
	}
	return journal.Options{Place: journal.Place{Location: s.location, Scope: scope}, Forget: s.forget}
}
