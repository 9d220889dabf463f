// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/validate"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

func (r *jobResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	out := stateWriter{&resp.State, resp.Identity, resp.Private, readMarks(ctx, req.Private), &resp.Diagnostics, nil}
	isIgnored := out.marks.plan.IsPromptIgnored
	out.marks.plan = planMarks{}
	r.provider.names.isApplying.Store(true)
	var job, before jobModel
	_, diags := job.readPlan(ctx, req.Plan, req.Config)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(req.State.Get(ctx, &before)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if isIgnored { // the CLI hides a write-only prompt with ignore_changes from the plan, but not from the apply
		job.PromptWO = types.StringNull()
	} else if !job.checkPrompts(&resp.Diagnostics) {
		return
	}
	options := readWaitOptions(ctx, job.Wait, &resp.Diagnostics)
	timeout, diags := job.Timeouts.Update(ctx, defaultJobTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	defer recoverAsError(ctx, "updating job "+before.facts().String(), wording.MayHaveSent, &resp.Diagnostics)
	change := decideApply(&job, &before, &out.marks.message, options)
	isMessage := change.effect == sendMessage
	out.planned = &before.shownJob
	job.shownJob = before.shownJob
	isCounted := job.Messages.IsUnknown() // by the plan, which did not know the prompt
	if isCounted {
		job.Messages = before.Messages
	}
	isAssigned := change.effect == storePrompt || !isMessage && !job.Name.Equal(before.Name)
	if isAssigned && !r.provider.assign(ctx, &job, out) {
		return
	}
	if !isMessage && !change.isWaited {
		out.save(ctx, &job)
		if change.fails || change.effect == replaceGivenUp { // the plan did not know that on_failure is "retry"
			addError(&resp.Diagnostics, wording.Failed(job.facts(), r.provider.next(ctx, &job, false, options).AfterFailure()))
		}
		return
	}
	if !r.provider.usable(&resp.Diagnostics) {
		return
	}
	request := job.request(ctx, job.ID.ValueString())
	request.OnlyIfSent = change.isClosed
	if isMessage && !checkName(request, &resp.Diagnostics) {
		return
	}
	operation := r.provider.Sender.Begin(ctx, request)
	ctx, cancel := r.provider.withTimeout(ctx, "timeouts.update", timeout)
	defer cancel()

	after := wait.Resumed
	if !isMessage {
		out.save(ctx, &job)
	} else {
		outcome := r.sendMessage(ctx, &job, isCounted, operation, out)
		defer func() { r.provider.reportProblem(operation, outcome, job.facts(), &resp.Diagnostics) }() // by then, the store may have taken it
		if outcome.Job == nil {
			return
		}
		if outcome.Result == send.Sent {
			after = wait.Messaged
		}
	}
	if options.enabled {
		r.provider.await(ctx, &job, after, options, out)
	}
}

// sendMessage sends the new prompt to the job. From the moment it may have arrived the state holds the new prompt, so that
// no later apply sends it again.
func (r *jobResource) sendMessage(
	ctx context.Context, job *jobModel, isCounted bool, operation *send.Operation, out stateWriter,
) send.Outcome {
	outcome, at := operation.Send(ctx), time.Time{}
	if isCounted && (outcome.Result == send.Sent || outcome.Result == send.Unknown) {
		job.Messages = types.Int64Value(job.Messages.ValueInt64() + 1)
	}
	arrived := outcome.Job != nil
	if arrived {
		at = time.Now()
		if outcome.Result == send.AlreadySent {
			at = outcome.Record.Last.SentAt
		}
		job.set(outcome.Job)                                          // an invalid link is reported once the job has finished
		job.Status = types.StringValue(string(agentapi.StatusActive)) // the record may be the one from before the message
	}
	if arrived || outcome.Result == send.Unknown || outcome.Result == send.EarlierUnknown {
		out.marks.message.messaged(at)
		out.marks.record.Adoption = operation.Call.Adoption()
		out.save(ctx, job)
	}
	if !arrived {
		outcome.BecameClosed = r.noteRefusal(ctx, job, outcome.Err, out)
	}
	if outcome.BecameClosed {
		operation.Call.Closes() //nolint:contextcheck // it has the context of Begin, without our deadline
	}
	sayMessage(job, outcome, operation.Request, out)
	return outcome
}

// sayMessage reports what became of a message, unless this run has sent it.
func sayMessage(job *jobModel, outcome send.Outcome, request send.Request, out stateWriter) {
	switch {
	case outcome.Result == send.AlreadySent:
		addWarning(out.diags, wording.AlreadySent(outcome, request))
	case outcome.Result == send.Closed:
		facts := job.facts()
		facts.RefusedMessage = out.marks.message.RefusesMessages
		validate.ErrorAt(out.diags, job.promptPath(), wording.MessageToClosedJob.Of(facts, nil))
	case outcome.Job == nil:
		addError(out.diags, wording.NotAccepted(outcome, request, wording.Resource))
	}
}

// noteRefusal marks, for the next plan, that a job which has finished has refused a message. isClosed reports whether this and earlier
// refusals show that the job accepts no messages any more.
func (r *jobResource) noteRefusal(ctx context.Context, job *jobModel, refusal error, out stateWriter) (isClosed bool) {
	id := job.ID.ValueString()
	if !r.isFinished(ctx, job.ProjectID.ValueString(), id, refusal, out.marks.message.SentAt) {
		return false
	}
	out.marks.message.refuses(promptHash(id, job.comparedPrompt()), agentapi.ReasonOf(refusal))
	out.marks.write(ctx, out.private)
	return out.marks.message.RefusesMessages
}

// isFinished reports whether a message was refused because of its prompt or its job, and the job has finished: a service may refuse
// messages to every such job. sentAt is when an earlier message was accepted; it may be zero.
func (r *jobResource) isFinished(ctx context.Context, project, id string, refusal error, sentAt time.Time) bool {
	if reason := agentapi.ReasonOf(refusal); reason != agentapi.ReasonPrompt && reason != agentapi.ReasonJob {
		return false
	}
	shown, err := r.provider.Sender.Client.ReadJob(ctx, project, id)
	return err == nil && shown.Status.Terminal() && !wait.MayBeStale(shown.Status, sentAt)
}
