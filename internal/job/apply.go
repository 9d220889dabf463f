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

// applyCall is one Create or Update: the job that it works on, and where it writes what becomes of it.
type applyCall struct {
	stateWriter
	provider *ProviderData
	job      *jobModel
	options  waitOptions
	isCreate bool // its error taints the resource (T5)
}

// saveOutcome writes to the state what became of a request, from the moment that its job may have
// the prompt, so that no later apply sends that again.
func (c applyCall) saveOutcome(ctx context.Context, outcome send.Outcome, operation *send.Operation) (warnings diag.Diagnostics) {
	if outcome.JobID == "" {
		return nil
	}
	lastMessage, marks := outcome.Record.LastMessage(), &c.marks.message
	switch {
	case outcome.Job != nil:
		warnings = c.job.set(outcome.Job)
	case c.isCreate: // its job cannot be read
		c.job.set(&agentapi.Job{ID: outcome.JobID})
	}
	switch {
	case !c.isCreate && outcome.Job == nil:
		marks.messaged(time.Time{})
	case !c.isCreate:
		at := time.Now()
		if outcome.Result == send.AlreadySent {
			at = outcome.Record.Last.SentAt
		}
		marks.messaged(at)
		c.job.Status = types.StringValue(string(agentapi.StatusActive)) // what was read may be from before the message
	case outcome.Result == send.Adopted && lastMessage != nil:
		marks.SentAt, marks.Unconfirmed = lastMessage.SentAt, lastMessage.Unknown
	}
	if c.isCreate || c.marks.holder == "" { // a message does not take a job from whoever has adopted it
		c.marks.holder = operation.Call.Holder()
	}
	c.save(ctx, c.job)
	return warnings
}

// sayOutcome says what became of a request. Accepted needs no words: the plan has shown it. isOwn: this
// run has removed the object that had the adopted job, so the adoption is no news.
func (c applyCall) sayOutcome(outcome send.Outcome, request send.Request, isOwn bool) {
	if outcome.Beside != nil {
		check.WarnAt(c.diags, path.Root("name"), wording.BesideAnother(request, outcome.Beside))
	}
	switch outcome.Result {
	case send.Accepted:
	case send.Adopted:
		if !isOwn {
			addWarning(c.diags, wording.Adopted(outcome, request))
		}
	case send.AlreadySent:
		addWarning(c.diags, wording.AlreadySent(outcome, request))
	default:
		addError(c.diags, wording.NotAccepted(outcome, request))
	}
}

// noteRefusal notes that a job which has finished has refused a message: a service may refuse messages
// to every such job. So the job counts as closed, and the next plan replaces it.
func (c applyCall) noteRefusal(ctx context.Context, outcome *send.Outcome, request send.Request) {
	if !agentapi.MayMeanClosed(outcome.Err) {
		return
	}
	shown, err := c.provider.Sender.Client.ReadJob(ctx, request.Project, request.JobID)
	if err != nil || !shown.Status.Terminal() || agentapi.MayBeStale(shown.Status, c.marks.message.SentAt) {
		return
	}
	c.marks.message.IsClosed, outcome.BecameClosed = true, true
	c.marks.write(ctx, c.private)
}

// reportProblem warns that the journal does not show an outcome, or may not outlive this run.
func (c applyCall) reportProblem(operation *send.Operation, result send.Result) {
	if result == send.Accepted || result == send.Unknown {
		c.provider.warnOfPlace(c.diags)
	}
	problem := operation.Call.Problem()
	if problem != nil && result == send.Accepted {
		addWarning(c.diags, wording.JournalNotWritten(problem, c.job.facts()))
		return
	}
	c.provider.reportJournalError(problem, c.diags)
}
