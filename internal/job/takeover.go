// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

func (d *ProviderData) createKey(ctx context.Context, job *jobModel) journal.Key {
	triggers := map[string]*string{}
	_ = job.Triggers.ElementsAs(ctx, &triggers, true)
	sorted, _ := json.Marshal(triggers)
	return journal.CreateKey(d.Scope, job.ProjectID.ValueString(), job.Prompt.ValueString(), string(sorted))
}

func (d *ProviderData) messageKey(job *jobModel) journal.Key {
	return journal.MessageKey(d.Scope, job.ProjectID.ValueString(), job.ID.ValueString(), job.Prompt.ValueString())
}

// seen drops what crashed runs have left about a job that the state holds.
func (d *ProviderData) seen(job *jobModel) {
	if d != nil && d.Journal.HasLeft() {
		d.Journal.Seen(job.ID.ValueString(), d.messageKey(job))
	}
}

// takeOver looks for a job that a crashed run has started for the same request.
// Without one it returns nil, and the request may be sent unless stop is true.
func (r *jobResource) takeOver(ctx context.Context, job *jobModel, key journal.Key, call *journal.Call, out stateWriter) (record *agentapi.Job, stop bool) {
	crashes, project := r.conn.Journal, job.ProjectID.ValueString()
	for {
		left := crashes.Take(ctx, key)
		if left == nil {
			return nil, false
		}
		if left.JobID == "" {
			crashes.Settle(left)
			out.diags.AddError("Outcome of an earlier create unknown", wording.Paragraphs(
				fmt.Sprintf("A run that was ended by force had sent this request to project %s at %s, and no answer had come. A job may have been started. "+
					"Nothing was sent now. This is said once.", project, left.At.UTC().Format(time.RFC3339)),
				fmt.Sprintf("Look for the job at the service. If it is there, bring it in with: terraform (or tofu) import ADDRESS %s/JOB_ID. Otherwise apply again: that sends the prompt.", project)))
			return nil, true
		}
		record, err := r.conn.lookUp(ctx, project, left.JobID)
		switch {
		case err == nil && record.Status != agentapi.StatusFailed && record.Status != agentapi.StatusArchived:
			call.Answered(left.JobID) // in our own journal before it leaves the other
			crashes.Settle(left)
			out.diags.AddWarning("Agent job of an earlier run adopted", fmt.Sprintf(
				"A run that was ended by force had started job %s for the same prompt in project %s. This resource takes it over; nothing was sent.", left.JobID, project))
			return record, false
		case err != nil && (!errors.Is(err, agentapi.ErrNotFound) || time.Since(left.At) < wait.NewJobGrace):
			crashes.Return(left)
			out.diags.AddError("Failed to create agent job", wording.Paragraphs(
				fmt.Sprintf("A run that was ended by force had started job %s for the same prompt in project %s, and the job cannot be looked up now. Nothing was sent.", left.JobID, project),
				cause(err), "Apply again once the service answers."))
			return nil, true
		}
		crashes.Settle(left) // it has failed or is gone: a new one is due
	}
}
