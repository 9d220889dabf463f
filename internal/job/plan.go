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
	var plan, state jobModel
	if !req.State.Raw.IsNull() {
		if resp.Diagnostics.Append(state.decode(ctx, req.State.Raw)...); resp.Diagnostics.HasError() {
			return
		}
		r.provider.pruneJournal(ctx, &state, req.Private, &resp.Diagnostics)
	}
	if req.Plan.Raw.IsNull() {
		return // destroy
	}
	project, diags := plan.decodePlan(ctx, req.Plan.Raw, req.Config.Raw)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	if req.State.Raw.IsNull() {
		plan.ProjectID = r.provider.projectOr(project, &resp.Diagnostics)
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("project_id"), plan.ProjectID)...)
		if !r.provider.announce(ctx, newJobs, &plan, &resp.Diagnostics) {
			r.provider.countPlanned(newJobs, 1, &resp.Diagnostics)
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
	case change.recordOnly, change.newPrompt: // nothing else makes Terraform call Update
		plan.Status = types.StringUnknown()
	}
	raw, err := plan.encode(ctx, req.Plan.Raw.Type())
	if err != nil {
		resp.Diagnostics.Append(codecFailed("the plan", err)...)
		return
	}
	resp.Plan.Raw = raw
	switch {
	case replace: // Terraform drops the warnings of the second planning call
		if r.provider.announce(ctx, newJobs, &plan, &resp.Diagnostics) {
			r.provider.countPlanned(newJobs, -1, &resp.Diagnostics) // the second call counts it, because each is announced once
		}
	case change.message() && r.provider.announce(ctx, messages, &plan, &resp.Diagnostics):
		return // what it says replaces what the plan would say otherwise
	case change.message():
		r.provider.countPlanned(messages, 1, &resp.Diagnostics)
	}
	change.explain(&plan, &state, replace, retry, &resp.Diagnostics)
	if isMarked(ctx, req.Private, markUnconfirmed) && !replace && !change.message() {
		resp.Diagnostics.AddAttributeWarning(plan.promptPath(), "Message to agent job unconfirmed",
			fmt.Sprintf("An earlier apply sent the prompt to job %s and got no answer. Look at the job at the service. "+
				"If the message is not there, change the prompt (a word is enough) and apply: that sends it.", state.ID.ValueString()))
	}
}

// markComputedUnknown marks as unknown all that a message or a longer wait may
// change; id and created_at never do.
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
	newPrompt   bool // or one that is not known yet
	knownPrompt bool
	newJob      bool // the prompt starts one, because this job cannot accept messages
	recordOnly  bool // a write-only prompt of an imported or moved job
	newTriggers bool
	closedJob   bool // failed or archived: it cannot accept messages
	resume      bool // it has not ended: wait on
}

func compare(plan, state *jobModel, recorded recordedPrompt, options waitOptions) change {
	imported, ignored := recorded.missing(), plan.promptText().IsNull()
	c := change{
		newPrompt:   !imported && !ignored && !recorded.is(plan.promptText()),
		knownPrompt: !plan.promptText().IsUnknown(),
		recordOnly:  imported && !ignored && plan.Prompt.IsNull(),
		newTriggers: !imported && !plan.Triggers.Equal(state.Triggers),
		closedJob:   state.is(agentapi.StatusFailed) || state.is(agentapi.StatusArchived),
		resume:      options.enabled && !state.ended(),
	}
	// An ephemeral prompt may be unknown in every plan: that must not cost a job.
	c.newJob = c.newPrompt && c.closedJob && !plan.PromptWO.IsUnknown()
	return c
}

func (c change) message() bool { return c.newPrompt && !c.closedJob }

// explain says in the plan what its symbols cannot.
func (c change) explain(plan, state *jobModel, replace, retry bool, diags *diag.Diagnostics) {
	id, status := state.ID.ValueString(), state.Status.ValueString()
	at := plan.promptPath()
	switch {
	case c.newJob:
		diags.AddAttributeWarning(at, "New prompt starts a new agent job",
			fmt.Sprintf("Job %s has ended as %s and takes no message, so a new job is started. It gets this prompt alone and knows nothing of the former ones.", id, status))
	case retry && !c.newTriggers:
		diags.AddAttributeWarning(path.Root("status"), "Failed agent job is started anew",
			fmt.Sprintf("The wait for job %s was cut short, and the job has failed since. Like after any failed create, a new job is started with the same prompt. "+
				"To keep the failed job instead, set wait.on_failure to \"warn\".", id))
	case replace:
	case c.newPrompt && c.closedJob:
		diags.AddAttributeWarning(at, "Prompt not known yet",
			fmt.Sprintf("Job %s has the status %s and cannot accept messages. If the prompt turns out to be new, apply fails and sends nothing; to give it to a new job, plan with -replace=ADDRESS.", id, wording.Quote(status)))
	case c.message() && !c.knownPrompt:
		diags.AddAttributeWarning(at, "Prompt not known yet",
			fmt.Sprintf("If the prompt turns out to be new, apply sends it to job %s as a follow-up message. Otherwise it sends nothing.", id))
	case c.recordOnly && !c.resume:
		diags.AddAttributeWarning(at, "Prompt is recorded",
			fmt.Sprintf("Job %s was imported or moved, so the state does not show which prompt it was sent. Apply records a hash of this one and sends nothing.", id))
	case c.message():
		diags.AddAttributeWarning(at, "New prompt is sent to the existing agent job",
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
