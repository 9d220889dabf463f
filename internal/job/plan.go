// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// ModifyPlan decides, from the difference between plan and state, whether an apply
// starts a job, sends a message, resumes waiting, or does not call the service. It
// promises no value that the service may change.
func (r *jobResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan, state jobModel
	defer recovered(ctx, "planning", "A plan sends no prompt.", &resp.Diagnostics)
	if !req.State.Raw.IsNull() {
		if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
			return
		}
		r.provider.pruneJournal(ctx, &state, req.Private, &resp.Diagnostics)
	}
	if req.Plan.Raw.IsNull() {
		return // destroy
	}
	project, diags := plan.readPlan(ctx, req.Plan, req.Config)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	if req.State.Raw.IsNull() {
		plan.ProjectID = r.provider.projectOr(project, &resp.Diagnostics)
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("project_id"), plan.ProjectID)...)
		if !r.provider.announce(ctx, send.Create, &plan, &resp.Diagnostics) {
			r.provider.countPlanned(send.Create, "", &resp.Diagnostics)
		}
		return
	}
	options := plan.readWaitOptions(ctx, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}

	plan.ProjectID = state.ProjectID
	if !project.IsNull() && !project.Equal(state.ProjectID) {
		plan.ProjectID = project
		resp.RequiresReplace.Append(path.Root("project_id"))
	}
	unmark(ctx, resp.Private, markIgnored)
	if plan.promptText().IsNull() {
		mark(ctx, resp.Private, markIgnored)
	}
	change := compare(&plan, &state, state.recordedPrompt(ctx, req.Private), options)
	if change.newTriggers {
		resp.RequiresReplace.Append(path.Root("triggers"))
	}
	retry := state.is(agentapi.StatusFailed) && options.onFailure == onError && getUnfinished(ctx, req.Private).Create
	switch {
	case change.newJob && !plan.Prompt.IsNull():
		resp.RequiresReplace.Append(path.Root("prompt"))
	case change.newJob, retry: // no other attribute may differ, and Terraform ignores one that does not
		resp.RequiresReplace.Append(path.Root("status"))
	}
	replace := len(resp.RequiresReplace) > 0

	plan.jobRecord = state.jobRecord
	switch {
	case replace, change.message(), change.resume:
		plan.markComputedUnknown()
	case change.recordOnly && plan.Prompt.IsNull(), change.newPrompt: // nothing else makes Terraform call Update
		plan.Status = types.StringUnknown()
	}
	if resp.Diagnostics.Append(resp.Plan.Set(ctx, plan.stored())...); resp.Diagnostics.HasError() {
		return
	}
	r.provider.takeBackPlanned(state.ID.ValueString())
	switch {
	case replace: // Terraform drops the warnings of the second planning call, which counts the new job
		if !r.provider.announce(ctx, send.Create, &plan, &resp.Diagnostics) {
			r.provider.countPlanned(send.Create, state.ID.ValueString(), &resp.Diagnostics)
		}
	case change.message() && r.provider.announce(ctx, send.Message, &plan, &resp.Diagnostics):
		return // its warning replaces the one of this plan
	case change.message():
		r.provider.countPlanned(send.Message, state.ID.ValueString(), &resp.Diagnostics)
	}
	change.explain(&plan, &state, replace, retry, &resp.Diagnostics)
	if isMarked(ctx, req.Private, markUnconfirmed) && !replace && !change.message() {
		resp.Diagnostics.AddAttributeWarning(plan.promptPath(), "Message to agent job unconfirmed", wording.Paragraphs(
			fmt.Sprintf("An earlier apply sent the prompt to job %s and received no response. It is not sent again automatically.", state.name()), changeAndApply))
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

// change is what an apply would do to an existing job.
type change struct {
	newPrompt   bool // or an unknown one
	knownPrompt bool
	newJob      bool // the prompt starts one, because this job cannot accept messages
	recordOnly  bool // the prompt of an imported or moved job
	newTriggers bool
	closedJob   bool // failed or archived: it cannot accept messages
	resume      bool // it has not finished: resume waiting
}

func compare(plan, state *jobModel, recorded recordedPrompt, options waitOptions) change {
	imported, ignored := recorded.missing(), plan.promptText().IsNull()
	c := change{
		newPrompt:   !imported && !ignored && !recorded.is(plan.promptText()),
		knownPrompt: !plan.promptText().IsUnknown(),
		recordOnly:  imported && !ignored,
		newTriggers: !imported && !plan.Triggers.Equal(state.Triggers),
		closedJob:   state.is(agentapi.StatusFailed) || state.is(agentapi.StatusArchived),
		resume:      options.enabled && !state.ended(),
	}
	// An ephemeral prompt may be unknown in every plan: that must not cost a job.
	c.newJob = c.newPrompt && c.closedJob && !plan.PromptWO.IsUnknown()
	return c
}

func (c change) message() bool { return c.newPrompt && !c.closedJob }

// explain warns about what the plan's symbols do not show.
func (c change) explain(plan, state *jobModel, replace, retry bool, diags *diag.Diagnostics) {
	job, status := state.name(), state.Status.ValueString()
	at := plan.promptPath()
	switch {
	case c.newJob:
		diags.AddAttributeWarning(at, "New prompt starts a new agent job",
			fmt.Sprintf("Job %s has the status %s and cannot accept messages, so apply starts a new job. It does not see the earlier prompts: write a prompt that is complete without them.", job, wording.Quote(status)))
	case retry && !c.newTriggers:
		diags.AddAttributeWarning(path.Root("status"), "New agent job replaces failed one",
			fmt.Sprintf("Job %s failed after an earlier run had stopped waiting for it. As after any failed create, apply starts a new job with the same prompt. "+
				"To keep the failed job instead, set on_failure = \"warn\" in the wait block.", job))
	case replace && !state.ended():
		diags.AddAttributeWarning(path.Root("status"), "Active agent job will be replaced",
			fmt.Sprintf("Apply removes job %s (status %s) from the state and starts a new job. The service cannot cancel a job, so the old one keeps running and may still open a pull request.", job, wording.Quote(status)))
	case replace:
	case c.newPrompt && c.closedJob:
		diags.AddAttributeWarning(at, "Prompt not known yet",
			fmt.Sprintf("Job %s has the status %s and cannot accept messages. If the prompt is new, apply fails and sends nothing. To start a new job with it, plan with -replace=ADDRESS.", job, wording.Quote(status)))
	case c.message() && !c.knownPrompt:
		diags.AddAttributeWarning(at, "Prompt not known yet",
			fmt.Sprintf("If the prompt is new, apply sends it to job %s as a follow-up message. Otherwise it sends nothing.", job))
	case c.recordOnly && !c.resume:
		diags.AddAttributeWarning(at, "Prompt recorded without sending it",
			fmt.Sprintf("Job %s was imported or moved, so the state does not show its last prompt. Apply records this one (a write-only prompt as a hash) and sends nothing. Later changes are sent.", job))
	case c.message():
		diags.AddAttributeWarning(at, "Follow-up message to agent job",
			fmt.Sprintf("Apply sends the new prompt to job %s as a follow-up message. To start a new job instead, plan with -replace=ADDRESS, or change triggers.", job))
	case c.resume:
		diags.AddAttributeWarning(path.Root("status"), "Unfinished agent job",
			fmt.Sprintf("Apply waits until job %s (status %s) finishes and sends nothing. To skip waiting, set enabled = false in the wait block.", job, wording.Quote(status)))
	case state.is(agentapi.StatusFailed):
		diags.AddAttributeWarning(path.Root("status"), "Agent job failed",
			fmt.Sprintf("Job %s failed earlier, and its prompt is unchanged, so apply sends nothing. "+
				"To start a new job, change the prompt or plan with -replace=ADDRESS.", job))
	}
}
