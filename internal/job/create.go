// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/check"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// Create sends the prompt as a new job, or adopts the job that the record of the name has. What it
// returns with an error taints the resource (T5), so the next apply comes back here.
func (r *jobResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var job jobModel
	c := applyCall{
		stateWriter: stateWriter{&resp.State, resp.Identity, resp.Private, new(marks), &resp.Diagnostics},
		provider:    r.provider, job: &job, isCreate: true,
	}
	r.provider.run.isApplying.Store(true)

	// Make a request of the plan.
	_, diags := job.readPlan(ctx, req.Plan, req.Config)
	c.diags.Append(diags...)
	if c.diags.HasError() || !r.provider.checkService(c.diags) || !job.checkPrompts(c.diags) {
		return
	}
	defer c.recoverAndSave(ctx, &job)
	c.options = readWaitOptions(ctx, job.Wait, c.diags)
	timeout, diags := job.Timeouts.Create(ctx, defaultJobTimeout)
	c.diags.Append(diags...)
	request := job.request(ctx, "")
	request.RetryFailed, request.PlannedJob = c.options.onFailure == onRetry, job.ID.ValueString()
	job.ID = types.StringUnknown() // until the request has a job: see recoverAndSave
	if c.diags.HasError() || !checkName(request, c.diags) {
		return
	}

	// No other resource of this apply may have the name.
	name := job.projectAndName()
	if otherJob, isOnly := r.provider.run.beginCreate(name); !isOnly {
		check.ErrorAt(c.diags, path.Root("name"), wording.DuplicateName(request.Name, request.Project, "", otherJob))
		return
	}

	// Send the prompt, or do what the record of the name says. The journal gets the CLI's own context,
	// because an outcome is recorded even after our timeout.
	operation := r.provider.Sender.Begin(ctx, request)
	ctx, cancel := r.provider.withTimeout(ctx, "timeouts.create", timeout)
	defer cancel()
	outcome := operation.Send(ctx)

	// Save the job before anything that can panic or take long.
	job.Messages = types.Int64Value(0)
	warnings := c.saveOutcome(ctx, outcome, operation)
	if outcome.JobID == "" {
		r.provider.run.endCreate(name)
	}
	c.sayOutcome(outcome, request)

	// Wait until the job finishes.
	switch {
	case outcome.Job == nil:
	case c.options.enabled:
		c.await(ctx, wait.Created)
	default: // nothing else reports an invalid link, or an adopted job that had failed
		c.diags.Append(warnings...)
		if outcome.Result == send.Adopted && c.marks.message.countsAsFailed(&job.shownJob) {
			c.reportFailure(ctx)
		}
	}
	// This comes last: in the meantime, the journal may have recorded what its store did not take.
	c.reportProblem(operation, outcome.Result)
}
