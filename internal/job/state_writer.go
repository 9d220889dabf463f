// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-log/tflog"
)

// stateWriter writes a job to state, identity and private state.
type stateWriter struct {
	state    *tfsdk.State
	identity *tfsdk.ResourceIdentity
	private  privateState
	diags    *diag.Diagnostics
}

// save writes the job to the state, so that nothing that follows can lose it.
func (w stateWriter) save(ctx context.Context, job *jobModel) {
	w.written("state", job, w.state.Set(ctx, job.stored()))
	recordPrompt(ctx, w.private, job)
	w.identify(ctx, job)
}

// identify writes the identity, which a state from an old CLI does not have.
func (w stateWriter) identify(ctx context.Context, job *jobModel) {
	if w.identity != nil {
		w.written("identity", job, w.identity.Set(ctx, jobIdentity{job.ProjectID, job.ID}))
	}
}

// written names the job if it could not be written.
func (w stateWriter) written(to string, job *jobModel, diags diag.Diagnostics) {
	if diags.HasError() {
		w.diags.Append(diags...)
		w.diags.AddError(internalError(fmt.Sprintf("Job %s could not be written to the %s. %s", job.name(), to, mayHaveSent)))
	}
}

// recovered turns a panic into a diagnostic, because a crash would lose the ids of
// all jobs in flight. Use it deferred.
func (w stateWriter) recovered(ctx context.Context, operation, sent string, job *jobModel) {
	if recover() == nil {
		return
	}
	logStack(ctx, operation)
	if job.ID.ValueString() != "" && operation == "create" {
		w.save(ctx, job)
		// An error would taint the job, and the next apply would start a second one.
		w.diags.AddWarning(internalError(fmt.Sprintf("The provider hit an internal error after job %s was started. "+
			"The job is in the state; the next apply resumes waiting without sending anything.", job.name())))
		return
	}
	target := "job " + job.name()
	if job.ID.ValueString() == "" {
		target = "project " + job.ProjectID.ValueString()
	}
	w.diags.AddError(internalError(fmt.Sprintf("The provider hit an internal error (%s, %s). %s", operation, target, sent)))
}

// logStack logs where a panic happened, for a report. The panic's value may contain
// anything: it is neither logged nor shown.
func logStack(ctx context.Context, operation string) {
	tflog.Error(ctx, "the provider hit an internal error", map[string]any{"operation": operation, "stack": string(debug.Stack())})
}

// recovered turns a panic into an error, because a crash would lose the jobs that
// other calls are starting. Use it deferred.
func recovered(ctx context.Context, operation, sent string, diags *diag.Diagnostics) {
	if recover() != nil {
		logStack(ctx, operation)
		diags.AddError(internalError(fmt.Sprintf("The provider hit an internal error while %s. %s", operation, sent)))
	}
}
