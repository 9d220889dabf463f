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

	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// ModifyPlan plans what an apply would do, and promises no value that the service may change. It
// sends and writes nothing.
func (r *jobResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	defer recoverAsError(ctx, "planning", "A plan sends no prompt.", &resp.Diagnostics)
	p := planner{r.provider, &resp.Diagnostics}
	// A missing setting is reported, and does not end the plan: an apply must plan what the plan before it did.
	switch {
	case req.State.Raw.IsNull():
		p.reportMissing(p.Missing.Service, p.diags)
		p.planNew(ctx, req, resp)
	case req.Plan.Raw.IsNull():
		p.reportMissing(p.Missing.Journal, p.diags)
		marks := readMarks(ctx, req.Private)
		marks.replacement = replacement{} // an earlier replacement may have failed before its Delete
		marks.write(ctx, resp.Private)
	default:
		p.planExisting(ctx, req, resp)
	}
}

// planner plans one resource.
type planner struct {
	*ProviderData
	diags *diag.Diagnostics
}

// planNew plans a job that no state has, or the one that follows a tainted resource. Of a
// replacement, this is the second call (T1, T2 in TERRAFORM.md), which finds what the first one has
// left in the private state.
func (p planner) planNew(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan jobModel
	project, more := plan.readPlan(ctx, req.Plan, req.Config)
	if p.diags.Append(more...); more.HasError() {
		return
	}
	plan.ProjectID = p.projectOr(project, p.diags)
	show := func(attribute string, value any) {
		p.diags.Append(resp.Plan.SetAttribute(ctx, path.Root(attribute), value)...)
	}
	show("project_id", plan.ProjectID)
	show("messages", types.Int64Value(0))
	if plan.PromptWO.IsNull() {
		show("prompt_wo_hash", types.StringNull())
	}

	marks := readMarks(ctx, req.Private)
	if adopted := p.planCreate(ctx, &plan, marks.replacement); adopted != "" {
		show("id", types.StringValue(adopted))
	}
	o := owner{job: marks.replacement.OldJob}
	if o.job == "" {
		o.fingerprint = plan.fingerprint(ctx)
	}
	p.checkOwner(&plan, o)
	next := plan.projectAndName()
	marks.replacement.Next = &next
	marks.write(ctx, resp.Private)
}

// foreseenCreate is a create as a plan foresees it.
type foreseenCreate struct {
	send.Outcome

	request send.Request
	// of is the replacement that the create belongs to. It is zero for a new resource, and for one that
	// follows a tainted one.
	of      replacement
	isKnown bool // the plan knows all that is compared with the record
}

// adopts returns the job that a new resource adopts for sure, or empty.
func (c foreseenCreate) adopts() (jobID string) {
	if c.Result != send.Adopted || c.request.IsPromptUnknown || c.request.RetryFailed || c.of.isOfJob() {
		return ""
	}
	return c.Record.JobID
}

// planCreate foresees a create, and says what no planned value shows. It returns the job that it adopts.
func (p planner) planCreate(ctx context.Context, plan *jobModel, of replacement) (adopted string) {
	if why := p.Sender.Journal.Misconfigured(); why != nil && of.isOfJob() && p.phase() != inApply {
		addError(p.diags, wording.NotReplaced.Of(wording.Job{ID: of.OldJob, Project: plan.ProjectID.ValueString()}, why))
		return ""
	}
	c := p.foreseeCreate(ctx, plan, of)
	if c.Result == send.MaySend {
		p.count(c.request, c.isKnown && !of.MayBeSame)
	}
	p.warnOfRecord(c.Outcome, c.request)
	return c.adopts()
}

// foreseeCreate foresees a create. As long as the plan does not know what is compared with the record, it
// may send.
func (p planner) foreseeCreate(ctx context.Context, plan *jobModel, of replacement) foreseenCreate {
	c := foreseenCreate{Outcome: send.Outcome{Result: send.MaySend}, request: plan.request(ctx, ""), of: of}
	c.request.Replaces, c.request.RetryFailed = of.OldJob, readWaitOptions(ctx, plan.Wait, p.diags).mayRetry()
	if c.isKnown = plan.isComparable(ctx) && p.isConfigured(); c.isKnown {
		var err error
		c.Outcome, err = p.Sender.Foresee(ctx, c.request)
		p.reportJournalError(err, p.diags)
	}
	return c
}

