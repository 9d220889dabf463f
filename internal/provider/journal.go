// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/agentjobs/terraform-provider-agent/internal/cli"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
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

// journalSettings say where the journal of a state is kept, and which entries a person has given up.
type journalSettings struct {
	location  store.Location
	elsewhere []store.Location // where it may have been
	backend   cli.Backend
	forget    []string
}

// journal returns the journal's settings, if it is enabled. A plan must know them, because it removes from
// the journal what the state shows.
func (m providerModel) journal(ctx context.Context, diags *diag.Diagnostics) (settings journalSettings, enabled bool) {
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
	for id := range strings.SplitSeq(os.Getenv(envJournalForget), ",") {
		if id = strings.TrimSpace(id); id == "" {
			continue
		}
		if !store.ValidID(id) {
			validate.ErrorAt(diags, at.AtName("forget"), wording.InvalidEntry.Because(fmt.Errorf(
				"the environment variable %s contains %s, which is not the id of an entry", envJournalForget, wording.Quote(id))))
		}
		settings.forget = append(settings.forget, id)
	}
	var err error
	if settings.backend, err = cli.ReadBackend(); err != nil {
		validate.ErrorAt(diags, at, wording.JournalNotOpened(err))
		return settings, false
	}
	usual, usualErr := usualPlace(settings.backend)
	where := orEnv(block.URL, envJournalURL)
	switch settings.location = usual; {
	case !where.IsNull():
		if settings.location, err = store.ParseURL(where.ValueString()); err != nil {
			validate.ErrorAt(diags, at.AtName("url"), wording.InvalidJournalURL.Because(err, origin(block.URL, envJournalURL)))
		}
	case usualErr != nil:
		validate.ErrorAt(diags, at, wording.JournalNotBesideState(usualErr, settings.backend.Type))
	}
	if usualErr == nil {
		settings.elsewhere = append(settings.elsewhere, usual)
	}
	return settings, true
}

// usualPlace is where the journal of a state is kept if nobody has chosen a place.
func usualPlace(b cli.Backend) (store.Location, error) {
	l, isBeside, err := store.Beside(b)
	if !isBeside {
		l = defaultFolder()
	}
	return l, err
}

// CheckJournal tries the place that a URL names, or else the environment, or else the one that a run in the working
// directory uses.
func CheckJournal(ctx context.Context, w io.Writer, url string) error {
	if url = cmp.Or(url, os.Getenv(envJournalURL)); url != "" {
		l, err := store.ParseURL(url)
		if err != nil {
			return err
		}
		return store.Check(ctx, w, l)
	}
	backend, err := cli.ReadBackend()
	if err != nil {
		return err
	}
	l, err := usualPlace(backend)
	if err != nil {
		return err
	}
	return store.Check(ctx, w, l)
}

func defaultFolder() store.Location {
	folder, err := filepath.Abs(defaultJournal)
	if err != nil {
		folder = defaultJournal
	}
	return store.Location{Folder: folder, Default: true}
}

// options are the journal's place, and others where it may have been: the default ones, and that of the local state
// before it was moved to a backend.
func (s journalSettings) options(baseURL *url.URL) journal.Options {
	place := func(l store.Location, b cli.Backend) journal.Place {
		// Two states must never share a job.
		scope := fmt.Sprintf("%s\n%s\n%s", cli.CanonicalURL(baseURL), cli.Workspace(), cmp.Or(l.State, b.ID()))
		return journal.Place{Location: l, Scope: scope}
	}
	o := journal.Options{Place: place(s.location, s.backend), Forget: s.forget}
	others := []journal.Place{place(defaultFolder(), cli.Backend{}), place(defaultFolder(), s.backend)}
	for _, l := range s.elsewhere {
		others = append(others, place(l, s.backend))
	}
	for _, other := range others {
		if other.Location.String() != o.Location.String() || other.Scope != o.Scope {
			o.Elsewhere = append(o.Elsewhere, other)
		}
	}
	return o
}

// onRunner reports whether this is a pipeline, whose working directory usually does not outlive it.
func onRunner() bool {
	return slices.ContainsFunc([]string{"CI", "TF_BUILD", "TFC_RUN_ID"}, func(variable string) bool {
		value := os.Getenv(variable)
		return value != "" && !strings.EqualFold(value, "false")
	})
}
