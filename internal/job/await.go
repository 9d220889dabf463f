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

// await waits until a job that is already in the state finishes, and reports its outcome. A wait
// that stops early is an error: a create then taints the resource, whose next create adopts the
// job. But after Ctrl-C, the CLI fails without an error of ours, and there is no need to taint.
func (d *ProviderData) await(ctx context.Context, job *jobModel, after wait.Event, options waitOptions, out stateWriter) {
	target := wait.Target{ProjectID: job.ProjectID.ValueString(), JobID: job.ID.ValueString(), After: after}
	if at := out.marks.message.SentAt; !at.IsZero() { // a message of this call, or of an earlier one
		target.After, target.At = wait.Messaged, at
	}
	shown, sawActive, err := d.Waiter.Wait(ctx, target)
	if err != nil {
		d.cutShort(ctx, job, err, target.After, after == wait.Created, options, out)
		return
	}
	warnings := job.set(shown)
	out.marks.message.finished()
	out.save(ctx, job)
	out.diags.Append(warnings...)
	if after == wait.Messaged && !sawActive {
		addWarning(out.diags, wording.NotSeenActive.Of(job.facts(), nil))
	}
	switch {
	case out.marks.message.hasFailed(&job.shownJob):
		next := d.whatFollows(ctx, job, after == wait.Created, options)
		options.addFailure(out.diags, wording.Failed(job.facts(), next.AfterFailure()))
	case shown.Status == agentapi.StatusArchived:
		addWarning(out.diags, wording.Archived.Of(job.facts(), nil))
	}
}

// whatFollows is what follows a job that failed or has not finished, for its diagnostic. Nothing
// retries a job that was archived.
func (d *ProviderData) whatFollows(ctx context.Context, job *jobModel, isTainted bool, options waitOptions) wording.Next {
	return wording.Next{
		Request: d.lastRequest(ctx, job), IsTainted: isTainted,
		IsKept:    options.onFailure == onWarn || options.onFailure == "",
		IsRetried: options.onFailure == onRetry && !job.is(agentapi.StatusArchived),
	}
}

// cutShort ends a call whose wait stopped before the job finished. The state holds the job as
// active, and the marks keep whether the run of a message has been seen. isCreate does not follow
// from after: a create may have adopted a job that was last sent a message.
func (d *ProviderData) cutShort(
	ctx context.Context, job *jobModel, err error, after wait.Event, isCreate bool, options waitOptions, out stateWriter,
) {
	if stopped, ok := errors.AsType[*wait.Error](err); ok {
		out.marks.message.interrupted(after, stopped.LastStatus)
		out.marks.write(ctx, out.private)
	}
	if errors.Is(err, context.Canceled) { // by Ctrl-C, after which the CLI fails by itself
		addWarning(out.diags, wording.StillRunning(err, job.facts(), wording.Resumes))
		return
	}
	next := d.whatFollows(ctx, job, isCreate, options)
	text := wording.StillRunning(err, job.facts(), next.AfterTimeout())
	if errors.Is(err, agentapi.ErrNotFound) {
		text = wording.LostInWait(job.facts(), err, after, next)
	}
	addError(out.diags, text)
}
