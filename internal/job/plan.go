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
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// ModifyPlan decides, from the difference between plan and state, whether an
// apply starts a job, sends a message, waits on, or leaves the service alone,
// and promises no value that the service may change.
func (r *jobResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan, config, state jobModel
	if !req.State.Raw.IsNull() {
		if resp.Diagnostics.Append(state.decode(ctx, req.State.Raw)...); resp.Diagnostics.HasError() {
			return
		}
		r.conn.seen(ctx, &state, req.Private, &resp.Diagnostics)
	}
	if req.Plan.Raw.IsNull() {
		return // destroy
	}
	resp.Diagnostics.Append(plan.decode(ctx, req.Plan.Raw)...)
	resp.Diagnostics.Append(config.decode(ctx, req.Config.Raw)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if req.State.Raw.IsNull() {
		plan.ProjectID = r.conn.projectOr(config.ProjectID, &resp.Diagnostics)
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("project_id"), plan.ProjectID)...)
		if !r.announceCreate(ctx, &plan, &resp.Diagnostics) {
			r.conn.planned(newJobs, 1, &resp.Diagnostics)
		}
		return
	}
	options, diags := plan.waitOptions(ctx)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}

	plan.ProjectID = state.ProjectID
	if !config.ProjectID.IsNull() && !config.ProjectID.Equal(state.ProjectID) {
		plan.ProjectID = config.ProjectID
		resp.RequiresReplace.Append(path.Root("project_id"))
	}
	change := compare(&plan, &state, options)
	if change.newTriggers {
		resp.RequiresReplace.Append(path.Root("triggers"))
	}
	if change.newPrompt && change.deadJob {
		resp.RequiresReplace.Append(path.Root("prompt"))
	}
	retry := state.is(agentapi.StatusFailed) && options.onFailure == onError && getUnfinished(ctx, req.Private).Create
	if retry && !change.newPrompt {
		resp.RequiresReplace.Append(path.Root("status"))
	}
	replace := len(resp.RequiresReplace) > 0

	plan.jobRecord = state.jobRecord
	if replace || change.message() || change.resume {
		plan.forgetWhatMayChange()
	}
	resp.Plan.Raw, diags = plan.encode(ctx, req.Plan.Raw.Type())
	resp.Diagnostics.Append(diags...)
	switch {
	case replace: // Terraform drops the warnings of the second planning call
		if r.announceCreate(ctx, &plan, &resp.Diagnostics) {
			r.conn.planned(newJobs, -1, &resp.Diagnostics) // the second call counts it, because each is announced once
		}
	case change.message() && r.announceMessage(ctx, &plan, &resp.Diagnostics):
		return // what it says replaces what the plan would say otherwise
	case change.message():
		r.conn.planned(messages, 1, &resp.Diagnostics)
	}
	change.explain(&state, replace, retry, &resp.Diagnostics)
	if isMarked(ctx, req.Private, markUnconfirmed) && !replace && !change.message() {
		resp.Diagnostics.AddAttributeWarning(path.Root("prompt"), "Message to agent job unconfirmed",
			fmt.Sprintf("An earlier apply sent the prompt to job %s and got no answer. Look at the job at the service. "+
				"If the message is not there, change the prompt (a word is enough) and apply: that sends it.", state.ID.ValueString()))
	}
}

// forgetWhatMayChange marks as unknown all that a message or a longer wait may
// change; id and created_at never do.
func (r *jobRecord) forgetWhatMayChange() {
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
	newPrompt   bool
	newTriggers bool
	deadJob     bool // ended as failed or archived: it takes no message
	resume      bool // it has not ended: wait on
}

func compare(plan, state *jobModel, options waitOptions) change {
	return change{
		newPrompt:   !state.adopted() && !plan.Prompt.Equal(state.Prompt),
		newTriggers: !state.adopted() && !plan.Triggers.Equal(state.Triggers),
		deadJob:     state.is(agentapi.StatusFailed) || state.is(agentapi.StatusArchived),
		resume:      options.enabled && !state.ended(),
	}
}

func (c change) message() bool { return c.newPrompt && !c.deadJob }

// explain says in the plan what its symbols cannot.
func (c change) explain(state *jobModel, replace, retry bool, diags *diag.Diagnostics) {
	id, status := state.ID.ValueString(), state.Status.ValueString()
	switch {
	case c.newPrompt && c.deadJob:
		diags.AddAttributeWarning(path.Root("prompt"), "New prompt starts a new agent job",
			fmt.Sprintf("Job %s has ended as %s and takes no message, so a new job is started. It gets this prompt alone and knows nothing of the former ones.", id, status))
	case retry && !c.newTriggers:
		diags.AddAttributeWarning(path.Root("status"), "Failed agent job is started anew",
			fmt.Sprintf("The wait for job %s was cut short, and the job has failed since. Like after any failed create, a new job is started with the same prompt. "+
				"To keep the failed job instead, set wait.on_failure to \"warn\".", id))
	case replace:
	case c.message():
		diags.AddAttributeWarning(path.Root("prompt"), "New prompt is sent to the existing agent job",
			fmt.Sprintf("Apply sends the new prompt to job %s as a follow-up message. For a new job instead, plan with -replace=ADDRESS, or change triggers.", id))
	case c.resume:
		diags.AddAttributeWarning(path.Root("status"), "Agent job is still running",
			fmt.Sprintf("Apply waits for the end of job %s (status %s) and sends nothing.", id, wording.Quote(status)))
	case state.is(agentapi.StatusFailed):
		diags.AddAttributeWarning(path.Root("status"), "Agent job failed",
			fmt.Sprintf("Job %s has ended as failed, and nothing in the configuration has changed since: "+
				"it stays as it is, unless you change the prompt or plan with -replace=ADDRESS.", id))
	}
}
