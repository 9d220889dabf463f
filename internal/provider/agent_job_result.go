// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
)

// jobResult is where a call leaves what it has learnt about a job.
type jobResult struct {
	state    *tfsdk.State
	identity *tfsdk.ResourceIdentity
	private  privateState
	diags    *diag.Diagnostics
}

// save writes the job into the state, so that whatever follows cannot lose it.
func (o jobResult) save(ctx context.Context, job *jobModel) {
	raw, diags := job.encode(ctx, o.state.Raw.Type())
	if o.diags.Append(diags...); !diags.HasError() {
		o.state.Raw = raw
	}
	o.identify(ctx, job)
}

// identify repeats the identity, which a state from an old CLI does not have.
func (o jobResult) identify(ctx context.Context, job *jobModel) {
	if o.identity != nil {
		raw, diags := job.encodeIdentity(ctx, o.identity.Raw.Type())
		if o.diags.Append(diags...); !diags.HasError() {
			o.identity.Raw = raw
		}
	}
}

// recovered turns a panic into a diagnostic, because one that ends the process
// loses the id of the job and of every other one under way. The value of the
// panic is not shown: it may hold anything. Use it deferred.
func (o jobResult) recovered(ctx context.Context, operation string, job *jobModel) {
	if recover() == nil {
		return
	}
	const summary = "Bug in the agent provider"
	if id := job.ID.ValueString(); id != "" && operation == "create" {
		o.save(ctx, job)
		// An error would taint the job, and the next apply would start a second one.
		o.diags.AddWarning(summary, fmt.Sprintf("The provider met a bug after job %s was started. The job is in the state; the next apply waits on and sends nothing. Please report this.", id))
		return
	}
	o.diags.AddError(summary, say(
		fmt.Sprintf("The provider met a bug in the %s of job %q in project %s. Please report this.", operation, job.ID.ValueString(), job.ProjectID.ValueString()),
		"Something may have been sent: look at the jobs of the project at the service before you apply again."))
}

// recovered turns a panic into an error, because one that ends the process
// loses the jobs that others are just starting. Use it deferred.
func recovered(operation string, diags *diag.Diagnostics) {
	if recover() != nil { // the value may hold anything: it is not shown
		diags.AddError("Bug in the agent provider", fmt.Sprintf("The provider met a bug in the %s. Please report this.", operation))
	}
}
