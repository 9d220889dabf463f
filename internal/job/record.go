// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/validate"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// release frees the name of a job that this plan replaces or destroys.
func (d *ProviderData) release(ctx context.Context, request send.Request, record *journal.Record) error {
	return d.Sender.Journal.Release(ctx, request.Project, request.Name, record.Job, record.Adoption)
}

// reconcileRecord warns of what the record of a name says that a state with the job does not show. If a plan that was not applied has
// released the name, it takes that back.
func (d *ProviderData) reconcileRecord(ctx context.Context, state *jobModel, m *marks, diags *diag.Diagnostics) {
	j, facts := d.Sender.Journal, state.facts()
	if state.Name.IsUnknown() || state.Name.IsNull() {
		return
	}
	record, version, err := j.Compare(ctx, facts.Project, state.Name.ValueString(), facts.ID, m.known())
	d.reportJournalError(err, diags)
	if version != "" {
		m.record.Version = version
	}
	switch {
	case record == nil:
	case record.Job == facts.ID && record.Released:
		if err := j.Retake(ctx, facts.Project, state.Name.ValueString(), facts.ID, m.record.Adoption); !errors.Is(err, store.ErrDenied) {
			d.reportJournalError(err, diags)
		}
	case record.Job == facts.ID && len(record.Previous) > 0:
		validate.WarnAt(diags, path.Root("name"), wording.PreviousJobs(facts, record))
	case record.Job == facts.ID && record.Adoption != m.record.Adoption:
		validate.WarnAt(diags, path.Root("name"), wording.AdoptedByAnother.Of(facts, nil))
	case record.Job == facts.ID:
	case !record.IsFree() && !j.IsForgotten(record):
		validate.WarnAt(diags, path.Root("name"), wording.OtherJob(facts, record))
	}
}

// readRecord notes the version of a record that says what the state says, so that plans need not read it.
func (d *ProviderData) readRecord(ctx context.Context, job *jobModel, out stateWriter) {
	known := out.marks.record.Version
	if d.Sender.Journal.IsElsewhere(known) {
		d.moved.Store(true)
		d.warnOfMove(out.diags)
		known = ""
	}
	_, version, err := d.Sender.Journal.Compare(ctx, job.ProjectID.ValueString(), job.Name.ValueString(), job.ID.ValueString(), known)
	d.reportJournalError(err, out.diags)
	out.marks.record.Version, out.marks.record.IsNewer = version, version != known
}

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

// warnOfPlace warns once, where something is sent, that the journal may not outlive this run, or that the last apply of the state kept it
// elsewhere. A thousand objects are planned in any order, so each of their calls asks.
func (d *ProviderData) warnOfPlace(ctx context.Context, diags *diag.Diagnostics) {
	d.sends.Store(true)
	d.warnsOfPlace.Do(func() {
		if d.OnRunner != "" {
			addWarning(diags, wording.JournalOnRunner(d.Sender.Journal.Location.Folder, d.OnRunner))
		}
		if err := d.Sender.Journal.CheckRead(ctx); err != nil && !d.names.isApplying.Load() {
			addWarning(diags, wording.MayBeUnwritable(err))
		}
		if at := d.Sender.Journal.Location.Unencrypted(ctx); at != "" && !d.names.isApplying.Load() {
			addWarning(diags, wording.JournalUnencrypted(at))
		}
	})
	d.warnOfMove(diags)
}

func (d *ProviderData) warnOfMove(diags *diag.Diagnostics) {
	if d.sends.Load() && d.moved.Load() {
		d.warnsOfMove.Do(func() { addWarning(diags, wording.JournalMoved(d.Sender.Journal.Location.String())) })
	}
}

// assign records that the name has the job, which was imported or renamed, and releases the earlier name, without sending anything. If a
// message follows, and the earlier name has no record, it leaves that to the message: isAssigned is false.
func (d *ProviderData) assign(
	ctx context.Context, job, before *jobModel, isMessaged bool, out stateWriter,
) (isAssigned, ok bool) {
	request := job.request(ctx, job.ID.ValueString())
	a := journal.Assignment{IsImported: before.Name.IsNull(), IsRenamed: !before.Name.IsNull() && !job.Name.Equal(before.Name)}
	a.Started, _ = time.Parse(time.RFC3339, job.CreatedAt.ValueString())
	var err error
	if a.IsRenamed {
		a.Earlier, err = d.Sender.Journal.OfJob(ctx, request.Project, before.Name.ValueString(), request.Job)
	}
	if err == nil && isMessaged && a.Earlier == nil { // else the new prompt would be recorded as sent
		return false, true
	}
	operation := d.Sender.Begin(ctx, request)
	var other *journal.Record
	if err == nil {
		other, err = operation.Call.Assign(ctx, a)
	}
	switch {
	case err != nil:
		addError(out.diags, wording.NameNotRecorded(err, request, job.facts()))
		return false, false
	case other != nil:
		addError(out.diags, wording.NotAccepted(send.Outcome{Result: send.OtherJob, Record: other}, request, wording.Resource))
		return false, false
	}
	had := *out.marks
	out.marks.record.Version, out.marks.record.Adoption = operation.Call.Version(), operation.Call.Adoption()
	d.releaseEarlierName(ctx, job, before, &had, out.diags)
	return true, true
}

// releaseEarlierName frees the name that a job had before it was renamed.
func (d *ProviderData) releaseEarlierName(ctx context.Context, job, before *jobModel, m *marks, diags *diag.Diagnostics) {
	if !job.Name.Equal(before.Name) {
		d.releaseName(ctx, before, m, diags)
	}
}

// releaseName frees the name of a job that is destroyed or renamed.
func (d *ProviderData) releaseName(ctx context.Context, job *jobModel, m *marks, diags *diag.Diagnostics) {
	adoption := m.record.Adoption
	if m.plan.Successor != nil { // these are the marks of the successor
		adoption = journal.AnyAdoption
	}
	err := d.Sender.Journal.Release(ctx, job.ProjectID.ValueString(), job.Name.ValueString(), job.ID.ValueString(), adoption)
	d.reportJournalError(err, diags)
}

// keepName has the create that follows adopt a failed job: under its successor's name perhaps, if a run that renamed the job was killed.
func (d *ProviderData) keepName(ctx context.Context, job *jobModel, successor string) error {
	project, name, id := job.ProjectID.ValueString(), cmp.Or(successor, job.Name.ValueString()), job.ID.ValueString()
	d.names.setPredecessor(projectAndName{project, name}, id)
	return d.Sender.Journal.Retake(ctx, project, name, id, journal.AnyAdoption)
}
