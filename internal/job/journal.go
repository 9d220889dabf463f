// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/validate"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

func createKey(ctx context.Context, job *jobModel) journal.Key {
	triggers := map[string]*string{}
	_ = job.Triggers.ElementsAs(ctx, &triggers, true)
	sorted, _ := json.Marshal(triggers)
	return store.CreateKey(job.ProjectID.ValueString(), job.promptText().ValueString(), string(sorted))
}

func messageKey(_ context.Context, job *jobModel) journal.Key {
	return store.MessageKey(job.ProjectID.ValueString(), job.ID.ValueString(), job.promptText().ValueString())
}

// pruneJournal removes from the journal what the prior state makes superfluous.
func (m *marks) pruneJournal(ctx context.Context, j *journal.Journal, diags *diag.Diagnostics) {
	remaining, err := j.Prune(ctx, m.journal)
	reportJournalError(j, err, diags)
	m.journal = remaining
}

// reportJournalError warns once that the journal cannot be used.
func reportJournalError(j *journal.Journal, err error, diags *diag.Diagnostics) {
	if err := j.FirstError(err); err != nil {
		diags.AddWarning(wording.JournalUnusable(err))
	}
}

// reportProblem warns that the journal does not show an outcome.
func reportProblem(j *journal.Journal, outcome send.Outcome, job wording.Job, diags *diag.Diagnostics) {
	if outcome.Result == send.Sent && outcome.Problem != nil {
		diags.AddWarning(wording.JournalNotWritten(outcome.Problem, job))
		return
	}
	reportJournalError(j, outcome.Problem, diags)
}

// equalRequests returns the requests of other runs that are equal to a planned one, as far as the plan knows it.
func equalRequests(
	ctx context.Context, j *journal.Journal, key func(context.Context, *jobModel) journal.Key, plan *jobModel, diags *diag.Diagnostics,
) []*journal.Earlier {
	triggers, _ := plan.Triggers.ToTerraformValue(ctx)
	if plan.promptText().IsNull() || plan.promptText().IsUnknown() || plan.ProjectID.IsUnknown() || !triggers.IsFullyKnown() {
		return nil
	}
	found, err := j.Find(ctx, key(ctx, plan))
	reportJournalError(j, err, diags)
	return found
}

// announce warns in a plan if the apply will take over a request of an earlier run, or
// fail because of it. It returns how many there are.
func (d *ProviderData) announce(ctx context.Context, kind send.Kind, plan *jobModel, diags *diag.Diagnostics) int {
	j := d.Sender.Journal
	var found []*journal.Earlier
	if kind == send.Message {
		found = equalRequests(ctx, j, messageKey, plan, diags)
	} else {
		reportJournalError(j, j.PlansCreate(ctx, createKey(ctx, plan)), diags)
		found = slices.DeleteFunc(equalRequests(ctx, j, createKey, plan, diags), func(e *journal.Earlier) bool {
			return j.HasOwner(e.JobID) || isGivenUp(e)
		})
	}
	if len(found) > 0 {
		validate.WarnAt(diags, plan.promptPath())(wording.Announcement(kind, plan.ProjectID.ValueString(), found))
	}
	return len(found)
}

// warnOfPlace warns once, where something would be sent, that the journal may not outlive this run, or that
// entries of earlier runs are elsewhere.
func (d *ProviderData) warnOfPlace(ctx context.Context, diags *diag.Diagnostics) {
	d.warnsOfPlace.Do(func() {
		if d.OnRunner {
			diags.AddWarning(wording.JournalOnRunner(d.Sender.Journal.Location.Folder))
		}
		if number, where := d.Sender.Journal.LeftElsewhere(ctx); number > 0 {
			diags.AddWarning(wording.JournalElsewhere(number, where))
		}
	})
}

func isGivenUp(e *journal.Earlier) bool { return e.GivenUp && e.Status == store.Unknown }

// tidyJournal follows a plan that keeps a job: it removes creates that the stored state, or a person, makes
// superfluous, and warns of others with the planned prompt that no state is known to have: a
// replacement that was killed, for example. What the run that wrote this state has started beside
// the job belongs to an equal resource.
func (d *ProviderData) tidyJournal(ctx context.Context, plan *jobModel, stored journal.Ref, isImporting bool, diags *diag.Diagnostics) {
	j := d.Sender.Journal
	var others []*journal.Earlier
	for _, e := range equalRequests(ctx, j, createKey, plan, diags) {
		isOwn := e.JobID == plan.ID.ValueString()
		switch {
		case isGivenUp(e), isOwn && !isImporting && j.IsStored(stored):
			j.Remove(ctx, e.Name)
		case !isOwn && !j.HasOwner(e.JobID) && e.Run != stored.Run && !e.GivenUp:
			others = append(others, e)
		}
	}
	if len(others) > 0 {
		validate.WarnAt(diags, plan.promptPath())(wording.OtherJob(plan.facts(), others))
	}
	switch {
	case isImporting: // this run may have imported the job, so that no stored state has it
		j.Taken(plan.ID.ValueString())
	case stored.Run == "": // it was imported earlier, perhaps with another prompt
		found, err := j.StartedBy(ctx, plan.ID.ValueString())
		reportJournalError(j, err, diags)
		for _, e := range found {
			j.Remove(ctx, e.Name)
		}
	}
}
