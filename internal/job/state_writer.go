// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
)

// stateWriter writes a job to state, identity and private state.
type stateWriter struct {
	state    *tfsdk.State
	identity *tfsdk.ResourceIdentity
	private  privateState
	diags    *diag.Diagnostics
}

// save writes the job into the state, so that whatever follows cannot lose it.
func (w stateWriter) save(ctx context.Context, job *jobModel) {
	if raw, err := job.encode(ctx, w.state.Raw.Type()); err != nil {
		w.diags.AddError(internalError(fmt.Sprintf("Job %s of project %s could not be written to the state: %s. %s",
			job.ID.ValueString(), job.ProjectID.ValueString(), err, mayHaveSent)))
	} else {
		w.state.Raw = raw
	}
	recordPrompt(ctx, w.private, job)
	w.identify(ctx, job)
}

// identify repeats the identity, which a state from an old CLI does not have.
func (w stateWriter) identify(ctx context.Context, job *jobModel) {
	if w.identity == nil {
		return
	}
	if raw, err := job.encodeIdentity(ctx, w.identity.Raw.Type()); err != nil {
		w.diags.Append(codecFailed("the identity", err)...)
	} else {
		w.identity.Raw = raw
	}
}

// recovered turns a panic into a diagnostic, because one that ends the process
// loses the id of the job and of every other one under way. The value of the
// panic is not shown: it may hold anything. Use it deferred.
func (w stateWriter) recovered(ctx context.Context, operation string, job *jobModel) {
	if recover() == nil {
		return
	}
	project, id := job.ProjectID.ValueString(), job.ID.ValueString()
	if id != "" && operation == "create" {
		w.save(ctx, job)
		// An error would taint the job, and the next apply would start a second one.
		w.diags.AddWarning(internalError(fmt.Sprintf(
			"The provider met a bug after job %s of project %s was started. The job is in the state; the next apply waits on and sends nothing.", id, project)))
		return
	}
	w.diags.AddError(internalError(fmt.Sprintf("The provider met a bug in the %s of job %q in project %s. %s", operation, id, project, mayHaveSent)))
}

// recovered turns a panic into an error, because one that ends the process
// loses the jobs that others are just starting. Use it deferred.
func recovered(operation string, diags *diag.Diagnostics) {
	if recover() != nil { // the value may hold anything: it is not shown
		diags.AddError(internalError(fmt.Sprintf("The provider met a bug in the %s.", operation)))
	}
}
