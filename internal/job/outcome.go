// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/check"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// saveOutcome writes to the state what became of a request, from the moment that its job may have
// the prompt, so that no later apply sends that again.
func saveOutcome(
	ctx context.Context, job *jobModel, outcome send.Outcome, operation *send.Operation, out stateWriter,
) (warnings diag.Diagnostics) {
	if outcome.JobID == "" {
		return nil
	}
	isMessage, lastMessage, marks := operation.Request.Kind() == send.Message, outcome.Record.LastMessage(), &out.marks.message
	switch {
	case outcome.Job != nil:
		warnings = job.set(outcome.Job)
	case job.Status.IsUnknown(): // it is a create, whose job cannot be read
		job.set(&agentapi.Job{ID: outcome.JobID})
	}
	switch {
	case isMessage && outcome.Job == nil:
		marks.messaged(time.Time{})
	case isMessage:
		at := time.Now()
		if outcome.Result == send.AlreadySent {
			at = outcome.Record.Last.SentAt
		}
		marks.messaged(at)
		job.Status = types.StringValue(string(agentapi.StatusActive)) // what was read may be from before the message
	case outcome.Result == send.Adopted && lastMessage != nil:
		marks.SentAt, marks.Unconfirmed = lastMessage.SentAt, lastMessage.Unknown
	}
	out.marks.record.Holder = operation.Holder()
	out.save(ctx, job)
	return warnings
}

// sayOutcome says what became of a request, unless this run has sent it and nothing else matters.
func sayOutcome(job *jobModel, outcome send.Outcome, request send.Request, isOwn bool, out stateWriter) {
	if outcome.Beside != nil {
		check.WarnAt(out.diags, path.Root("name"), wording.BesideAnother(request, outcome.Beside))
	}
	switch outcome.Result {
	case send.Accepted:
	case send.Adopted:
		if !isOwn { // else this run has removed the object that had the job, so it is no news
			addWarning(out.diags, wording.Adopted(outcome, request))
		}
	case send.AlreadySent:
		addWarning(out.diags, wording.AlreadySent(outcome, request))
	case send.Closed:
		facts := job.facts()
		facts.RefusedMessage = out.marks.message.IsClosed
		check.ErrorAt(out.diags, job.promptPath(), wording.MessageToClosedJob.Of(facts, nil))
	default:
		addError(out.diags, wording.NotAccepted(outcome, request))
	}
}

// noteRefusal notes that a job which has finished has refused a message: a service may refuse messages
// to every such job. So the job counts as closed, and the next plan replaces it.
func (r *jobResource) noteRefusal(ctx context.Context, outcome *send.Outcome, request send.Request, out stateWriter) {
	if agentapi.ReasonOf(outcome.Err) != agentapi.ReasonJob {
		return
	}
	shown, err := r.provider.Sender.Client.ReadJob(ctx, request.Project, request.JobID)
	if err != nil || !shown.Status.Terminal() || agentapi.MayBeStale(shown.Status, out.marks.message.SentAt) {
		return
	}
	out.marks.message.IsClosed, outcome.BecameClosed = true, true
	out.marks.write(ctx, out.private)
}
