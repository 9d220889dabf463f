// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"cmp"
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
	if c.isCreate {
		warnings = c.noteCreate(outcome)
	} else {
		warnings = c.noteMessage(outcome)
	}
	if c.isCreate || c.marks.holder == "" { // a message does not take a job from whoever has adopted it
		c.marks.holder = operation.Holder()
	}
	c.save(ctx, c.job)
	return warnings
}

// noteCreate notes which job the create has started or adopted.
func (c applyCall) noteCreate(outcome send.Outcome) (warnings diag.Diagnostics) {
	if message := outcome.Record.LastMessage(); outcome.Result == send.Adopted && message != nil {
		c.marks.message.SentAt, c.marks.message.Unconfirmed = message.SentAt, message.Unknown
	}
	return c.job.set(cmp.Or(outcome.Job, &agentapi.Job{ID: outcome.JobID})) // perhaps it cannot be read
}

// noteMessage notes that the job has the message, or may have it.
func (c applyCall) noteMessage(outcome send.Outcome) (warnings diag.Diagnostics) {
	if outcome.Job == nil {
		c.marks.message.unanswered()
		return nil
	}
	at := time.Now()
	if outcome.Result == send.AlreadySent {
		at = outcome.Record.Last.SentAt
	}
	c.marks.message.accepted(at)
	warnings = c.job.set(outcome.Job)
	c.job.Status = types.StringValue(string(agentapi.StatusActive)) // what was read may be from before the message
	return warnings
}

// sayOutcome says what became of a request. Accepted needs no words, because the plan has shown it, and
// nor does an adoption if this run has removed the object that had the job.
func (c applyCall) sayOutcome(outcome send.Outcome, request send.Request) {
	if outcome.Beside != nil {
		check.WarnAt(c.diags, path.Root("name"), wording.BesideAnother(request, outcome.Beside))
	}
	switch outcome.Result {
	case send.Accepted:
	case send.Adopted:
		if !c.provider.Sender.Journal.IsLeftOrKeptByThisRun(outcome.Record) {
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
func (c applyCall) noteRefusal(ctx context.Context, outcome send.Outcome, request send.Request) (isClosed bool) {
	if !agentapi.MayMeanClosed(outcome.Err) {
		return false
	}
	shown, err := c.provider.Sender.Client.ReadJob(ctx, request.Project, request.Recipient)
	if err != nil || !shown.Status.Terminal() || agentapi.MayBeStale(shown.Status, c.marks.message.SentAt) {
		return false
	}
	c.marks.message.RefusesMessages = true
	c.marks.write(ctx, c.private)
	return true
}

// reportProblem warns that the journal does not show an outcome, or may not outlive this run.
func (c applyCall) reportProblem(operation *send.Operation, result send.Result) {
	if result == send.Accepted || result == send.Unknown {
		c.provider.warnOfPlace(c.diags)
	}
	problem := operation.Problem()
	if problem != nil && result == send.Accepted {
		addWarning(c.diags, wording.JournalNotWritten(problem, c.job.facts()))
		return
	}
	c.provider.reportJournalError(problem, c.diags)
}
