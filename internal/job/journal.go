// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"encoding/json"
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

// request is what the job wants for its name: a message to the job that it has, if jobID is not empty, or else a create.
func (m *jobModel) request(ctx context.Context, jobID string) send.Request {
	triggers := map[string]*string{}
	_ = m.Triggers.ElementsAs(ctx, &triggers, true)
	sorted, _ := json.Marshal(triggers)
	return send.Request{
		Wanted: journal.Wanted{
			Project: m.ProjectID.ValueString(), Name: m.Name.ValueString(), Job: jobID, Triggers: string(sorted),
			Prompt: m.comparedPrompt().ValueString(), IsPromptUnknown: m.comparedPrompt().IsUnknown(),
		},
		Text: m.promptText().ValueString(),
	}
}

// isKnown reports whether a plan knows all that the record of a name is compared with, but for the prompt.
func (m *jobModel) isKnown(ctx context.Context) bool {
	triggers, _ := m.Triggers.ToTerraformValue(ctx)
	return !m.promptText().IsNull() && !m.Name.IsUnknown() && !m.ProjectID.IsUnknown() && triggers.IsFullyKnown()
}

// planCreate plans what becomes of a create: it is sent, or the record of its name stands in the way. replaces is the job that the
// resource has had, or empty. A job that failed is kept if nothing but that asks for another one.
// Of a replacement, the first call has the state, and the second one counts.
//
// With create_before_destroy, nothing tells the apply that the record's job is the one that is being replaced, so the plan releases the
// name.
func (d *ProviderData) planCreate(
	ctx context.Context, plan *jobModel, replaces string, hasState bool, m *marks, diags *diag.Diagnostics,
) {
	request := plan.request(ctx, "")
	request.Replaces, request.RetryFailed = replaces, plan.retries(ctx)
	verdict, record, isDecided := journal.Send, (*journal.Record)(nil), false
	plans := !d.names.applies.Load() // an apply knows less: with create_before_destroy, it has not read what is replaced
	mustSay := !hasState && replaces != "" && !m.told && plans
	if plan.isKnown(ctx) {
		var err error
		verdict, record, err = d.Sender.Journal.Peek(ctx, request.Wanted)
		if err != nil && plans && replaces != "" && d.Sender.Journal.IsUnusable() {
			addError(diags, wording.NotReplaced.Of(wording.Job{ID: replaces, Project: request.Project}, err))
			return
		}
		if isDecided = err == nil; !isDecided && mustSay {
			addError(diags, wording.NameNotReleased(err, request, replaces))
		}
		d.reportJournalError(err, diags)
	}
	m.undecided = !isDecided && replaces == "" && !request.RetryFailed
	if verdict == journal.Twin && replaces == "" && d.mayReplace(plan, record.Job) {
		request.Replaces = record.Job // unless a call for the resource that has it says otherwise, it is this one, and tainted
		if d.names.isLeaving(record.Job) {
			verdict = journal.Send
			d.release(ctx, request, record, false, diags)
			validate.WarnAt(diags, path.Root("name"), wording.NotAdopted(request, wording.Job{ID: record.Job, Project: record.Project}))
		} else {
			verdict, record = d.peek(ctx, request.Wanted, diags)
			m.keepsFailed = verdict == journal.Adopt && d.names.hasFailed(record.Job) && !request.RetryFailed
		}
	}
	isOwn := record != nil && record.Job != "" && record.Job == request.Replaces
	if isOwn && (plans || verdict != journal.OtherPrompt) {
		d.names.replaces(plan.projectAndName(), record.Job)
		m.adoption = record.Adoption
	}
	if isOwn && plans && !m.keepsFailed && (verdict == journal.Adopt || verdict == journal.OtherPrompt) {
		verdict = journal.Send
		d.release(ctx, request, record, mustSay, diags)
	}
	if isDecided && record == nil && replaces != "" && plans { // another journal may have the record
		d.release(ctx, request, &journal.Record{Job: replaces}, mustSay, diags)
	}
	m.told = hasState
	switch {
	case m.keepsFailed:
		validate.WarnAt(diags, path.Root("name"), wording.StillFailed(request, record))
	case verdict == journal.Send || verdict == journal.Beside:
		d.warnOfOthers(ctx, plan, request, record, diags)
		counted := ""
		if hasState {
			counted = replaces
		}
		d.planRequest(ctx, request, counted, diags)
	case verdict != journal.Twin && plans: // the apply stops a twin, if the plan does not
		validate.WarnAt(diags, path.Root("name"), wording.Announcement(verdict, request, record))
	}
}

