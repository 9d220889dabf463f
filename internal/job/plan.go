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
	"github.com/agentjobs/terraform-provider-agent/internal/check"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// ModifyPlan plans what an apply would do, and promises no value that the service may change. It
// sends and writes nothing.
func (r *jobResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	defer recoverAsError(ctx, "planning", "A plan sends no prompt.", &resp.Diagnostics)
	// Without a setting it still plans, because an apply must plan what the plan before it did.
	switch {
	case req.State.Raw.IsNull():
		r.provider.reportMissing(r.provider.Missing.Service, &resp.Diagnostics)
		r.provider.planNew(ctx, req, resp)
	case req.Plan.Raw.IsNull():
		r.provider.reportMissing(r.provider.Missing.Journal, &resp.Diagnostics)
		marks := readMarks(ctx, req.Private)
		marks.replacement = replacement{} // the state may have that of one which failed before its Delete
		marks.write(ctx, resp.Private)
	default:
		r.provider.planExisting(ctx, req, resp)
	}
}

// planNew plans a job that no state has, or the one that follows a tainted resource. Of a
// replacement, this is the second call (T1, T2 in TERRAFORM.md), which finds what the first one has
// left in the private state.
func (d *ProviderData) planNew(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan jobModel
	diags := &resp.Diagnostics
	project, more := plan.readPlan(ctx, req.Plan, req.Config)
	if diags.Append(more...); more.HasError() {
		return
	}
	plan.ProjectID = d.projectOr(project, diags)
	diags.Append(resp.Plan.SetAttribute(ctx, path.Root("project_id"), plan.ProjectID)...)
	diags.Append(resp.Plan.SetAttribute(ctx, path.Root("messages"), types.Int64Value(0))...)

	if plan.PromptWO.IsNull() {
		diags.Append(resp.Plan.SetAttribute(ctx, path.Root("prompt_wo_hash"), types.StringNull())...)
	}

	marks := readMarks(ctx, req.Private)
	replaced := marks.replacement.Job
	if adopted := d.planCreate(ctx, &plan, replaced, marks.replacement.MayBeSame, diags); adopted != "" && replaced == "" {
		diags.Append(resp.Plan.SetAttribute(ctx, path.Root("id"), types.StringValue(adopted))...)
	}
	o := owner{job: replaced}
	if replaced == "" {
		o.fingerprint = plan.fingerprint(ctx)
	}
	d.checkOwner(&plan, o, diags)
	by := plan.projectAndName()
	marks.replacement.By = &by
	marks.write(ctx, resp.Private)
}

// planCreate foresees what a create does, counts what it sends within the limit, and warns of what no
// planned value shows. It returns the job that the create adopts for sure, or empty. replaced is the job
// that the create replaces, or empty; with mayBeSame, it may turn out to be adopted.
func (d *ProviderData) planCreate(
	ctx context.Context, plan *jobModel, replaced string, mayBeSame bool, diags *diag.Diagnostics,
) (adopted string) {
	isApplying, request := d.names.isApplying.Load(), plan.request(ctx, "")
	if why := d.Sender.Journal.Unusable(); replaced != "" && why != nil && !isApplying {
		addError(diags, wording.NotReplaced.Of(wording.Job{ID: replaced, Project: plan.ProjectID.ValueString()}, why))
		return ""
	}
	options := readWaitOptions(ctx, plan.Wait, diags)
	request.Replaces, request.RetryFailed = replaced, options.onFailure == onRetry || options.mayRetry
	foreseen := send.Outcome{Result: send.Accepted}
	isKnown := plan.areArgumentsKnown(ctx) && d.Sender.Client != nil // else the journal is not configured yet
	if isKnown {
		var err error
		foreseen, err = d.Sender.Foresee(ctx, request)
		d.reportJournalError(err, diags)
	}
	switch {
	case foreseen.Result.Sends():
		d.planRequest(request, isKnown && !mayBeSame, diags)
	case foreseen.Result == send.Adopted && !request.IsPromptUnknown && !request.RetryFailed:
		adopted = foreseen.Record.JobID
	}
	d.warnOfRecord(foreseen, request, diags)
	return adopted
}

// warnOfRecord says what an apply does because of the record of a name, and no planned value shows.
// "terraform apply" plans in two processes (T3), so its calls say so, but for a wait, which says
// nothing.
func (d *ProviderData) warnOfRecord(foreseen send.Outcome, request send.Request, diags *diag.Diagnostics) {
	if d.names.isApplying.Load() || d.Command == "apply" && foreseen.Result != send.Waiting {
		return
	}
	if text, isNeeded := wording.Foreseen(foreseen, request); isNeeded {
		check.WarnAt(diags, path.Root("name"), text)
	}
	if foreseen.Beside != nil {
		check.WarnAt(diags, path.Root("name"), wording.BesideAnother(request, foreseen.Beside))
	}
}

