// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/validate"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// ModifyPlan plans what an apply would do, and promises no value that the service may change. It sends nothing, but in the journal it
// releases the names of jobs that the plan replaces: see planCreate.
func (r *jobResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	defer recoverAsError(ctx, "planning", "A plan sends no prompt.", &resp.Diagnostics)
	r.provider.lacks(&resp.Diagnostics) // it plans all the same: an apply must not plan other values than the plan before it
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
	marks.plan.Successor = &successor{Name: plan.Name.ValueString()}
	replaces := marks.plan.Job
	c := d.planCreate(ctx, &plan, nil, marks, diags)
	h := holder{job: replaces}
	if tainted := d.names.predecessor(plan.projectAndName()); replaces == "" && tainted != "" {
		h = holder{job: tainted, tainted: true}
		if c.record != nil {
			h.adoption = c.record.Adoption
		}
	} else if replaces == "" {
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
	diags := &resp.Diagnostics
	if diags.Append(req.State.Get(ctx, &state)...); diags.HasError() {
		return
	}
	m, jobID := readMarks(ctx, req.Private), state.ID.ValueString()
	m.plan = planMarks{} // those of a replacement that failed
	m.write(ctx, resp.Private)
	record, _, err := d.Sender.Journal.Compare(ctx, state.ProjectID.ValueString(), state.Name.ValueString(), jobID, m.known())
	d.reportJournalError(err, diags)
	if record != nil && (record.Job != jobID || record.Adoption != m.record.Adoption) {
		return // another object has the job, or the name another job
	}
	d.planLeave(ctx, &state, m, diags)
}

// planLeave follows a plan in which a resource leaves its name: it is destroyed or renamed. If another one gets the name, this plan
// releases it.
func (d *ProviderData) planLeave(ctx context.Context, state *jobModel, m *marks, diags *diag.Diagnostics) {
	jobID, request := state.ID.ValueString(), state.request(ctx, "")
	if d.names.leave(state.projectAndName(), jobID, m.record.Adoption) {
		if err := d.release(ctx, request, &journal.Record{Job: jobID, Adoption: m.record.Adoption}); err != nil {
			addWarning(diags, wording.NameNotReleased(err, request, jobID))
		}
		addWarning(diags, wording.NotAdopted(request, state.facts()))
	}
}

// planExisting plans what becomes of a job in the state: it decides, sets the planned values, and then says what follows.
func (d *ProviderData) planExisting(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan, state jobModel
	diags := &resp.Diagnostics
	if diags.Append(req.State.Get(ctx, &state)...); diags.HasError() {
		return
	}
	marks := readMarks(ctx, req.Private)
	defer func() { marks.write(ctx, resp.Private) }()
	plan = state
	if !req.Plan.Raw.Equal(req.State.Raw) { // what the framework does is a tenth of a plan's CPU
		diags.Append(req.Plan.Get(ctx, &plan)...)
	}
	project, more := plan.readConfig(ctx, req.Config)
	options := readWaitOptions(ctx, plan.Wait, diags)
	if diags.Append(more...); diags.HasError() {
		return
	}
	proposed := plan.withoutWriteOnly()
	marks.plan = planMarks{IsPromptIgnored: plan.promptText().IsNull(), Job: state.ID.ValueString()}
	plan.ID, plan.ProjectID = state.ID, state.ProjectID

	isNewProject := !project.IsNull() && !project.Equal(state.ProjectID)
	isSent := func() bool {
		if !plan.areArgumentsKnown(ctx) {
			return false
		}
		verdict, _ := d.peekMessage(ctx, &plan, &state, diags)
		return isMessageSent(verdict)
	}
	c := decide(&plan, &state, &marks.message, options, isNewProject, isSent)

	c.setValues(&plan, &state)
	if isNewProject {
		plan.ProjectID = project
	}
	resp.RequiresReplace.Append(c.replacedAt(&plan)...)
	if planned := plan.withoutWriteOnly(); !reflect.DeepEqual(planned, proposed) { // the same
		if diags.Append(resp.Plan.Set(ctx, planned)...); diags.HasError() {
			return
		}
	}

	d.holdName(&plan, holder{job: state.ID.ValueString()}, diags)
	if c.replaces() {
		// Terraform plans a replacement twice. This call has the prior state, and its warnings are shown. The second one has none: it
		// plans a create.
		d.planCreate(ctx, &plan, &state, marks, diags)
		c.say(&plan, &state, &marks.message, diags)
		return
	}
	d.planStaying(ctx, &plan, &state, c, marks, diags)
}

// planRequest counts a request that the apply sends. Once an apply has begun, which plans each resource again, its calls refuse what is
// beyond a limit: if a plan fails there with create_before_destroy, the CLI keeps the old object as a deposed one.
func (d *ProviderData) planRequest(ctx context.Context, request send.Request, diags *diag.Diagnostics) {
	d.warnOfPlace(ctx, diags)
	if err := d.Sender.Limits.Plan(request); err != nil && !d.names.isApplying.Load() {
		addError(diags, wording.BeyondLimit(err, request))
	}
}
