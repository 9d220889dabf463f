// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
)

// sendMessage sends the new prompt to the job and reports whether it arrived.
// From the moment it may have arrived the state holds the new prompt, so that
// no later apply sends it again.
func (r *jobResource) sendMessage(ctx context.Context, job *jobModel, operation *send.Operation, out stateWriter) (arrived bool) {
	outcome := operation.Send(ctx)
	setJournalRef(ctx, out.private, outcome.Ref)
	switch outcome.Result {
	case send.Sent, send.TakenOver:
	case send.Unknown, send.EarlierUnknown:
		// An earlier unconfirmed message may be why the job is active again. And a job
		// that was already active shows nothing by being active.
		if !isMarked(ctx, out.private, markUnconfirmed) && job.ended() {
			outcome.Job = wait.MessageEffect(ctx, r.provider.Sender.Client, job.ProjectID.ValueString(), job.ID.ValueString(), r.provider.Waiter.Schedule.Min)
		}
		if outcome.Job == nil {
			mark(ctx, out.private, markUnconfirmed)
			out.save(ctx, job)
			out.diags.AddError(unconfirmedMessage(outcome, job.name()))
			return false
		}
	default:
		out.diags.AddError(messageNotSent(outcome, job.name()))
		r.provider.reportProblem(outcome, job.name(), out.diags)
		return false
	}
	if outcome.Result == send.TakenOver {
		out.diags.AddWarning(messageTakenOver(job.name()))
	}
	r.provider.reportProblem(outcome, job.name(), out.diags)
	r.provider.recent.add(job.ProjectID.ValueString(), job.ID.ValueString(), wait.Messaged)
	job.apply(outcome.Job)                                        // an invalid link is reported once the job has finished
	job.Status = types.StringValue(string(agentapi.StatusActive)) // the record may be the one from before the message
	unmark(ctx, out.private, markUnconfirmed)
	setMark(ctx, out.private, markUnfinished, unfinished{Message: time.Now()})
	out.save(ctx, job)
	return true
}

// updateMarks updates the marks after a refresh.
func updateMarks(ctx context.Context, private privateState, job *jobModel, record *agentapi.Job) {
	unmark(ctx, private, markMissing)
	if job.ended() && record.Status == agentapi.StatusActive {
		unmark(ctx, private, markUnconfirmed) // the message has arrived after all
	}
	u := getUnfinished(ctx, private)
	switch {
	case u.Message.IsZero():
	case wait.MayBeStale(record.Status, u.Message):
		record.Status = agentapi.StatusActive // this status may be the one from before the message
	default:
		unmark(ctx, private, markUnfinished)
	}
}
