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
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/validate"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// ModifyPlan plans what an apply would do. It promises no value that the service may change.
func (r *jobResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	defer recoverAsError(ctx, "planning", "A plan sends no prompt.", &resp.Diagnostics)
	switch {
	case req.State.Raw.IsNull():
		r.provider.planNew(ctx, req, resp)
	case req.Plan.Raw.IsNull(): // destroy
		marks := readMarks(ctx, req.Private)
		marks.pruneJournal(ctx, r.provider.Sender.Journal, &resp.Diagnostics)
		marks.write(ctx, resp.Private)
	default:
		r.provider.planExisting(ctx, req, resp)
	}
}

// planNew plans a job that no state has. Of a replacement, this is the second call: Terraform drops its warnings.
func (d *ProviderData) planNew(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan jobModel
	project, diags := plan.readPlan(ctx, req.Plan, req.Config)
	if resp.Diagnostics.Append(diags...); diags.HasError() {
		return
	}
	plan.ProjectID = d.projectOr(project, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("project_id"), plan.ProjectID)...)
	if !d.names.plan(&plan) {
		validate.WarnAt(&resp.Diagnostics, path.Root("name"), wording.DuplicateName(plan.Name.ValueString(), plan.ProjectID.ValueString()))
	}
	d.announceOrCount(ctx, send.Create, &plan, "", &resp.Diagnostics)
}

// planExisting plans what becomes of a job in the state.
func (d *ProviderData) planExisting(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan, state jobModel
	diags, j := &resp.Diagnostics, d.Sender.Journal
	if diags.Append(req.State.Get(ctx, &state)...); diags.HasError() {
		return
	}
	marks := readMarks(ctx, req.Private)
	defer func() { marks.write(ctx, resp.Private) }()
	stored := marks.journal
	marks.pruneJournal(ctx, j, diags)
	project, more := plan.readPlan(ctx, req.Plan, req.Config)
	options := readWaitOptions(ctx, plan.Wait, diags)
	if diags.Append(more...); diags.HasError() {
		return
	}
	proposed := plan.stored()
	marks.ignored = plan.promptText().IsNull()
	plan.ID, plan.ProjectID = state.ID, state.ProjectID
	c := compare(&plan, &state, marks, options.enabled)
	c.newProject = !project.IsNull() && !project.Equal(state.ProjectID)
	c.sent = c.newPrompt && c.closedJob && len(equalRequests(ctx, j, send.Message, &plan, diags)) > 0
	if c.newJob() {
		resp.RequiresReplace.Append(c.startsJob(&plan))
	}
	if !c.replaces() {
		d.tidyJournal(ctx, &plan, stored, c.recordOnly, diags)
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
	switch {
	case c.replaces():
		// Terraform plans a replacement twice. This call has the prior state, and its warnings are shown. The second
		// one has none: it plans a create, which counts the new job, and Terraform drops its warnings.
		d.announceOrCount(ctx, send.Create, &plan, state.ID.ValueString(), diags)
	case c.message():
		if d.announceOrCount(ctx, send.Message, &plan, state.ID.ValueString(), diags) {
			return // its warning replaces the one of this plan
		}
	}
	c.explain(&plan, &state, diags)
	if marks.unconfirmed && !c.replaces() && !c.message() {
		validate.WarnAt(diags, plan.promptPath(), wording.Unconfirmed.Of(state.facts(), nil))
	}
}

// announceOrCount announces that a request was sent by an earlier run, or else counts it. It
// reports whether it was.
func (d *ProviderData) announceOrCount(
	ctx context.Context, kind send.Kind, plan *jobModel, jobID string, diags *diag.Diagnostics,
) (announced bool) {
	found := d.announce(ctx, kind, plan, diags)
	isNew := kind == send.Create && jobID == ""
	if found > 0 && (!isNew || d.Sender.Limits.TakesOver(requestKey(ctx, kind, plan), found)) {
		return true
	}
	d.warnOfPlace(ctx, diags)
	if kind == send.Create {
		d.warnOfNamesakes(ctx, plan, diags)
	}
	if err := d.Sender.Limits.Plan(kind, jobID); err != nil {
		addError(diags, wording.BeyondLimit(err, send.Request{Kind: kind, ProjectID: plan.ProjectID.ValueString(), JobID: jobID}))
	}
	return found > 0
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
	resume       bool // it has not finished: resume waiting
}

// compare compares a plan with the state. Only a plan knows whether the project is new and the prompt was sent.
func compare(plan, state *jobModel, m *marks, waits bool) change {
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
		resume:       waits && !state.ended(),
	}
}

func (c change) message() bool { return c.newPrompt && (!c.closedJob || c.sent) }

// newJob reports whether the prompt starts a job, because the present one cannot accept it.
func (c change) newJob() bool { return c.newPrompt && !c.message() && !c.mayBeUnknown }

// replaces reports whether the job is replaced. For triggers and project the schema says so.
func (c change) replaces() bool { return c.newTriggers || c.newProject || c.newJob() }

// startsJob is the attribute at which a new prompt asks for a replacement: Terraform ignores one that does not
// differ, and a write-only prompt is in no plan.
func (c change) startsJob(plan *jobModel) path.Path {
	if plan.Prompt.IsNull() {
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