// mayReplace reports whether a new resource may be the tainted one of a job. It is not if this run has started the job, or if the plan
// keeps it.
func (d *ProviderData) mayReplace(plan *jobModel, jobID string) bool {
	return d.Sender.Journal.IsInState(jobID) && !d.names.isHeld(plan.projectAndName(), holder{job: jobID})
}

// planRequest counts a request that the apply sends. jobID is the job that the state has, or empty.
func (d *ProviderData) planRequest(ctx context.Context, request send.Request, jobID string, diags *diag.Diagnostics) {
	d.warnOfPlace(ctx, diags)
	if err := d.Sender.Limits.Plan(request.Kind(), jobID); err != nil {
		addError(diags, wording.BeyondLimit(err, request))
	}
}

// warnOfOthers warns of a job that the create does not adopt, and that no state is known to have.
func (d *ProviderData) warnOfOthers(
	ctx context.Context, plan *jobModel, request send.Request, record *journal.Record, diags *diag.Diagnostics,
) {
	if !plan.isKnown(ctx) || d.names.applies.Load() { // the plan has said it
		return
	}
	j := d.Sender.Journal
	switch {
	case record != nil && !record.IsFree():
		// In an apply with create_before_destroy, this would be the job that is being replaced.
		if d.Plans && record.Job != request.Replaces && !j.IsForgotten(record) {
			validate.WarnAt(diags, path.Root("name"), wording.LeftBehind(request, record))
		}
	case record == nil:
		if elsewhere := j.LeftElsewhere(ctx, request.Project, request.Name); elsewhere != nil {
			validate.WarnAt(diags, path.Root("name"), wording.RecordElsewhere(request, elsewhere))
		} else if renamed := j.Renamed(ctx, request.Wanted); renamed != nil {
			validate.WarnAt(diags, path.Root("name"), wording.Renamed(request, renamed))
		}
	}
}

// peek tells what an apply would find.
func (d *ProviderData) peek(ctx context.Context, w journal.Wanted, diags *diag.Diagnostics) (journal.Verdict, *journal.Record) {
	verdict, record, err := d.Sender.Journal.Peek(ctx, w)
	d.reportJournalError(err, diags)
	return verdict, record
}

// release frees the name of a job that this plan replaces or destroys. It must be able to if Terraform would drop a warning, as it does in
// the second call of -replace.
func (d *ProviderData) release(ctx context.Context, request send.Request, record *journal.Record, must bool, diags *diag.Diagnostics) {
	err := d.Sender.Journal.Release(ctx, request.Project, request.Name, record.Job, record.Adoption)
	switch {
	case err != nil && must:
		addError(diags, wording.NameNotReleased(err, request, record.Job))
	case err != nil:
		addWarning(diags, wording.NameNotReleased(err, request, record.Job))
	}
}

// planKept warns of what the record of a name says that a state with the job does not show, and takes back that a plan, which was not
// applied, has released it.
func (d *ProviderData) planKept(ctx context.Context, plan *jobModel, m *marks, diags *diag.Diagnostics) {
	j, facts := d.Sender.Journal, plan.facts()
	if plan.Name.IsUnknown() || plan.Name.IsNull() {
		return
	}
	record, version, err := j.Kept(ctx, facts.Project, plan.Name.ValueString(), facts.ID, m.known())
	d.reportJournalError(err, diags)
	if version != "" {
		m.version = version
	}
	switch {
	case record == nil:
	case record.Job == facts.ID && record.Released:
		if err := j.Retake(ctx, facts.Project, plan.Name.ValueString(), facts.ID, m.adoption); !errors.Is(err, store.ErrDenied) {
			d.reportJournalError(err, diags)
		}
	case record.Job == facts.ID && len(record.Previous) > 0:
		validate.WarnAt(diags, path.Root("name"), wording.PreviousJobs(facts, record))
	case record.Job == facts.ID && record.Adoption != m.adoption:
		validate.WarnAt(diags, path.Root("name"), wording.AdoptedByAnother.Of(facts, nil))
	case record.Job == facts.ID:
	case !record.IsFree() && !j.IsForgotten(record):
		validate.WarnAt(diags, path.Root("name"), wording.OtherJob(facts, record))
	}
}

