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

// planJob plans what an apply would do. It promises no value that the service may change.
func planJob(ctx context.Context, provider *ProviderData, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan, state jobModel
	diags := &resp.Diagnostics
	defer recovered(ctx, "planning", "A plan sends no prompt.", diags)
	kept, j := readMarks(ctx, req.Private), provider.Sender.Journal
	ref := kept.journal
	if !req.State.Raw.IsNull() {
		if diags.Append(req.State.Get(ctx, &state)...); diags.HasError() {
			return
		}
		defer func() { kept.write(ctx, resp.Private) }()
		kept.pruneJournal(ctx, j, diags)
	}
	if req.Plan.Raw.IsNull() {
		return // destroy
	}
	project, more := plan.readPlan(ctx, req.Plan, req.Config)
	if diags.Append(more...); diags.HasError() {
		return
	}
	if req.State.Raw.IsNull() {
		plan.ProjectID = provider.projectOr(project, diags)
		diags.Append(resp.Plan.SetAttribute(ctx, path.Root("project_id"), plan.ProjectID)...)
		provider.announceOrCount(ctx, send.Create, &plan, "", diags)
		return
	}
	options := readWaitOptions(ctx, plan.Wait, diags)
	if diags.HasError() {
		return
	}
	proposed := plan.stored()
	kept.ignored = plan.promptText().IsNull()
	plan.ID, plan.ProjectID = state.ID, state.ProjectID
	sent := func() bool { return len(earlierRequests(ctx, j, send.Message, &plan, true, diags)) > 0 }
	d := decide(compare(&plan, &state, kept.recordedPrompt(&state), options.enabled, sent), &plan, &state, project)
	for _, attribute := range d.replacedBy {
		resp.RequiresReplace.Append(path.Root(attribute))
	}
	d.setValues(&plan, &state)
	if planned := plan.stored(); !reflect.DeepEqual(planned, proposed) { // what the framework does is a twentieth of a plan's CPU
		if diags.Append(resp.Plan.Set(ctx, planned)...); diags.HasError() {
			return
		}
	}
	switch {
	case d.recordOnly:
		j.Imported(state.ID.ValueString())
	case ref.Run == "":
		reportJournalError(j, j.ShownByImport(ctx, state.ID.ValueString()), diags)
	case !d.newPrompt:
		earlierRequests(ctx, j, send.Message, &plan, false, diags) // which removes those that runs without a lock have left
	}
	if !d.replaces() {
		announceOther(ctx, j, &plan, ref, diags)
	}
	switch {
	case d.replaces():
		// Terraform plans a replacement twice. This call has the prior state, and its warnings are shown. The second
		// one has none: it plans a create, which counts the new job, and Terraform drops its warnings.
		provider.announceOrCount(ctx, send.Create, &plan, state.ID.ValueString(), diags)
	case d.message():
		if provider.announceOrCount(ctx, send.Message, &plan, state.ID.ValueString(), diags) {
			return // its warning replaces the one of this plan
		}
	}
	d.explain(&plan, &state, diags)
	if kept.unconfirmed && !d.replaces() && !d.message() {
		validate.WarnAt(diags, plan.promptPath())(wording.Unconfirmed.Of(state.facts(), nil))
	}
}

// announceOrCount announces that a request was sent by an earlier run, or else counts it. It
// reports whether it was.
func (d *ProviderData) announceOrCount(
	ctx context.Context, kind send.Kind, plan *jobModel, jobID string, diags *diag.Diagnostics,
) (announced bool) {
	if announce(ctx, d.Sender.Journal, kind, plan, diags) {
		return true
	}
	if err := d.Sender.Limits.Plan(kind, jobID); err != nil {
		diags.AddError(wording.BeyondLimit(err, send.Request{Kind: kind, ProjectID: plan.ProjectID.ValueString(), JobID: jobID}))
	}
	return false
}

