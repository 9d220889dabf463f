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

func messageKey(job *jobModel) journal.Key {
	return store.MessageKey(job.ProjectID.ValueString(), job.ID.ValueString(), job.promptText().ValueString())
}

// pruneJournal removes from the journal what the prior state makes superfluous.
func (m *marks) pruneJournal(ctx context.Context, j *journal.Journal, diags *diag.Diagnostics) {
	remaining, err := j.Seen(ctx, m.journal)
	reportJournalError(j, err, diags)
	m.journal = remaining
}

// reportJournalError warns once that the journal cannot be used.
func reportJournalError(j *journal.Journal, err error, diags *diag.Diagnostics) {
	if err := j.Unusable(err); err != nil {
		diags.AddWarning(wording.JournalUnusable(err, j.Named()))
	}
}

// reportProblem warns that the journal does not show an outcome.
func reportProblem(j *journal.Journal, outcome send.Outcome, job wording.Job, diags *diag.Diagnostics) {
	if outcome.Result == send.Sent && outcome.Problem != nil && j.Named() {
		diags.AddWarning(wording.JournalNotWritten(outcome.Problem, job))
		return
	}
	reportJournalError(j, outcome.Problem, diags)
}

// earlierRequests returns the requests of other runs that are equal to a planned one, as far as the
// plan knows it. isDue: an apply would send it.
func earlierRequests(
	ctx context.Context, j *journal.Journal, kind send.Kind, plan *jobModel, isDue bool, diags *diag.Diagnostics,
) []*journal.Earlier {
	triggers, _ := plan.Triggers.ToTerraformValue(ctx)
	if plan.promptText().IsNull() || plan.promptText().IsUnknown() || plan.ProjectID.IsUnknown() || !triggers.IsFullyKnown() {
		return nil
	}
	key := createKey(ctx, plan)
	if kind == send.Message {
		key = messageKey(plan)
	}
	found, err := j.Announce(ctx, key, isDue)
	reportJournalError(j, err, diags)
	return found
}

// announce warns in a plan if the apply will take over a request of an earlier run, or
// fail because of it. It reports whether the apply will send nothing.
func announce(ctx context.Context, j *journal.Journal, kind send.Kind, plan *jobModel, diags *diag.Diagnostics) bool {
	found := earlierRequests(ctx, j, kind, plan, true, diags)
	if len(found) == 0 {
		return false
	}
	validate.WarnAt(diags, plan.promptPath())(wording.Announcement(kind, plan.ProjectID.ValueString(), found))
	return true
}

// announceOther warns in a plan that keeps a job if another run has started one with the planned
// prompt that no state is known to have: a replacement that was killed, for example. What the
// run that wrote this state has started beside the job belongs to an equal resource.
func announceOther(ctx context.Context, j *journal.Journal, plan *jobModel, ref journal.Ref, diags *diag.Diagnostics) {
	found := slices.DeleteFunc(earlierRequests(ctx, j, send.Create, plan, false, diags), func(e *journal.Earlier) bool {
		return e.Run == ref.Run || e.JobID == plan.ID.ValueString() || e.Listed
	})
	if len(found) > 0 {
		validate.WarnAt(diags, plan.promptPath())(wording.OtherJob(plan.facts(), found))
	}
}