// readRecord notes the version of a record that says what the state says, so that plans need not read it.
func (d *ProviderData) readRecord(ctx context.Context, job *jobModel, out stateWriter) {
	known := out.marks.version
	if d.Sender.Journal.IsElsewhere(known) {
		d.moved.Store(true)
		d.warnOfMove(out.diags)
		known = ""
	}
	_, version, err := d.Sender.Journal.Kept(ctx, job.ProjectID.ValueString(), job.Name.ValueString(), job.ID.ValueString(), known)
	d.reportJournalError(err, out.diags)
	out.marks.version, out.marks.moved = version, version != known
}

// reportJournalError warns once that the journal cannot be used.
func (d *ProviderData) reportJournalError(err error, diags *diag.Diagnostics) {
	if err := d.Sender.Journal.FirstError(err); err != nil {
		addWarning(diags, wording.JournalUnusable(err))
	}
}

// reportProblem warns that the journal does not show an outcome.
func (d *ProviderData) reportProblem(operation *send.Operation, outcome send.Outcome, job wording.Job, diags *diag.Diagnostics) {
	problem := operation.Problem()
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
		if err := d.Sender.Journal.CheckRead(ctx); err != nil && !d.names.applies.Load() {
			addWarning(diags, wording.MayBeUnwritable(err))
		}
		if at := d.Sender.Journal.Location.Unencrypted(ctx); at != "" && !d.names.applies.Load() {
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

// assign records that the name has the job, which was imported or renamed, without sending anything. isMessaged: a message follows, which
// makes a record where there is none.
func (d *ProviderData) assign(ctx context.Context, job, before *jobModel, isMessaged bool, out stateWriter) (ok bool) {
	isImported, isRenamed := before.Name.IsNull(), !before.Name.IsNull() && !job.Name.Equal(before.Name)
	request := job.request(ctx, job.ID.ValueString())
	var earlier *journal.Record
	if isRenamed {
		var err error
		if earlier, err = d.Sender.Journal.OfJob(ctx, request.Project, before.Name.ValueString(), request.Job); err != nil {
			addError(out.diags, wording.NameNotRecorded(err, request, job.facts()))
			return false
		}
	}
	if isMessaged && earlier == nil {
		return true
	}
	operation := d.Sender.Begin(ctx, request)
	started, _ := time.Parse(time.RFC3339, job.CreatedAt.ValueString()) // else nobody knows
	verdict, record, err := operation.Look(ctx)
	for err == nil {
		if verdict == journal.OtherJob && !isImported {
			addError(out.diags, wording.NotAccepted(send.Outcome{Result: send.OtherJob, Record: record}, request, wording.ApplyAgain))
			return false
		}
		if isRenamed && !record.IsFree() && record.Job == request.Job { // a run was killed after this
			break
		}
		err = operation.Assign(earlier, started, isImported) //nolint:contextcheck // it has the context of Begin, without our deadline
		if !errors.Is(err, journal.ErrTaken) {
			break
		}
		verdict, record, err = operation.Look(ctx)
	}
	if err != nil {
		addError(out.diags, wording.NameNotRecorded(err, request, job.facts()))
		return false
	}
	had := *out.marks
	out.marks.version, out.marks.adoption = operation.Version(), operation.Adoption()
	d.releaseEarlierName(ctx, job, before, &had, out.diags)
	before.Name = job.Name
	return true
}

// releaseEarlierName frees the name that a job had before it was renamed.
func (d *ProviderData) releaseEarlierName(ctx context.Context, job, before *jobModel, m *marks, diags *diag.Diagnostics) {
	if !job.Name.Equal(before.Name) {
		d.releaseName(ctx, before, m, diags)
	}
}

// releaseName frees the name of a job that is destroyed or renamed.
func (d *ProviderData) releaseName(ctx context.Context, job *jobModel, m *marks, diags *diag.Diagnostics) {
	adoption := m.adoption
	if m.creates { // these are the marks of the successor
		adoption = journal.AnyAdoption
	}
	err := d.Sender.Journal.Release(ctx, job.ProjectID.ValueString(), job.Name.ValueString(), job.ID.ValueString(), adoption)
	d.reportJournalError(err, diags)
}
