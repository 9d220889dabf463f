// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// reportJournalError warns once that the journal cannot be used.
func (d *ProviderData) reportJournalError(err error, diags *diag.Diagnostics) {
	if err := d.Sender.Journal.FirstError(err); err != nil {
		addWarning(diags, wording.JournalUnusable(err))
	}
}

// reportProblem warns that the journal does not show an outcome.
func (d *ProviderData) reportProblem(operation *send.Operation, outcome send.Outcome, job wording.Job, diags *diag.Diagnostics) {
	problem := operation.Call.Problem()
	if problem != nil && outcome.Result == send.Sent {
		addWarning(diags, wording.JournalNotWritten(problem, job))
		return
	}
	d.reportJournalError(problem, diags)
}

// warnOfPlace warns once, where something is sent, that the journal may not outlive this run.
func (d *ProviderData) warnOfPlace(diags *diag.Diagnostics) {
	if d.OnRunner {
		d.warnsOfPlace.Do(func() { addWarning(diags, wording.JournalOnRunner(d.Sender.Journal.Location.Folder)) })
	}
}

// assign records that the name has the job, which was imported, without sending anything.
func (d *ProviderData) assign(ctx context.Context, job *jobModel, out stateWriter) (ok bool) {
	request := job.request(ctx, job.ID.ValueString())
	started, _ := time.Parse(time.RFC3339, job.CreatedAt.ValueString())
	operation := d.Sender.Begin(ctx, request)
	if err := operation.Call.Assign(ctx, started); err != nil {
		addError(out.diags, wording.NameNotRecorded(err, request, job.facts()))
		return false
	}
	out.marks.record.Adoption = operation.Call.Adoption()
	return true
}

// lastRequest is the id of the last request for a job, by which a person can give it up. It is empty if the journal does not show one.
func (d *ProviderData) lastRequest(ctx context.Context, job *jobModel) string {
	return d.Sender.Journal.LastRequest(ctx, job.ProjectID.ValueString(), job.Name.ValueString(), job.ID.ValueString())
}

// isGivenUp reports whether a person has given up the last request for a job in the state.
func (d *ProviderData) isGivenUp(ctx context.Context, state *jobModel) bool {
	j := d.Sender.Journal
	return len(j.Forget) > 0 && j.IsGivenUp(d.lastRequest(ctx, state))
}

// release frees the name of a job that leaves the state, unless the job stays that of the name, because its resource is only tainted. What
// may be the job of a create in this apply is left to that.
func (d *ProviderData) release(ctx context.Context, job *jobModel, m *marks) (isKept bool, _ error) {
	id, project, name := job.ID.ValueString(), job.ProjectID.ValueString(), job.Name.ValueString()
	next, adoption, prompt := m.plan.Successor, m.record.Adoption, m.message.Prompt
	isLeaving := next == nil || next.Name != name
	if next != nil && m.plan.Job == "" { // it is tainted, so these are the marks of the successor alone
		adoption, prompt = journal.AnyAdoption, next.Prompt
		isKept = next.MayBeSame && !isLeaving
	}
	if text := job.comparedPrompt(); !text.IsNull() {
		prompt = promptHash(id, text)
	}
	j := d.Sender.Journal
	if isKept || isLeaving && !d.IsTestCommand { // one run of a test must not adopt what an earlier one in the same process has destroyed
		j.Leave(project, name, journal.Left{Job: id, Arguments: job.request(ctx, "").Arguments, Prompt: prompt})
	}
	if isKept {
		return true, nil
	}
	return false, j.Release(ctx, project, name, id, adoption)
}
