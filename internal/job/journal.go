// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
)

func createKey(ctx context.Context, j *journal.Journal, job *jobModel) journal.Key {
	triggers := map[string]*string{}
	_ = job.Triggers.ElementsAs(ctx, &triggers, true)
	sorted, _ := json.Marshal(triggers)
	return j.CreateKey(job.ProjectID.ValueString(), job.promptText().ValueString(), string(sorted))
}

func messageKey(j *journal.Journal, job *jobModel) journal.Key {
	return j.MessageKey(job.ProjectID.ValueString(), job.ID.ValueString(), job.promptText().ValueString())
}

// pruneJournal removes from the journal what the prior state shows. The entries of an
// imported job stay until its prompt is recorded, because an import may be undone.
func pruneJournal(ctx context.Context, j *journal.Journal, job *jobModel, private privateState, diags *diag.Diagnostics) {
	if !job.recordedPrompt(ctx, private).missing() {
		reportJournalError(j, j.Seen(ctx, job.ID.ValueString(), getMark[journal.Ref](ctx, private, markJournal)), diags)
	}
}

// reportJournalError warns once that the journal cannot be used, and of each thing that
// was noticed while it was read.
func reportJournalError(j *journal.Journal, err error, diags *diag.Diagnostics) {
	notices, err := j.Report(err)
	for _, notice := range notices {
		diags.AddWarning(journalNotice(notice))
	}
	if err != nil {
		diags.AddWarning(journalUnusable(err, j.Named()))
	}
}

// reportProblem warns that the journal does not show an outcome.
func reportProblem(j *journal.Journal, outcome send.Outcome, job string, diags *diag.Diagnostics) {
	if outcome.Result == send.Sent && outcome.Problem != nil && j.Named() {
		diags.AddWarning(journalNotWritten(outcome.Problem, job))
		return
	}
	reportJournalError(j, outcome.Problem, diags)
}

// announce warns in a plan if the apply will take over a request of an earlier run, or
// fail because of it, as far as the plan knows the request. It reports whether the apply
// will send nothing.
func announce(ctx context.Context, j *journal.Journal, kind send.Kind, plan *jobModel, diags *diag.Diagnostics) (found bool) {
	if plan.promptText().IsUnknown() {
		return false
	}
	key := messageKey(j, plan)
	if kind == send.Create {
		triggers, _ := plan.Triggers.ToTerraformValue(ctx)
		if plan.ProjectID.IsUnknown() || !triggers.IsFullyKnown() {
			return false
		}
		key = createKey(ctx, j, plan)
	}
	orphans, err := j.Announce(ctx, key)
	reportJournalError(j, err, diags)
	if len(orphans) == 0 {
		return false
	}
	var unresolved []*journal.Orphan
	if kind == send.Create && orphans[0].Unknown {
		unresolved = j.Unresolved(ctx)
	}
	summary, detail := announcement(kind, orphans, unresolved, plan)
	diags.AddAttributeWarning(plan.promptPath(), summary, detail)
	return true
}
