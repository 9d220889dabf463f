// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
)

func (d *ProviderData) createKey(ctx context.Context, job *jobModel) journal.Key {
	triggers := map[string]*string{}
	_ = job.Triggers.ElementsAs(ctx, &triggers, true)
	sorted, _ := json.Marshal(triggers)
	return journal.CreateKey(d.Scope, job.ProjectID.ValueString(), job.promptText().ValueString(), string(sorted))
}

func (d *ProviderData) messageKey(job *jobModel) journal.Key {
	return journal.MessageKey(d.Scope, job.ProjectID.ValueString(), job.ID.ValueString(), job.promptText().ValueString())
}

// pruneJournal removes from the journal what the prior state shows. The entries of an
// imported job stay until its prompt is recorded, because an import may be undone.
func (d *ProviderData) pruneJournal(ctx context.Context, job *jobModel, private privateState, diags *diag.Diagnostics) {
	if d != nil && !job.recordedPrompt(ctx, private).missing() {
		d.reportJournalError(d.Sender.Journal.Seen(ctx, job.ID.ValueString(), getMark[journal.Ref](ctx, private, markJournal)), diags)
	}
}

// resolveImport names a create without a known outcome in the private state of an
// imported job with the same prompt, so that the next run removes its entry.
func (d *ProviderData) resolveImport(ctx context.Context, job *jobModel, private privateState) {
	if d != nil {
		setJournalRef(ctx, private, d.Sender.Journal.Imported(ctx, d.createKey(ctx, job)))
	}
}

// StateRead lets the journal forget the create that a stored object shows.
func (d *ProviderData) StateRead(ctx context.Context, object []byte) {
	var job struct{ ID *string }
	if d == nil || json.Unmarshal(object, &job) != nil || job.ID == nil {
		return
	}
	_ = d.Sender.Journal.Seen(ctx, *job.ID, journal.Ref{}) // the plan that follows announces what it could not remove
}

// reportJournalError warns once that the journal cannot be used, and of each thing that
// was noticed while it was read.
func (d *ProviderData) reportJournalError(err error, diags *diag.Diagnostics) {
	for _, notice := range d.Sender.Journal.Notices() {
		diags.AddWarning(journalNotice(notice))
	}
	if err != nil {
		d.journalWarning.Do(func() { diags.AddWarning(journalUnusable(err, d.Sender.Journal.Named())) })
	}
}

// reportProblem warns that the journal does not show an outcome.
func (d *ProviderData) reportProblem(outcome send.Outcome, job string, diags *diag.Diagnostics) {
	if outcome.Result == send.Sent && outcome.Problem != nil && d.Sender.Journal.Named() {
		diags.AddWarning(journalNotWritten(outcome.Problem, job))
		return
	}
	d.reportJournalError(outcome.Problem, diags)
}

// reportLost warns once in an apply of what earlier runs have started in the project
// and no state may show. In a named journal, that is also what clean runs have started.
func (d *ProviderData) reportLost(ctx context.Context, projectID string, diags *diag.Diagnostics) {
	if d.Sender.Journal == nil || d.Sender.Journal.Named() {
		return
	}
	d.lostWarning.Do(func() {
		elsewhere := func(o *journal.Orphan) bool { return o.Project != projectID }
		if lost := slices.DeleteFunc(d.Sender.Journal.Unresolved(ctx), elsewhere); len(lost) > 0 {
			diags.AddWarning(lostJobs(lost, projectID))
		}
	})
}

// announce warns in a plan if the apply will take over a request of an earlier run, or
// fail because of it, as far as the plan knows the request. It reports whether the apply
// will send nothing.
func (d *ProviderData) announce(ctx context.Context, kind send.Kind, plan *jobModel, diags *diag.Diagnostics) (found bool) {
	if d == nil || plan.promptText().IsUnknown() {
		return false
	}
	key := d.messageKey(plan)
	if kind == send.Create {
		triggers, _ := plan.Triggers.ToTerraformValue(ctx)
		if plan.ProjectID.IsUnknown() || !triggers.IsFullyKnown() {
			return false
		}
		key = d.createKey(ctx, plan)
	}
	orphans, err := d.Sender.Journal.Announce(ctx, key)
	d.reportJournalError(err, diags)
	if len(orphans) == 0 {
		return false
	}
	var unresolved []*journal.Orphan
	if kind == send.Create && orphans[0].Unknown {
		unresolved = d.Sender.Journal.Unresolved(ctx)
	}
	summary, detail := announcement(kind, orphans, unresolved, plan)
	diags.AddAttributeWarning(plan.promptPath(), summary, detail)
	return true
}
