// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// Update sends a new prompt as a message, resumes a wait that stopped earlier, and stores what
// needs neither. Its errors do not taint (T5), so each apply comes back here until the job is done.
func (r *jobResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var job, before jobModel
	c := applyCall{
		stateWriter: stateWriter{&resp.State, resp.Identity, resp.Private, readMarks(ctx, req.Private), &resp.Diagnostics},
		provider:    r.provider, job: &job,
	}
	c.marks.replacement = replacement{} // the plan has noted one in case that Terraform replaces the job: see planExisting
	r.provider.run.isApplying.Store(true)

	// Read what was planned.
	_, diags := job.readPlan(ctx, req.Plan, req.Config)
	c.diags.Append(diags...)
	c.diags.Append(req.State.Get(ctx, &before)...)
	if c.diags.HasError() {
		return
	}
	if !job.PromptWOHash.IsUnknown() {
		// The plan keeps the hash, so it keeps the prompt: ignore_changes hides a write-only prompt from a
		// plan, but not from its apply (T7).
		job.PromptWO = types.StringNull()
	}
	if !job.promptText().IsNull() && !job.checkPrompts(c.diags) {
		return
	}
	c.options = readWaitOptions(ctx, job.Wait, c.diags)
	timeout, diags := job.Timeouts.Update(ctx, defaultJobTimeout)
	c.diags.Append(diags...)
	if c.diags.HasError() {
		return
	}
	defer recoverAsError(ctx, "updating job "+before.facts().String(), wording.MayHaveSent, c.diags)

	// The plan has decided against a replacement, and Terraform refuses one now.
	job.shownJob = before.shownJob
	if job.Messages.IsUnknown() { // the plan did not know whether it sends a message
		job.Messages = before.Messages
	}
	if does := job.promptEffect(&before); does == sendMessage {
		c.sendMessage(ctx, &before, timeout)
	} else {
		c.storeAndWait(ctx, &before, does == storePrompt, timeout)
	}
}

// sendMessage sends the new prompt as a message, and waits until the job has finished again.
func (c applyCall) sendMessage(ctx context.Context, before *jobModel, timeout time.Duration) {
	request := c.job.request(ctx, c.job.ID.ValueString())
	if c.marks.message.isClosed(&before.shownJob) { // nothing is sent, but an earlier run may have sent the message
		request.PlannedJob = request.Recipient
	}
	if !c.provider.checkService(c.diags) || !checkName(request, c.diags) {
		return
	}

	// Send it, or do what the record of the name says.
	operation := c.provider.Sender.Begin(ctx, request)
	ctx, cancel := c.provider.withTimeout(ctx, "timeouts.update", timeout)
	defer cancel()
	outcome := operation.Send(ctx)

	// Save the prompt before anything that can panic or take long.
	if outcome.Result == send.Accepted || outcome.Result == send.Unknown {
		c.job.Messages = types.Int64Value(before.Messages.ValueInt64() + 1)
	}
	_ = c.saveOutcome(ctx, outcome, operation) // its warning of the link comes with the wait, or the next refresh
	outcome.BecameClosed = c.noteRefusal(ctx, outcome, request)
	c.sayOutcome(outcome, request)

	// Wait until the job has finished again.
	if outcome.Job != nil && c.options.enabled {
		after := wait.Resumed
		if outcome.Result == send.Accepted {
			after = wait.Messaged
		}
		c.await(ctx, after)
	}
	c.reportProblem(operation, outcome.Result)
}

// storeAndWait stores what the configuration says of a job, and resumes a wait. isFirst: the state gets
// the prompt of an imported job.
func (c applyCall) storeAndWait(ctx context.Context, before *jobModel, isFirst bool, timeout time.Duration) {
	isWaited := c.options.enabled && !before.hasFinished()
	if isWaited && !c.provider.checkService(c.diags) {
		return
	}
	isNewName := isFirst || !c.job.Name.Equal(before.Name) // so the journal does not know that it has the imported job
	if isNewName && (addMissing(c.provider.Missing.Journal, c.diags) || !c.assign(ctx)) {
		return
	}
	c.save(ctx, c.job)
	if c.marks.message.countsAsFailed(&before.shownJob) && c.options.failsRuns() {
		c.reportFailure(ctx)
	}
	if isWaited {
		ctx, cancel := c.provider.withTimeout(ctx, "timeouts.update", timeout)
		defer cancel()
		c.await(ctx, wait.Resumed)
	}
}

// assign records that the name has the job, which was imported, without sending anything.
func (c applyCall) assign(ctx context.Context) (ok bool) {
	request := c.job.request(ctx, c.job.ID.ValueString())
	holder, err := c.provider.Sender.Assign(ctx, request)
	if err != nil {
		addError(c.diags, wording.NameNotRecorded(err, request, c.job.facts()))
		return false
	}
	c.marks.holder = holder
	return true
}
