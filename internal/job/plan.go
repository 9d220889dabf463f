// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/validate"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// ModifyPlan plans what an apply would do. It promises no value that the service may change.
func (r *jobResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	defer recoverAsError(ctx, "planning", "A plan sends no prompt.", &resp.Diagnostics)
	switch {
	case req.State.Raw.IsNull():
		r.provider.planNew(ctx, req, resp)
	case req.Plan.Raw.IsNull():
		r.provider.planDestroy(ctx, req, resp)
	default:
		r.provider.planExisting(ctx, req, resp)
	}
}

// planNew plans a job that no state has. Of a replacement, this is the second call, which finds what the first one has left in the
// private state: Terraform drops its warnings.
func (d *ProviderData) planNew(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan jobModel
	diags := &resp.Diagnostics
	project, more := plan.readPlan(ctx, req.Plan, req.Config)
	if diags.Append(more...); more.HasError() {
		return
	}
	plan.ProjectID = d.projectOr(project, diags)
	diags.Append(resp.Plan.SetAttribute(ctx, path.Root("project_id"), plan.ProjectID)...)
	marks := readMarks(ctx, req.Private)
	marks.creates, marks.name = true, plan.Name.ValueString()
	d.planCreate(ctx, &plan, marks.planned, false, marks, diags)
	h := holder{job: marks.planned}
	if replaced := d.names.replacedBy(plan.projectAndName()); marks.planned == "" && replaced != "" {
		h = holder{job: replaced, tainted: true}
	} else if marks.planned == "" {
		h.request = plan.fingerprint(ctx)
	}
	d.holdName(&plan, h, diags)
	marks.write(ctx, resp.Private)
}

// holdName makes sure that no other resource has the name.
func (d *ProviderData) holdName(plan *jobModel, h holder, diags *diag.Diagnostics) {
	if plan.Name.ValueString() == "" || plan.ProjectID.IsUnknown() { // it is unknown, or ignore_changes hides that of an imported job
		return
	}
	d.Sender.Journal.HasName(plan.ProjectID.ValueString(), plan.Name.ValueString())
	if !d.names.hold(plan.projectAndName(), h) {
		validate.ErrorAt(diags, path.Root("name"), wording.DuplicateName(plan.Name.ValueString(), plan.ProjectID.ValueString()))
	}
}

// planDestroy plans the destruction of a job. If another resource gets its name, that one starts a new job.
func (d *ProviderData) planDestroy(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var state jobModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	m, request := readMarks(ctx, req.Private), state.request(ctx, "")
	record, _, err := d.Sender.Journal.Kept(ctx, request.Project, request.Name, state.ID.ValueString(), m.known())
	d.reportJournalError(err, &resp.Diagnostics)
	if record != nil && (record.Job != state.ID.ValueString() || record.Adoption != m.adoption) {
		return // another object has the job, or the name another job
	}
	if d.names.leave(state.projectAndName(), state.ID.ValueString()) {
		d.release(ctx, request, &journal.Record{Job: state.ID.ValueString(), Adoption: m.adoption}, false, &resp.Diagnostics)
		addWarning(&resp.Diagnostics, wording.NotAdopted(request, state.facts()))
	}
}

// planExisting plans what becomes of a job in the state.
func (d *ProviderData) planExisting(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan, state jobModel
	diags := &resp.Diagnostics
	if diags.Append(req.State.Get(ctx, &state)...); diags.HasError() {
		return
	}
	marks := readMarks(ctx, req.Private)
	defer func() { marks.write(ctx, resp.Private) }()
	project, more := plan.readPlan(ctx, req.Plan, req.Config)
	options := readWaitOptions(ctx, plan.Wait, diags)
	if diags.Append(more...); diags.HasError() {
		return
	}
	proposed, jobID := plan.stored(), state.ID.ValueString()
	marks.ignored, marks.planned = plan.promptText().IsNull(), jobID
	plan.ID, plan.ProjectID = state.ID, state.ProjectID
	c := compare(&plan, &state, marks, options)
	c.newProject = !project.IsNull() && !project.Equal(state.ProjectID)
	if c.newPrompt && c.closedJob && plan.isKnown(ctx) {
		verdict, _ := d.peekMessage(ctx, &plan, &state, true, diags)
		c.sent = verdict == journal.Adopt || verdict == journal.SentUnknown
	}
	if c.newJob() {
		resp.RequiresReplace.Append(c.startsJob(&plan))
	}
	c.setValues(&plan, &state)
	if c.newProject {
		plan.ProjectID = project
	}
	if planned := plan.stored(); !reflect.DeepEqual(planned, proposed) { // what the framework does is a twentieth of a plan's CPU
		if diags.Append(resp.Plan.Set(ctx, planned)...); diags.HasError() {
			return
		}
	}
	d.holdName(&plan, holder{job: jobID}, diags)
	if isAnnounced := d.planName(ctx, &plan, &state, c, marks, diags); isAnnounced {
		return
	}
	c.explain(&plan, &state, diags)
	if marks.unconfirmed && !c.replaces() && !c.message() {
		validate.WarnAt(diags, plan.promptPath(), wording.Unconfirmed.Of(state.facts(), nil))
	}
}

