// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
)

// await waits for the end of a job that is in the state already, and says what
// its outcome means for the run. A wait that was cut short is never an error in
// a create unless the user wants it: an error there taints, and the next apply
// would start a second job.
func (r *jobResource) await(ctx context.Context, job *jobModel, after wait.Event, options waitOptions, out stateWriter) {
	request := wait.Request{ProjectID: job.ProjectID.ValueString(), JobID: job.ID.ValueString(), After: after}
	if u := getUnfinished(ctx, out.private); !u.Message.IsZero() {
		request.After, request.At = wait.Messaged, u.Message
	}
	record, err := r.provider.Waiter.Wait(ctx, request)
	if err != nil {
		r.cutShort(ctx, job, err, request.After, options, out)
		return
	}
	warnings := job.apply(record)
	out.save(ctx, job)
	out.diags.Append(warnings...)
	unmark(ctx, out.private, markMissing)

	firstRun := after == wait.Created || getUnfinished(ctx, out.private).Create
	if record.Status == agentapi.StatusFailed && options.onFailure == onError && firstRun {
		// The mark, if there is one, stays: it makes the next plan start a new job.
		out.diags.AddError(failedJob(job, "The next apply starts a new job with the same prompt. To keep a failed job instead, set wait.on_failure to \"warn\"."))
		return
	}
	unmark(ctx, out.private, markUnfinished)
	switch record.Status {
	case agentapi.StatusFailed:
		reporter(out.diags, options.onFailure)(failedJob(job, "To start a new job, change the prompt, or apply with -replace=ADDRESS."))
	case agentapi.StatusArchived:
		out.diags.AddWarning("Agent job archived", fmt.Sprintf("Job %s was archived while the run waited for it.", job.ID.ValueString()))
	}
}

// cutShort ends a call whose wait ended before its job. The state holds the
// job, still active, and a mark tells the next plan what it was waiting for.
func (r *jobResource) cutShort(ctx context.Context, job *jobModel, err error, after wait.Event, options waitOptions, out stateWriter) {
	if after == wait.Created {
		setMark(ctx, out.private, markUnfinished, unfinished{Create: true})
	}
	var stopped *wait.Error
	if after == wait.Messaged && errors.As(err, &stopped) && stopped.LastStatus != "" && !stopped.LastStatus.Terminal() {
		unmark(ctx, out.private, markUnfinished) // the message has shown its effect: from now on any end is its own
	}
	missing := errors.Is(err, agentapi.ErrNotFound)
	// An error in a create taints. Otherwise one is the default, and is due if no later apply can do better.
	fails := options.onTimeout == onError || after != wait.Created && (options.onTimeout == "" || missing)
	fails = fails && !errors.Is(err, wait.ErrInterrupted)
	report := out.diags.AddWarning
	if fails {
		report = out.diags.AddError
	}
	if missing {
		report(missingJob(err, job, after))
		return
	}
	next := "Its id is in the state. The next apply waits on and sends nothing."
	switch {
	case fails && after == wait.Created:
		next = "Because wait.on_timeout is \"error\", the job is tainted: the next apply starts a second one. " +
			"To wait for this one instead, apply after: terraform (or tofu) untaint ADDRESS"
	case after == wait.Messaged:
		next = "The message has arrived, and the new prompt is in the state. The next apply waits on and sends nothing."
	}
	report(unfinishedWait(err, job.ID.ValueString(), next))
}

// reporter adds diagnostics of the severity that the user chose.
func reporter(diags *diag.Diagnostics, severity string) func(summary, detail string) {
	if severity == onWarn {
		return diags.AddWarning
	}
	return diags.AddError
}

// reportWait says what the outcome of a wait that keeps no job in the state, one
// of a data source or an action, means for the run, and what can be done about a
// job that is still running or failed. The resource has its own rules. An
// interrupted wait is an error whatever the options say.
func reportWait(job *jobModel, err error, options waitOptions, diags *diag.Diagnostics, ifRunning, ifFailed string) {
	id := job.ID.ValueString()
	switch {
	case errors.Is(err, agentapi.ErrNotFound):
		diags.AddError(jobNotFound(err, job.ProjectID.ValueString(), id))
	case errors.Is(err, wait.ErrInterrupted):
		diags.AddError(unfinishedWait(err, id, ifRunning))
	case err != nil:
		reporter(diags, options.onTimeout)(unfinishedWait(err, id, ifRunning))
	case job.is(agentapi.StatusFailed):
		reporter(diags, options.onFailure)(failedJob(job, ifFailed))
	}
}