// planExisting plans what becomes of a job in the state: it decides, sets the planned values, and
// then says what these do not show.
func (d *ProviderData) planExisting(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan, state jobModel
	diags := &resp.Diagnostics
	if diags.Append(req.State.Get(ctx, &state)...); diags.HasError() {
		return
	}
	marks := readMarks(ctx, req.Private)
	plan = state
	if !req.Plan.Raw.Equal(req.State.Raw) { // decoding takes a tenth of a plan's CPU
		diags.Append(req.Plan.Get(ctx, &plan)...)
	}
	project, more := plan.readConfig(ctx, req.Config)
	options := readWaitOptions(ctx, plan.Wait, diags)
	if diags.Append(more...); diags.HasError() {
		return
	}
	proposed := plan.withoutWriteOnly()
	plan.ID, plan.ProjectID = state.ID, state.ProjectID
	d.names.endCreate(state.projectAndName())

	id, isNewProject := state.ID.ValueString(), !project.IsNull() && !project.Equal(state.ProjectID)
	isGivenUp, isRead := d.isGivenUp(ctx, &state, diags), d.names.isRead(id)
	foreseen, isRecordKnown := d.foreseeMessage(ctx, &plan, &state, diags)
	c := existing{
		plan: &plan, state: &state, marks: &marks.message, options: options,
		isNewProject: isNewProject, isUnknown: project.IsUnknown() || !plan.areArgumentsKnown(ctx) || !isRecordKnown,
		isGivenUp: isGivenUp && isRead, foreseen: foreseen.Result,
	}.decide()
	switch {
	case c.usesService():
		d.reportMissing(d.Missing.Service, diags)
	case c.effect == storePrompt:
		d.reportMissing(d.Missing.Journal, diags)
	}
	marks.replacement = replacement{Job: id, MayBeSame: c.mayBeSame}
	marks.write(ctx, resp.Private)

	c.setValues(&plan, &state)
	if isNewProject {
		plan.ProjectID = project
	}
	resp.RequiresReplace.Append(c.replacedAt...)
	if planned := plan.withoutWriteOnly(); !reflect.DeepEqual(planned, proposed) {
		if diags.Append(resp.Plan.Set(ctx, planned)...); diags.HasError() {
			return
		}
	}

	d.checkOwner(&plan, owner{job: id, keepsJob: !c.replaces()}, diags)
	request, isClosed := plan.request(ctx, id), state.isClosed(marks.message.IsClosed)
	switch record := foreseen.Record; {
	case c.replaces(): // Terraform plans it again, as a create, whose warnings it drops (T2)
		d.planCreate(ctx, &plan, id, c.mayBeSame, diags)
	case c.effect == sendMessage && plan.Name.IsNull():
		checkName(request, diags)
	case c.effect == sendMessage && foreseen.Result.Sends() && !c.isMissing && !isClosed:
		d.planRequest(request, false, diags)
	case c.effect == sendMessage && (foreseen.Result == send.OtherJob || foreseen.Result == send.Waiting):
		d.warnOfRecord(foreseen, request, diags)
	case c.effect == storePrompt && foreseen.Result == send.OtherJob && !record.IsUnknownCreate():
		// An unknown create needs no warning, because the import settles it.
		check.WarnAt(diags, path.Root("name"), wording.NameFromOther(state.facts(), record))
	}
	if isGivenUp && !isRead {
		check.WarnAt(diags, path.Root("status"), wording.GivenUpLate.Of(state.facts(), nil))
	}
	d.warn(ctx, c, &plan, &state, &marks.message, diags)
}

// foreseeMessage foresees what a message with the planned prompt does. It asks the journal if the
// prompt is new, or if the job was imported and has none yet; a plan without changes does not access
// it. As long as the plan does not know the name and the arguments, the record counts as empty.
func (d *ProviderData) foreseeMessage(
	ctx context.Context, plan, state *jobModel, diags *diag.Diagnostics,
) (foreseen send.Outcome, isRecordKnown bool) {
	if plan.promptEffect(state) == keepPrompt || !plan.areArgumentsKnown(ctx) || plan.Name.ValueString() == "" {
		return send.Outcome{Result: send.Accepted}, true
	}
	foreseen, err := d.Sender.Foresee(ctx, plan.request(ctx, state.ID.ValueString()))
	d.reportJournalError(err, diags)
	return foreseen, err == nil && d.Sender.Client != nil // else the journal is not configured yet
}

// warn says what the planned values of a job in the state do not show.
func (d *ProviderData) warn(ctx context.Context, c change, plan, state *jobModel, m *messageMarks, diags *diag.Diagnostics) {
	job := state.facts()
	job.RefusedMessage = m.IsClosed
	warn := func(at path.Path, text wording.Text) { check.WarnAt(diags, at, text.Of(job, nil)) }
	prompt, status := plan.promptPath(), path.Root("status")
	switch {
	case c.effect == replaceClosed:
		warn(prompt, wording.NewJob)
	case c.effect == replace && !c.mayBeSame && !state.hasFinished():
		warn(status, wording.ActiveReplaced)
	case c.fails:
		check.WarnAt(diags, status, wording.FailedEarlier(job, d.lastRequest(ctx, state)))
	case c.isUnnoticed && state.is(agentapi.StatusArchived):
		warn(status, wording.ArchivedUnnoticed)
	case c.isUnnoticed:
		warn(status, wording.FailedUnnoticed)
	}
	if m.Unconfirmed && !c.replaces() && c.effect != sendMessage {
		warn(prompt, wording.Unconfirmed)
	}
}

// planRequest counts a request that the apply sends. What is beyond a limit fails the plan if it is
// sure of that, and else warns: no plan is sure of a message, whose resource -replace may replace.
// Once an apply has begun, its calls refuse what is beyond a limit: an error of its own plan would
// leave the old object of a replacement with create_before_destroy as a deposed one (T4).
func (d *ProviderData) planRequest(request send.Request, isSure bool, diags *diag.Diagnostics) {
	if d.names.isApplying.Load() {
		return
	}
	if d.Command != "apply" { // it plans in two processes (T3), so its calls warn
		d.warnOfPlace(diags)
	}
	switch err := d.Sender.Limits.Plan(request, isSure); {
	case err == nil:
	case err.IsSure:
		addError(diags, wording.BeyondLimit(err, request))
	default:
		addWarning(diags, wording.BeyondLimit(err, request))
	}
}
