// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
)

// waitEnd is how a wait ended that keeps no job in the state: one of a data
// source or an action. The resource has rules of its own.
type waitEnd struct {
	job     *jobModel
	err     error // nil: the job has ended
	options waitOptions
}

// report says what the end means for the run, and what can be done about a job
// that goes on or has failed. Being interrupted is an error whatever the options say.
func (w waitEnd) report(diags *diag.Diagnostics, onGoing, onFailed string) {
	add := func(severity, summary, detail string) {
		if severity == onWarn {
			diags.AddWarning(summary, detail)
			return
		}
		diags.AddError(summary, detail)
	}
	id := w.job.ID.ValueString()
	switch {
	case errors.Is(w.err, agentapi.ErrNotFound):
		diags.AddError(jobNotFound(w.err, w.job.ProjectID.ValueString(), id))
	case w.err != nil:
		severity := w.options.onTimeout
		if errors.Is(w.err, wait.ErrInterrupted) {
			severity = onError
		}
		summary, detail := unfinishedWait(w.err, id, onGoing)
		add(severity, summary, detail)
	case w.job.is(agentapi.StatusFailed):
		summary, detail := failedJob(w.job, onFailed)
		add(w.options.onFailure, summary, detail)
	}
}

// jobNotFound words that a job to be read does not exist.
func jobNotFound(err error, projectID, jobID string) (summary, detail string) {
	return "Agent job not found", say(
		fmt.Sprintf("The service does not know job %s in project %s.", jobID, projectID), cause(err))
}

// recovered turns a panic into an error, because one that ends the process
// loses the jobs that others are just starting. Use it deferred.
func recovered(operation string, diags *diag.Diagnostics) {
	if recover() != nil { // the value may hold anything: it is not shown
		diags.AddError("Bug in the agent provider", fmt.Sprintf("The provider met a bug in the %s. Please report this.", operation))
	}
}