// planName plans what becomes of the name of a job in the state, and of a request for it. It reports whether it has announced what becomes
// of a message.
func (d *ProviderData) planName(
	ctx context.Context, plan, state *jobModel, c change, m *marks, diags *diag.Diagnostics,
) (isAnnounced bool) {
	jobID := state.ID.ValueString()
	if c.replaces() {
		// Terraform plans a replacement twice. This call has the prior state, and its warnings are shown. The second
		// one has none: it plans a create, which counts the new job, and Terraform drops its warnings.
		d.planCreate(ctx, plan, jobID, true, m, diags)
		return false
	}
	hasName := plan.Name.Equal(state.Name)
	if hasName {
		d.planKept(ctx, state, m, diags)
	} else if d.names.leave(state.projectAndName(), jobID) {
		d.release(ctx, state.request(ctx, ""), &journal.Record{Job: jobID, Adoption: m.adoption}, false, diags)
		addWarning(diags, wording.NotAdopted(state.request(ctx, ""), state.facts()))
	}
	if hasName && !c.message() {
		return false
	}
	request := plan.request(ctx, jobID)
	verdict, record := d.peekMessage(ctx, plan, state, c.message(), diags)
	switch {
	case verdict == journal.OtherJob && state.Name.IsNull():
		validate.WarnAt(diags, path.Root("name"), wording.NameFromOther(state.facts(), record))
		return false
	case c.message() && verdict != journal.Send, verdict == journal.OtherJob:
		validate.WarnAt(diags, path.Root("name"), wording.Announcement(verdict, request, record))
		return true
	case !hasName && !state.Name.IsNull() && record != nil && record.IsUnknownCreate():
		validate.WarnAt(diags, path.Root("name"), wording.OtherJob(state.facts(), record))
	}
	if c.message() {
		d.planRequest(ctx, request, jobID, diags)
	}
	return false
}

// peekMessage is peek for a job that gets a message or another name. Under the earlier name, the message may have been sent.
func (d *ProviderData) peekMessage(
	ctx context.Context, plan, state *jobModel, isMessage bool, diags *diag.Diagnostics,
) (journal.Verdict, *journal.Record) {
	if plan.Name.ValueString() == "" || plan.ProjectID.IsUnknown() {
		return journal.Send, nil
	}
	w := plan.request(ctx, state.ID.ValueString()).Wanted
	verdict, record := d.peek(ctx, w, diags)
	if verdict == journal.OtherJob || !isMessage || plan.Name.Equal(state.Name) || state.Name.IsNull() {
		return verdict, record
	}
	w.Name = state.Name.ValueString()
	if had, earlier := d.peek(ctx, w, diags); had == journal.Adopt || had == journal.SentUnknown {
		return had, earlier
	}
	return verdict, record
}

// change is what an apply would do to an existing job.
type change struct {
	newPrompt    bool // or an unknown one
	knownPrompt  bool
	mayBeUnknown bool // the prompt is ephemeral, and may be unknown in every plan: that must not cost a job
	recordOnly   bool // the prompt of an imported job
	newTriggers  bool
	newProject   bool
	closedJob    bool // it cannot accept messages: it failed, was archived, or refuses them
	refused      bool // it refuses messages
	restored     bool // the prompt is the last one that it accepted, and it has refused another one since
	sent         bool // an earlier run has sent the prompt to it, which the state does not show
	retries      bool // it failed, and the configuration asks for another one
	resume       bool // it has not finished: resume waiting
}

