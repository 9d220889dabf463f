// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
)

// sendMessage sends the new prompt to the job and reports whether it arrived.
// From the moment it may have arrived the state holds the new prompt, so that
// no later apply sends it again.
func (r *jobResource) sendMessage(ctx context.Context, job *jobModel, key journal.Key, call *journal.Call, out stateWriter) (arrived bool) {
	id := job.ID.ValueString()
	record, err := r.sendOrTakeOver(ctx, job, key, call, out)
	switch {
	case errors.Is(err, agentapi.ErrUnknownOutcome):
		// While a message before this one is unconfirmed too, what the job shows may be its effect.
		// And a job that was active before shows nothing by being active.
		if !isMarked(ctx, out.private, markUnconfirmed) && job.ended() {
			record = wait.MessageEffect(ctx, r.conn.Client, job.ProjectID.ValueString(), id, r.conn.Waiter.Schedule.Min)
		}
		if record == nil {
			mark(ctx, out.private, markUnconfirmed)
			out.save(ctx, job)
			out.diags.AddError(unconfirmedMessage(err, id))
			return false
		}
	case err != nil:
		out.diags.AddError("Failed to send message to agent job", messageFailure(err, id))
		return false
	}
	r.conn.recent.add(job.ProjectID.ValueString(), id, wait.Messaged)
	job.apply(record)                                             // what it may say of the link is said when the job has ended
	job.Status = types.StringValue(string(agentapi.StatusActive)) // the answer may be the record from before
	unmark(ctx, out.private, markUnconfirmed)
	setUnfinished(ctx, out.private, unfinished{Message: time.Now()})
	out.save(ctx, job)
	return true
}

// errEndedByForce stands for the answer of a message that a crashed run had sent.
var errEndedByForce = errors.New("a run that was ended by force had sent it, and no answer had come")

// sendOrTakeOver sends the message unless a crashed run has noted that it did.
func (r *jobResource) sendOrTakeOver(ctx context.Context, job *jobModel, key journal.Key, call *journal.Call, out stateWriter) (*agentapi.Job, error) {
	id := job.ID.ValueString()
	left := r.conn.Journal.Take(ctx, key)
	if left == nil {
		return r.conn.Client.SendMessage(ctx, job.ProjectID.ValueString(), id, job.Prompt.ValueString(), call)
	}
	if left.JobID == "" {
		r.conn.Journal.Settle(left)
		return nil, &agentapi.Error{Op: agentapi.OpMessage, Class: agentapi.UnknownOutcome, JobID: id, Err: errEndedByForce}
	}
	record, err := r.conn.lookUp(ctx, job.ProjectID.ValueString(), id)
	if err != nil {
		r.conn.Journal.Return(left)
		return nil, err
	}
	call.Answered(id) // in our own journal before it leaves the other
	r.conn.Journal.Settle(left)
	out.diags.AddWarning("Message of an earlier run found", fmt.Sprintf(
		"A run that was ended by force had sent the new prompt to job %s, which took it. Nothing was sent now.", id))
	return record, nil
}

// noteRead brings the marks up to date with what a refresh shows.
func noteRead(ctx context.Context, private privateState, job *jobModel, record *agentapi.Job) {
	unmark(ctx, private, markMissing)
	if job.ended() && record.Status == agentapi.StatusActive {
		unmark(ctx, private, markUnconfirmed) // the message has arrived after all
	}
	u := getUnfinished(ctx, private)
	switch {
	case u.Message.IsZero():
	case wait.MayBeStale(record.Status, u.Message):
		record.Status = agentapi.StatusActive // the end that shows may be the one from before the message
	default:
		unmark(ctx, private, markUnfinished)
	}
}
