// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/validate"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

func (r *jobResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	out := stateWriter{&resp.State, resp.Identity, resp.Private, readMarks(ctx, req.Private), &resp.Diagnostics}
	var job, before jobModel
	_, diags := job.readPlan(ctx, req.Plan, req.Config)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(req.State.Get(ctx, &before)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if out.marks.ignored {
		job.keepPrompt(&before)
	} else if !job.checkPrompts(&resp.Diagnostics) {
		return
	}
	options := readWaitOptions(ctx, job.Wait, &resp.Diagnostics)
	timeout, diags := job.Timeouts.Update(ctx, defaultJobTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	defer recovered(ctx, "updating job "+before.facts().String(), wording.MayHaveSent, &resp.Diagnostics)
	change := compare(&job, &before, out.marks.recordedPrompt(&before), options.enabled, func() bool { return false })
	planned := out.marks.planned
	out.marks.planned = ""
	out.marks.write(ctx, out.private)
	if change.newPrompt && planned != "" && planned != promptHash(before.ID.ValueString(), job.PromptWO.ValueString()) {
		validate.WarnAt(&resp.Diagnostics, job.promptPath())(wording.PromptDiffers.Of(before.facts(), nil))
	}
	job.jobRecord = before.jobRecord
	if !change.newPrompt && !change.resume {
		out.save(ctx, &job)
		return
	}
	if !r.provider.usable(&resp.Diagnostics) {
		return
	}
	r.provider.Sender.Journal.Settle(out.marks.journal)
	operation := r.provider.Sender.Begin(ctx, send.Request{
		Kind: send.Message, ProjectID: job.ProjectID.ValueString(), JobID: job.ID.ValueString(),
		Prompt: job.promptText().ValueString(), Key: messageKey(&job),
		Closed: change.closedJob,
	})
	defer operation.End()
	ctx, cancel := r.provider.withTimeout(ctx, "timeouts.update", timeout)
	defer cancel()

	after := wait.Messaged
	if !change.newPrompt {
		after = wait.Resumed
		out.save(ctx, &job)
	} else if !r.sendMessage(ctx, &job, operation, out) {
		return
	}
	if options.enabled {
		r.provider.await(ctx, &job, after, options, out)
	}
}

// sendMessage sends the new prompt to the job and reports whether it arrived.
// From the moment it may have arrived the state holds the new prompt, so that
// no later apply sends it again.
func (r *jobResource) sendMessage(ctx context.Context, job *jobModel, operation *send.Operation, out stateWriter) (arrived bool) {
	outcome := operation.Send(ctx)
	sent := outcome.Job != nil || outcome.Result == send.Unknown || outcome.Result == send.EarlierUnknown
	// An earlier unconfirmed message may be why the job is active again. And a job
	// that was already active shows nothing by being active.
	if sent && outcome.Job == nil && !out.marks.unconfirmed && job.ended() {
		outcome.Job = wait.MessageEffect(ctx, r.provider.Sender.Client, operation.Request.ProjectID, operation.Request.JobID,
			r.provider.Waiter.Schedule.Min)
	}
	arrived = outcome.Job != nil
	if arrived {
		job.apply(outcome.Job)                                        // an invalid link is reported once the job has finished
		job.Status = types.StringValue(string(agentapi.StatusActive)) // the record may be the one from before the message
	}
	if sent {
		out.marks.messaged(arrived)
		out.sent(operation)
		out.save(ctx, job)
	}
	switch {
	case outcome.Result == send.TakenOver:
		out.diags.AddWarning(wording.TakenOver(outcome, operation.Request))
	case outcome.Result == send.Closed:
		validate.ErrorAt(out.diags, job.promptPath())(wording.MessageToClosedJob.Of(job.facts(), nil))
	case !arrived:
		out.diags.AddError(wording.NotAccepted(outcome, operation.Request, wording.ApplyAgain))
	}
	reportProblem(r.provider.Sender.Journal, outcome, job.facts(), out.diags)
	return arrived
}