// compare compares a plan with the state. Only a plan knows whether the project is new and the prompt was sent.
func compare(plan, state *jobModel, m *marks, options waitOptions) change {
	recorded := m.recordedPrompt(state)
	imported, ignored := recorded.missing(), plan.promptText().IsNull()
	newPrompt := !imported && !ignored && !recorded.is(plan)
	return change{
		newPrompt:    newPrompt,
		knownPrompt:  !plan.promptText().IsUnknown(),
		mayBeUnknown: plan.PromptWO.IsUnknown(),
		recordOnly:   imported && !ignored,
		newTriggers:  !imported && !plan.Triggers.Equal(state.Triggers),
		closedJob:    state.is(agentapi.StatusFailed) || state.is(agentapi.StatusArchived) || m.closed,
		refused:      m.closed,
		restored:     !imported && !ignored && !newPrompt && (m.closed || m.refused != ""),
		retries:      options.onFailure == onRetry && state.is(agentapi.StatusFailed),
		resume:       options.enabled && !state.ended(),
	}
}

func (c change) message() bool { return c.newPrompt && (!c.closedJob || c.sent) }

// newJob reports whether a job is started because the present one failed, or cannot accept the prompt.
func (c change) newJob() bool { return c.retries || c.newPrompt && !c.message() && !c.mayBeUnknown }

// replaces reports whether the job is replaced. For triggers and project the schema says so.
func (c change) replaces() bool { return c.newTriggers || c.newProject || c.newJob() }

// startsJob is the attribute at which a plan asks for a replacement: Terraform ignores one that does not
// differ, and a write-only prompt is in no plan.
func (c change) startsJob(plan *jobModel) path.Path {
	if c.retries || plan.Prompt.IsNull() {
		return path.Root("status")
	}
	return path.Root("prompt")
}

// setValues sets the planned values.
func (c change) setValues(plan, state *jobModel) {
	plan.jobRecord = state.jobRecord
	if !plan.Prompt.IsNull() && plan.comparedPrompt().Equal(state.comparedPrompt()) {
		plan.Prompt = state.Prompt // else a plan would show a change that nobody can see
	}
	switch {
	case c.replaces(), c.newPrompt, c.resume:
		plan.markComputedUnknown()
	case c.recordOnly && plan.Prompt.IsNull(), c.restored: // nothing else makes Terraform call Update
		plan.Status = types.StringUnknown()
	}
}

// markComputedUnknown marks what a message or a resumed wait may change as unknown.
// id and created_at never change.
func (r *jobRecord) markComputedUnknown() {
	r.Status = types.StringUnknown()
	r.Source = types.ObjectUnknown(sourceTypes)
	r.Model = types.StringUnknown()
	r.PRLink = types.StringUnknown()
	r.ArchivedAt = types.StringUnknown()
	if r.CreatedAt.IsNull() {
		r.CreatedAt = types.StringUnknown()
	}
}

// explain warns about what the plan's symbols do not show.
func (c change) explain(plan, state *jobModel, diags *diag.Diagnostics) {
	job := state.facts()
	job.RefusedMessage = c.refused
	prompt, status := plan.promptPath(), path.Root("status")
	warn := func(at path.Path, text wording.Text) { validate.WarnAt(diags, at, text.Of(job, nil)) }
	switch {
	case c.retries:
		warn(status, wording.RetriesFailed)
	case c.newJob():
		warn(prompt, wording.NewJob)
	case c.replaces() && !state.ended():
		warn(status, wording.ActiveReplaced)
	case c.replaces():
	case c.newPrompt && c.closedJob:
		warn(prompt, wording.PromptNotKnownClosed)
	case c.message() && !c.knownPrompt:
		warn(prompt, wording.PromptNotKnown)
	case c.recordOnly && !c.resume:
		warn(prompt, wording.PromptRecorded)
	case c.message():
		warn(prompt, wording.FollowUp)
	case c.restored && !c.resume:
		warn(prompt, wording.PromptRestored)
	case c.resume:
		warn(status, wording.Unfinished)
	case state.is(agentapi.StatusFailed):
		warn(status, wording.FailedEarlier)
	}
}