// planExisting plans what becomes of a job in the state: it decides that, sets the planned values, and
// says what these do not show.
func (p planner) planExisting(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan, state jobModel
	if p.diags.Append(req.State.Get(ctx, &state)...); p.diags.HasError() {
		return
	}
	plan = state
	if !req.Plan.Raw.Equal(req.State.Raw) { // decoding takes a tenth of a plan's CPU
		p.diags.Append(req.Plan.Get(ctx, &plan)...)
	}
	project, more := plan.readConfig(ctx, req.Config)
	options, marks := readWaitOptions(ctx, plan.Wait, p.diags), readMarks(ctx, req.Private)
	if p.diags.Append(more...); p.diags.HasError() {
		return
	}
	proposed := plan.withoutWriteOnly()
	plan.ID, plan.ProjectID = state.ID, state.ProjectID
	p.run.endCreate(state.projectAndName()) // the state has the job, so its create is over

	// Decide.
	id := state.ID.ValueString()
	foreseen, isRecordKnown := p.foreseeMessage(ctx, &plan, &state)
	e := existing{
		plan: &plan, state: &state, marks: &marks.message, options: options, foreseen: foreseen,
		isNewProject: !project.IsNull() && !project.Equal(state.ProjectID),
		hasUnknown:   project.IsUnknown() || !plan.isComparable(ctx) || !isRecordKnown,
		isGivenUp:    p.isGivenUp(ctx, &state), isRead: p.run.isRead(id),
	}
	c := e.decide()

	// Show the planned values.
	c.setValues(&plan, &state)
	if e.isNewProject {
		plan.ProjectID = project
	}
	resp.RequiresReplace.Append(c.replacedAt...)
	if planned := plan.withoutWriteOnly(); !reflect.DeepEqual(planned, proposed) {
		p.diags.Append(resp.Plan.Set(ctx, planned)...)
	}
	// Always, because Terraform may replace a job that we keep (-replace, replace_triggered_by): then the
	// second planning call reads this (T2).
	marks.replacement = replacement{OldJob: id, MayBeSame: c.mayBeSame}
	marks.write(ctx, resp.Private)

	// Say what they do not show.
	p.checkOwner(&plan, owner{job: id, keepsJob: !c.replaces()})
	if c.replaces() { // Terraform plans it again, as a create, whose warnings it drops (T2)
		p.planCreate(ctx, &plan, marks.replacement)
	}
	p.reportNeeds(c)
	p.sayPrompt(ctx, c, e)
	p.sayFailure(ctx, c, e)
}

// foreseeMessage foresees what a message with the planned prompt does. It asks the journal only if the
// prompt is new, or if the job was imported and has none yet. As long as the plan does not know the name
// and the arguments, the record counts as empty.
func (p planner) foreseeMessage(ctx context.Context, plan, state *jobModel) (foreseen send.Outcome, isRecordKnown bool) {
	if plan.promptEffect(state) == keepPrompt || !plan.isComparable(ctx) || plan.Name.ValueString() == "" {
		return send.Outcome{Result: send.MaySend}, true
	}
	foreseen, err := p.Sender.Foresee(ctx, plan.request(ctx, state.ID.ValueString()))
	p.reportJournalError(err, p.diags)
	return foreseen, err == nil && p.isConfigured()
}

// isGivenUp reports whether a person has given up the last request for a job in the state.
func (p planner) isGivenUp(ctx context.Context, state *jobModel) bool {
	j := p.Sender.Journal
	if len(j.Forget) == 0 || p.reportMissing(p.Missing.Journal, p.diags) {
		return false
	}
	id, err := j.LastRequest(ctx, state.ProjectID.ValueString(), state.Name.ValueString(), state.ID.ValueString())
	p.reportJournalError(err, p.diags)
	return j.IsGivenUp(id)
}
