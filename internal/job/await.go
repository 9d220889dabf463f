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
func (c applyCall) await(ctx context.Context, after wait.Event) {
	target := wait.Target{ProjectID: c.job.ProjectID.ValueString(), JobID: c.job.ID.ValueString(), After: after}
	if at := c.marks.message.SentAt; !at.IsZero() { // a message of this call, or of an earlier one
		target.After, target.At = wait.Messaged, at
	}
	shown, sawActive, err := c.provider.Waiter.Wait(ctx, target)
	if err != nil {
		c.cutShort(ctx, err, target.After)
		return
	}
	warnings := c.job.set(shown)
	c.marks.message.finished()
	c.save(ctx, c.job)
	c.diags.Append(warnings...)
	if after == wait.Messaged && !sawActive {
		addWarning(c.diags, wording.NotSeenActive.Of(c.job.facts(), nil))
	}
	switch {
	case c.marks.message.countsAsFailed(&c.job.shownJob):
		c.reportFailure(ctx)
	case shown.Status == agentapi.StatusArchived:
		addWarning(c.diags, wording.Archived.Of(c.job.facts(), nil))
	}
}

// reportFailure reports a job that failed, with the severity that the user chose.
func (c applyCall) reportFailure(ctx context.Context) {
	c.options.addFailure(c.diags, wording.Failed(c.job.facts(), c.whatFollows(ctx).AfterFailure()))
}

// whatFollows is what follows a job that failed or has not finished, for its diagnostic. Nothing
// retries a job that was archived.
func (c applyCall) whatFollows(ctx context.Context) wording.Next {
	return wording.Next{
		Request: c.job.lastRequest(ctx, c.provider.Sender.Journal), IsTainted: c.isCreate,
		IsKept:    !c.options.failsRuns(),
		IsRetried: c.options.onFailure == onRetry && !c.job.is(agentapi.StatusArchived),
	}
}

// cutShort ends a call whose wait stopped before the job finished. The state holds the job as
// active, and the marks keep whether the run of a message has been seen.
func (c applyCall) cutShort(ctx context.Context, err error, after wait.Event) {
	if stopped, ok := errors.AsType[*wait.Error](err); ok {
		c.marks.message.interrupted(stopped.LastStatus)
		c.marks.write(ctx, c.private)
	}
	if errors.Is(err, context.Canceled) { // by Ctrl-C, after which the CLI fails by itself
		addWarning(c.diags, wording.StillRunning(err, c.job.facts(), wording.Resumes))
		return
	}
	next := c.whatFollows(ctx)
	text := wording.StillRunning(err, c.job.facts(), next.AfterTimeout())
	if errors.Is(err, agentapi.ErrNotFound) {
		text = wording.LostInWait(c.job.facts(), err, after, next)
	}
	addError(c.diags, text)
}
