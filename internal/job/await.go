// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"errors"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// await waits until a job that is already in the state finishes, and reports its
// outcome. A wait that stops early is not an error in a create: that would taint, and
// the next apply would start a second job.
func (d *ProviderData) await(ctx context.Context, job *jobModel, after wait.Event, options waitOptions, out stateWriter) {
	target := wait.Target{ProjectID: job.ProjectID.ValueString(), JobID: job.ID.ValueString(), After: after}
	if at := out.marks.message.SentAt; !at.IsZero() { // by this call or an earlier one
		target.After, target.At = wait.Messaged, at
	}
	shown, sawActive, err := d.Waiter.Wait(ctx, target)
	if err != nil {
		cutShort(ctx, job, err, target.After, after == wait.Created, out)
		return
	}
	warnings := job.set(shown)
	out.marks.message.finished()
	out.save(ctx, job)
	out.diags.Append(warnings...)
	if after == wait.Messaged && !sawActive {
		addWarning(out.diags, wording.NotSeenActive.Of(job.facts(), nil))
	}
	switch shown.Status {
	case agentapi.StatusFailed:
		isTainted := after == wait.Created && options.onFailure == onError
		options.addFailure(out.diags, wording.Failed(job.facts(), d.nextOfFailed(options, isTainted)))
	case agentapi.StatusArchived:
		addWarning(out.diags, wording.Archived.Of(job.facts(), nil))
	}
}

// nextOfFailed says what follows a failed job.
func (d *ProviderData) nextOfFailed(options waitOptions, isTainted bool) string {
	switch {
	case options.onFailure == onRetry:
		return wording.RetriedFailed
	case !isTainted:
		return wording.ReplaceFailed
	case !d.Sender.Journal.Keeps():
		return wording.UnrecordedFailed
	}
	return wording.TaintedFailed
}

// cutShort ends a call whose wait stopped before the job finished. The state holds
// the job as active, and a mark tells the next plan what it was waiting for. A create may also adopt a job that was last
// sent a message.
func cutShort(ctx context.Context, job *jobModel, err error, after wait.Event, isCreate bool, out stateWriter) {
	if stopped, ok := errors.AsType[*wait.Error](err); ok {
		out.marks.message.interrupted(after, stopped.LastStatus)
		out.marks.write(ctx, out.private)
	}
	text := wording.StillRunning(err, job.facts(), wording.Resumes(after))
	if errors.Is(err, agentapi.ErrNotFound) {
		text = wording.LostInWait(after).Of(job.facts(), err)
	}
	if isCreate || errors.Is(err, context.Canceled) {
		addWarning(out.diags, text)
	} else {
		addError(out.diags, text)
	}
}
