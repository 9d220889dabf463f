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
	id, name := job.ID.ValueString(), job.name()
	record, err := r.sendOrTakeOver(ctx, job, key, call, out)
	if beyond, ok := errors.AsType[*limitError](err); ok {
		out.diags.AddError(beyond.diagnostic())
		return false
	}
	switch {
	case errors.Is(err, agentapi.ErrUnknownOutcome):
		// An earlier unconfirmed message may be why the job is active again. And a job
		// that was already active shows nothing by being active.
		if !isMarked(ctx, out.private, markUnconfirmed) && job.ended() {
			record = wait.MessageEffect(ctx, r.provider.Client, job.ProjectID.ValueString(), id, r.provider.Waiter.Schedule.Min)
		}
		if record == nil {
			mark(ctx, out.private, markUnconfirmed)
			out.save(ctx, job)
			out.diags.AddError(unconfirmedMessage(err, name))
			return false
		}
		call.Answered(id)                           //nolint:contextcheck // it has the context of Begin, without our deadline
		setJournalRef(ctx, out.private, call.Ref()) // it may have got another name
	case err != nil:
		out.diags.AddError("Failed to send message to agent job", messageFailure(err, name))
		r.provider.reportNotWithdrawn(call, err, out.diags)
		return false
	}
	warnUnrecorded(call.Unrecorded(), name, out.diags)
	r.provider.recent.add(job.ProjectID.ValueString(), id, wait.Messaged)
	job.apply(record)                                             // an invalid link is reported once the job has finished
	job.Status = types.StringValue(string(agentapi.StatusActive)) // the record may be the one from before the message
	unmark(ctx, out.private, markUnconfirmed)
	setMark(ctx, out.private, markUnfinished, unfinished{Message: time.Now()})
	out.save(ctx, job)
	return true
}

// errOutcomeNotRecorded replaces the response to a message that an earlier run sent.
var errOutcomeNotRecorded = errors.New("an earlier run sent it and did not record the outcome")

// sendOrTakeOver sends the message unless an earlier run has sent it.
func (r *jobResource) sendOrTakeOver(ctx context.Context, job *jobModel, key journal.Key, call *journal.Call, out stateWriter) (*agentapi.Job, error) {
	id, project := job.ID.ValueString(), job.ProjectID.ValueString()
	orphan, err := r.provider.Journal.TakeOver(ctx, key)
	switch {
	case err == nil && orphan == nil && r.provider.Journal.TookOver(ctx, id):
		return nil, errTakenOverByThisRun
	case err != nil:
		return nil, takeOverError{err}
	case orphan == nil:
		if err := r.provider.Limits.send(messages); err != nil {
			return nil, err
		}
		record, err := r.provider.Client.SendMessage(ctx, project, id, job.promptText().ValueString(), call)
		if err == nil || errors.Is(err, agentapi.ErrUnknownOutcome) { // another error does not settle earlier messages
			setJournalRef(ctx, out.private, call.Ref())
		}
		return record, err
	case orphan.JobID == "":
		return nil, &agentapi.Error{Op: agentapi.OpMessage, Class: agentapi.UnknownOutcome, ProjectID: project, JobID: id, Err: errOutcomeNotRecorded}
	}
	record, err := r.provider.lookUp(ctx, project, id)
	if err != nil {
		r.provider.Journal.Keep(orphan)
		return nil, err
	}
	setJournalRef(ctx, out.private, orphan.Ref)
	out.diags.AddWarning("Message of an earlier run taken over", fmt.Sprintf(
		"An earlier run sent the new prompt to job %s, which accepted it, but the state did not show that. It was not sent again. No action is needed.", job.name()))
	return record, nil
}

// errTakenOverByThisRun keeps "terraform test" from sending to a real job: only a test
// updates what the same run took over. A host that keeps one parent process for all
// its commands is refused until it restarts.
var errTakenOverByThisRun = errors.New("this run took the job over from an earlier one, and does not change it")

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
