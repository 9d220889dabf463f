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
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// ModifyPlan plans what an apply would do, and promises no value that the service may change. It
// sends and writes nothing.
func (r *jobResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	defer recoverAsError(ctx, "planning", "A plan sends no prompt.", &resp.Diagnostics)
	// Without a setting it still plans, because an apply must plan what the plan before it did.
	r.provider.reportMissing(&resp.Diagnostics)
	switch {
	case req.State.Raw.IsNull():
		r.provider.planNew(ctx, req, resp)
	case req.Plan.Raw.IsNull():
		marks := readMarks(ctx, req.Private)
		// The state may have the marks of a replacement that was planned, and failed before its Delete. In a
		// destroy, they would tell Delete of a successor that does not exist.
		marks.plan = planMarks{}
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

	marks := readMarks(ctx, req.Private)
	c := d.planCreate(ctx, &plan, marks.plan.Job, marks.plan.MayBeSame, diags)
	if adopted := c.adopted(); adopted != "" {
		diags.Append(resp.Plan.SetAttribute(ctx, path.Root("id"), types.StringValue(adopted))...)
	}

	o, found := owner{job: c.replaced}, ""
	if o.job == "" {
		o.id = plan.fingerprint(ctx)
	}
	if c.verdict == journal.Adopt || c.verdict == journal.OtherPrompt || c.verdict == journal.Continue {
		found = c.record.Job
	}
	d.checkOwner(&plan, o, found, diags)
	marks.plan.Successor = &successor{
		Project: plan.ProjectID.ValueString(), Name: plan.Name.ValueString(),
		MayKeepJob: c.mayKeepJob(), Prompt: d.names.promptOf(plan.projectAndName()),
	}
	marks.write(ctx, resp.Private)
}

// planCreate asks the journal what a create would find, counts what the apply sends within the
// limit, and warns of what no planned value shows. replaced is the job that it replaces, or empty;
// with mayBeSame, it may turn out to be adopted.
func (d *ProviderData) planCreate(
	ctx context.Context, plan *jobModel, replaced string, mayBeSame bool, diags *diag.Diagnostics,
) plannedCreate {
	j, isApplying := d.Sender.Journal, d.names.isApplying.Load()
	c := plannedCreate{request: plan.request(ctx, ""), replaced: replaced}
	if why := j.Unusable(); replaced != "" && why != nil && !isApplying {
		addError(diags, wording.NotReplaced.Of(wording.Job{ID: replaced, Project: plan.ProjectID.ValueString()}, why))
		return c
	}
	c.request.RetryFailed = readWaitOptions(ctx, plan.Wait, diags).onFailure == onRetry
	isKnown := plan.areArgumentsKnown(ctx) && d.Sender.Client != nil // else the journal is not configured yet
	if isKnown {
		var err error
		c.verdict, c.record, err = j.Peek(ctx, c.request.Wanted)
		d.reportJournalError(err, diags)
	}
	if c.sends() {
		d.planRequest(c.request, isKnown && !mayBeSame, diags)
	}
	// A job beside another one is shown by the plan command only: an apply's own plan cannot tell
	// it from a replacement with create_before_destroy (T3), which also sends while the name has a
	// job.
	if text, isNeeded := c.warning(); isNeeded && !isApplying && (c.verdict != journal.Send || d.Command == "plan") {
		WarnAt(diags, path.Root("name"), text)
	}
	return c
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
	d.names.forgetCreate(state.projectAndName(), state.ID.ValueString())
	d.names.noteState(&state.shownJob, &marks.message)

	isNewProject := !project.IsNull() && !project.Equal(state.ProjectID)
	verdict, record := d.peekMessage(ctx, &plan, &state, &marks.message, diags)
	c := existing{
		plan: &plan, state: &state, marks: &marks.message, options: options,
		isNewProject: isNewProject, isUnknown: project.IsUnknown() || !plan.areArgumentsKnown(ctx),
		isGivenUp: d.isGivenUp(ctx, &state), verdict: verdict,
	}.decide()
	marks.plan = planMarks{IsPromptIgnored: plan.promptText().IsNull(), Job: state.ID.ValueString(), MayBeSame: c.mayBeSame}
	marks.write(ctx, resp.Private)

	c.setValues(ctx, &plan, &state)
	if isNewProject {
		plan.ProjectID = project
	}
	resp.RequiresReplace.Append(c.replacedAt...)
	if planned := plan.withoutWriteOnly(); !reflect.DeepEqual(planned, proposed) {
		if diags.Append(resp.Plan.Set(ctx, planned)...); diags.HasError() {
			return
		}
	}

	id := state.ID.ValueString()
	d.checkOwner(&plan, owner{job: id, keepsJob: !c.replaces()}, "", diags)
	request := plan.request(ctx, id)
	switch {
	case c.replaces(): // Terraform plans it again, as a create, whose warnings it drops (T2)
		d.planCreate(ctx, &plan, id, c.mayBeSame, diags)
	case c.effect == sendMessage && plan.Name.IsNull():
		checkName(request, diags)
	case c.effect == sendMessage && (verdict == journal.OtherJob || verdict == journal.Wait):
		WarnAt(diags, path.Root("name"), wording.WillStop(verdict, request, record))
	case c.effect == sendMessage && verdict == journal.Send && !c.isMissing && !c.isClosed:
		d.planRequest(request, false, diags)
	case c.effect == storePrompt && verdict == journal.OtherJob && !record.IsUnknownCreate():
		// An unknown create needs no warning, because the import settles it.
		WarnAt(diags, path.Root("name"), wording.NameFromOther(state.facts(), record))
	}
	d.warn(ctx, c, &plan, &state, &marks.message, diags)
}

// peekMessage asks the journal what a message with the planned prompt would find in the record of
// the name. It does so if the prompt is new, or if the job was imported and has none yet; a plan
// without changes does not access the journal. As long as the plan does not know the name and the
// arguments, the record counts as empty.
func (d *ProviderData) peekMessage(
	ctx context.Context, plan, state *jobModel, m *messageMarks, diags *diag.Diagnostics,
) (journal.Verdict, *journal.Record) {
	if plan.promptText().IsNull() || m.isLastPrompt(plan, state) || !plan.areArgumentsKnown(ctx) || plan.Name.ValueString() == "" {
		return journal.Send, nil
	}
	verdict, record, err := d.Sender.Journal.Peek(ctx, plan.request(ctx, plan.ID.ValueString()).Wanted)
	d.reportJournalError(err, diags)
	return verdict, record
}

// warn says what the planned values of a job in the state do not show.
func (d *ProviderData) warn(ctx context.Context, c change, plan, state *jobModel, m *messageMarks, diags *diag.Diagnostics) {
	job := state.facts()
	job.RefusedMessage = m.IsClosed
	warn := func(at path.Path, text wording.Text) { WarnAt(diags, at, text.Of(job, nil)) }
	prompt, status := plan.promptPath(), path.Root("status")
	switch {
	case c.effect == replaceClosed:
		warn(prompt, wording.NewJob)
	case c.effect == replace && !state.hasFinished():
		warn(status, wording.ActiveReplaced)
	case c.effect == sendMessage && c.isClosed && plan.promptText().IsUnknown():
		warn(prompt, wording.PromptNotKnownClosed)
	case c.fails:
		WarnAt(diags, status, wording.FailedEarlier(job, d.lastRequest(ctx, state)))
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
	d.warnOfPlace(diags)
	switch err := d.Sender.Limits.Plan(request, isSure); {
	case err == nil:
	case err.IsSure:
		addError(diags, wording.BeyondLimit(err, request))
	default:
		addWarning(diags, wording.BeyondLimit(err, request))
	}
}
