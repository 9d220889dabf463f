// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"

	"github.com/agentjobs/terraform-provider-agent/internal/wait"
)

var (
	_ action.ActionWithConfigure      = (*startJobAction)(nil)
	_ action.ActionWithModifyPlan     = (*startJobAction)(nil)
	_ action.ActionWithValidateConfig = (*startJobAction)(nil)
)

// startJobAction starts a job that no state keeps.
type startJobAction struct{ jobAction }

// NewStartJobAction returns the action agent_start_job.
func NewStartJobAction() action.Action { return &startJobAction{} }

func (a *startJobAction) Metadata(_ context.Context, req action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_start_job"
}

func (a *startJobAction) Schema(ctx context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Starts a job without keeping it in the state, for example whenever a resource changes, " +
			"and waits until it finishes. Needs Terraform 1.14 or later.\n\n" +
			"Each invocation sends the prompt once. It is not sent again if the job fails or the run is interrupted, unless Terraform invokes the action again. " +
			"Use the resource `agent_job` for a job whose outcome other resources need, or that later prompts continue.",
		Attributes: actionAttributes(ctx, "Instructions for the agent.", "Project in which the job is started."),
	}
}

func (a *startJobAction) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	defer recovered("start of a job, which may have been started: look at the service before you run the action again", &resp.Diagnostics)
	var config actionModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	run, ok := a.begin(ctx, config, resp)
	if !ok {
		return
	}
	if err := a.provider.Limits.send(newJobs); err != nil {
		resp.Diagnostics.AddError(err.diagnostic())
		return
	}
	ctx, cancel := context.WithTimeout(a.provider.Mask(ctx), run.timeout)
	defer cancel()
	job, err := a.provider.Client.CreateJob(ctx, run.projectID, run.prompt)
	if err != nil {
		run.failed(err, "Failed to start agent job", "project "+run.projectID, "a job may have been started")
		return
	}
	run.progress("Job %s started in project %s.", job.ID, run.projectID)
	run.follow(ctx, job, wait.Created)
}
