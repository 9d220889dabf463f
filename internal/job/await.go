// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"cmp"
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// await waits until a job that is already in the state finishes, and reports its
// outcome. A wait that stops early is not an error in a create unless the user
// wants it: an error there taints, and the next apply would start a second job.
func (d *ProviderData) await(ctx context.Context, job *jobModel, after wait.Event, options waitOptions, out stateWriter) {
	request := wait.Request{ProjectID: job.ProjectID.ValueString(), JobID: job.ID.ValueString(), After: after}
	if at := out.marks.messagedAt; !at.IsZero() {
		request.After, request.At = wait.Messaged, at
	}
	record, err := d.Waiter.Wait(ctx, request)
	if err != nil {
		cutShort(ctx, job, err, request.After, options, out)
		return
	}
	warnings := job.apply(record)
	out.marks.finished()
	out.save(ctx, job)
	out.diags.Append(warnings...)
	switch record.Status {
	case agentapi.StatusFailed:
		next := wording.ReplaceFailed
		if after == wait.Created && options.onFailure == onError { // the error taints
			next = wording.TaintedFailed
		}
		reporter(out.diags, options.onFailure)(wording.Failed(job.facts(), next))
	case agentapi.StatusArchived:
		out.diags.AddWarning(wording.Archived.Of(job.facts(), nil))
	}
}

// cutShort ends a call whose wait stopped before the job finished. The state holds
// the job as active, and a mark tells the next plan what it was waiting for.
func cutShort(ctx context.Context, job *jobModel, err error, after wait.Event, options waitOptions, out stateWriter) {
	if stopped, ok := errors.AsType[*wait.Error](err); ok {
		out.marks.interrupted(after, stopped.LastStatus)
		out.marks.write(ctx, out.private)
	}
	// An error in a create taints. Elsewhere it is the default.
	fails := options.onTimeout == onError || after != wait.Created && options.onTimeout == ""
	fails = fails && !errors.Is(err, context.Canceled)
	report := out.diags.AddWarning
	if fails {
		report = out.diags.AddError
	}
	tainted := fails && after == wait.Created
	if errors.Is(err, agentapi.ErrNotFound) {
		report(wording.LostInWait(after, tainted).Of(job.facts(), err))
		return
	}
	report(wording.StillRunning(err, job.facts(), wording.Resumes(after, tainted)))
}

// reporter adds diagnostics of the severity that the user chose.
func reporter(diags *diag.Diagnostics, severity string) func(summary, detail string) {
	if severity == onWarn {
		return diags.AddWarning
	}
	return diags.AddError
}

// reportWait reports the outcome of a data source's or an action's wait, and what to
// do about a job that is still running or failed. The resource has its own rules. An
// interrupted wait is an error whatever the options say.
func reportWait(job *jobModel, err error, options waitOptions, diags *diag.Diagnostics, ifRunning, ifFailed string) {
	switch {
	case errors.Is(err, agentapi.ErrNotFound): // of an action: a data source has reported it
		diags.AddError(wording.LostInAction.Of(job.facts(), err))
	case errors.Is(err, context.Canceled):
		diags.AddError(wording.StillRunning(err, job.facts(), ifRunning))
	case err != nil:
		reporter(diags, options.onTimeout)(wording.StillRunning(err, job.facts(), ifRunning))
	case job.is(agentapi.StatusFailed):
		reporter(diags, options.onFailure)(wording.Failed(job.facts(), ifFailed))
	}
}

// waitOptions are the settings of a wait block and their defaults.
type waitOptions struct {
	enabled              bool
	onFailure, onTimeout string // onTimeout is empty when it is not set
}

// readWaitOptions reads a wait block over its defaults. Unknown settings have their
// defaults.
func readWaitOptions(ctx context.Context, wait types.Object, options waitOptions, diags *diag.Diagnostics) waitOptions {
	if wait.IsNull() || wait.IsUnknown() {
		return options
	}
	var block struct {
		Enabled   types.Bool   `tfsdk:"enabled"`
		OnFailure types.String `tfsdk:"on_failure"`
		OnTimeout types.String `tfsdk:"on_timeout"`
	}
	diags.Append(wait.As(ctx, &block, basetypes.ObjectAsOptions{})...)
	if !block.Enabled.IsNull() && !block.Enabled.IsUnknown() {
		options.enabled = block.Enabled.ValueBool()
	}
	options.onFailure = cmp.Or(block.OnFailure.ValueString(), options.onFailure)
	options.onTimeout = cmp.Or(block.OnTimeout.ValueString(), options.onTimeout)
	return options
}

// readWaitOptions reads the wait block of a resource.
func (m *jobModel) readWaitOptions(ctx context.Context, diags *diag.Diagnostics) waitOptions {
	return readWaitOptions(ctx, m.Wait, waitOptions{enabled: true, onFailure: onError}, diags)
}