// change is what an apply would do to an existing job.
type change struct {
	newPrompt   bool // or an unknown one
	knownPrompt bool
	newJob      bool // the prompt starts one, because this job cannot accept messages
	recordOnly  bool // the prompt of an imported job
	newTriggers bool
	closedJob   bool // failed or archived: it cannot accept messages
	sent        bool // an earlier run has sent the prompt to it, which the state does not show
	resume      bool // it has not finished: resume waiting
}

// compare compares a plan with the state. sent reports whether the journal has the new
// prompt as a message to the job.
func compare(plan, state *jobModel, recorded recordedPrompt, waits bool, sent func() bool) change {
	imported, ignored := recorded.missing(), plan.promptText().IsNull()
	c := change{
		newPrompt:   !imported && !ignored && !recorded.is(plan.promptText()),
		knownPrompt: !plan.promptText().IsUnknown(),
		recordOnly:  imported && !ignored,
		newTriggers: !imported && !plan.Triggers.Equal(state.Triggers),
		closedJob:   state.is(agentapi.StatusFailed) || state.is(agentapi.StatusArchived),
		resume:      waits && !state.ended(),
	}
	c.sent = c.newPrompt && c.closedJob && sent()
	// An ephemeral prompt may be unknown in every plan: that must not cost a job.
	c.newJob = c.newPrompt && c.closedJob && !c.sent && !plan.PromptWO.IsUnknown()
	return c
}

func (c change) message() bool { return c.newPrompt && (!c.closedJob || c.sent) }

// decision is what an apply would do to a resource that has a job.
type decision struct {
	change

	projectID  types.String
	replacedBy []string // attributes that start a new job
}

func (d decision) replaces() bool { return len(d.replacedBy) > 0 }

// decide adds to a change what only a plan decides. project is the one in the configuration.
func decide(c change, plan, state *jobModel, project types.String) decision {
	d := decision{change: c, projectID: state.ProjectID}
	if !project.IsNull() && !project.Equal(state.ProjectID) {
		d.projectID = project
		d.replacedBy = append(d.replacedBy, "project_id")
	}
	if d.newTriggers {
		d.replacedBy = append(d.replacedBy, "triggers")
	}
	switch {
	case d.newJob && !plan.Prompt.IsNull():
		d.replacedBy = append(d.replacedBy, "prompt")
	case d.newJob: // no other attribute may differ, and Terraform ignores one that does not
		d.replacedBy = append(d.replacedBy, "status")
	}
	return d
}

// setValues sets the planned values.
func (d decision) setValues(plan, state *jobModel) {
	plan.ProjectID, plan.jobRecord = d.projectID, state.jobRecord
	switch {
	case d.replaces(), d.message(), d.resume:
		plan.markComputedUnknown()
	case d.recordOnly && plan.Prompt.IsNull(), d.newPrompt: // nothing else makes Terraform call Update
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
func (d decision) explain(plan, state *jobModel, diags *diag.Diagnostics) {
	job := state.facts()
	ofPrompt, ofStatus := validate.WarnAt(diags, plan.promptPath()), validate.WarnAt(diags, path.Root("status"))
	switch {
	case d.newJob:
		ofPrompt(wording.NewJob.Of(job, nil))
	case d.replaces() && !state.ended():
		ofStatus(wording.ActiveReplaced.Of(job, nil))
	case d.replaces():
	case d.newPrompt && d.closedJob:
		ofPrompt(wording.PromptNotKnownClosed.Of(job, nil))
	case d.message() && !d.knownPrompt:
		ofPrompt(wording.PromptNotKnown.Of(job, nil))
	case d.recordOnly && !d.resume:
		ofPrompt(wording.PromptRecorded.Of(job, nil))
	case d.message():
		ofPrompt(wording.FollowUp.Of(job, nil))
	case d.resume:
		ofStatus(wording.Unfinished.Of(job, nil))
	case state.is(agentapi.StatusFailed):
		ofStatus(wording.FailedEarlier.Of(job, nil))
	}
}
