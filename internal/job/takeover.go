// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/escape"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// takeOver looks for a job that an earlier run has started for the same request.
// Without one it returns nil, and the request may be sent unless stop is true.
func (r *jobResource) takeOver(ctx context.Context, job *jobModel, key journal.Key, options waitOptions, out stateWriter) (record *agentapi.Job, stop bool) {
	const failed = "Failed to create agent job"
	project := job.ProjectID.ValueString()
	for {
		orphan, err := r.provider.Journal.TakeOver(ctx, key)
		switch {
		case err != nil:
			out.diags.AddError(failed, notTakenOver(err, "project "+project))
			return nil, true
		case orphan == nil:
			return nil, false
		case orphan.JobID == "":
			out.diags.AddError(unknownCreate(project, orphan.SentAt))
			return nil, true
		}
		record, err := r.provider.lookUp(ctx, project, orphan.JobID)
		switch {
		case err == nil && (record.Status != agentapi.StatusFailed || options.onFailure == onWarn):
			setJournalRef(ctx, out.private, orphan.Ref)
			out.diags.AddWarning("Agent job of an earlier run taken over", fmt.Sprintf(
				"An earlier run started job %s for the same prompt in project %s, and the state did not show it. This resource takes the job over; nothing was sent.", orphan.JobID, project))
			return record, false
		case err != nil && (!errors.Is(err, agentapi.ErrNotFound) || orphan.Age < wait.NewJobGrace):
			r.provider.Journal.Keep(orphan)
			out.diags.AddError(failed, wording.Paragraphs(
				fmt.Sprintf("An earlier run started job %s for the same prompt in project %s, and the job cannot be looked up now. Nothing was sent.", escape.Printable(orphan.JobID), project),
				cause(err), "Apply again once the service responds."))
			return nil, true
		}
		// It failed or is gone: a new one is due.
		if err := r.provider.Journal.Drop(ctx, orphan); err != nil {
			out.diags.AddError(failed, notTakenOver(err, "project "+project))
			return nil, true
		}
	}
}

// takeOverError is what kept a message from being taken over, so that it was
// not sent either.
type takeOverError struct{ error }

func (e takeOverError) Unwrap() error { return e.error }

func (d *ProviderData) createKey(ctx context.Context, job *jobModel) journal.Key {
	triggers := map[string]*string{}
	_ = job.Triggers.ElementsAs(ctx, &triggers, true)
	sorted, _ := json.Marshal(triggers)
	return journal.CreateKey(d.Scope, job.ProjectID.ValueString(), job.promptText().ValueString(), string(sorted))
}

func (d *ProviderData) messageKey(job *jobModel) journal.Key {
	return journal.MessageKey(d.Scope, job.ProjectID.ValueString(), job.ID.ValueString(), job.promptText().ValueString())
}

// pruneJournal lets the journal forget what the prior state shows. An import may yet be
// undone, so its job is only kept from being taken over by this run.
func (d *ProviderData) pruneJournal(ctx context.Context, job *jobModel, private privateState, diags *diag.Diagnostics) {
	switch id := job.ID.ValueString(); {
	case d == nil:
	case job.recordedPrompt(ctx, private).missing():
		d.reportJournalError(d.Journal.Imported(ctx, id), diags)
	default:
		d.reportJournalError(d.Journal.Seen(ctx, id, getMark[journal.Ref](ctx, private, markJournal)), diags)
	}
}

// reportNotWithdrawn warns when the record of a request without effect could not be removed.
func (d *ProviderData) reportNotWithdrawn(call *journal.Call, err error, diags *diag.Diagnostics) {
	if _, reported := errors.AsType[*journal.Error](err); !reported {
		d.reportJournalError(call.Unrecorded(), diags)
	}
}

// StateRead lets the journal forget the create that a stored object shows.
func (d *ProviderData) StateRead(ctx context.Context, object []byte) {
	var job struct{ ID *string }
	if d == nil || json.Unmarshal(object, &job) != nil || job.ID == nil {
		return
	}
	_ = d.Journal.Seen(ctx, *job.ID, journal.Ref{}) // Blocked keeps a failure from having effects
}

// reportJournalError warns once that a named journal cannot be read or cleaned up.
func (d *ProviderData) reportJournalError(err error, diags *diag.Diagnostics) {
	if err == nil {
		return
	}
	d.journalWarning.Do(func() {
		diags.AddWarning("Journal not usable", wording.Paragraphs(wording.Sentence(err),
			"Jobs and state are not affected. But requests stay in the journal although their outcome is known, and creates and messages fail until the journal can be used.",
			"Check journal.url and the credentials of this run: plan and apply both list, read, write and delete there."))
	})
}

// announce says in a plan when an apply will take over a request of an earlier
// run, as far as the plan knows the request, or what else keeps the apply from
// sending its own. It reports whether the apply will send nothing.
func (d *ProviderData) announce(ctx context.Context, kind requestKind, plan *jobModel, diags *diag.Diagnostics) (takesOver bool) {
	if d == nil || plan.promptText().IsUnknown() {
		return false
	}
	key := d.messageKey(plan)
	if kind == newJobs {
		triggers, _ := plan.Triggers.ToTerraformValue(ctx)
		if plan.ProjectID.IsUnknown() || !triggers.IsFullyKnown() {
			return false
		}
		key = d.createKey(ctx, plan)
	}
	at := plan.promptPath()
	if err := d.Journal.Blocked(key); err != nil {
		diags.AddAttributeError(at, "Journal not usable", wording.Paragraphs(
			"The state shows the outcome of an earlier request that equals this one, but the request could not be removed from the journal. An apply would take it for this one. Nothing was sent.",
			wording.Sentence(err), "Plan again once the journal can be written."))
		return false
	}
	orphan, err := d.Journal.Announce(ctx, key)
	d.reportJournalError(err, diags)
	if orphan == nil {
		return false
	}
	const sendInstead = "To send the prompt instead, change triggers, or set journal = { enabled = false } in the provider block. If this plan has -target, plan without it first."
	sentAt := orphan.SentAt.UTC().Format(time.RFC3339)
	id := escape.Printable(orphan.JobID) // whoever can write to the journal chose it
	switch {
	case orphan.JobID == "":
		diags.AddAttributeWarning(at, "Outcome of an earlier request unknown", wording.Paragraphs(
			fmt.Sprintf("An earlier run sent this prompt at %s and did not record the outcome. Apply sends nothing before the outcome is known or was reported.", sentAt), sendInstead))
	case kind == newJobs:
		diags.AddAttributeWarning(at, "Agent job of an earlier run will be taken over", wording.Paragraphs(
			fmt.Sprintf("Agent job %s of an earlier run will be taken over; nothing will be sent. That run sent this prompt at %s, and the state does not show it. "+
				"If another resource turns out to have the job, or it has failed or is gone, apply starts a new one; wait.on_failure = \"warn\" keeps a failed job.", id, sentAt), sendInstead))
	default:
		diags.AddAttributeWarning(at, "Message of an earlier run will be taken over",
			fmt.Sprintf("An earlier run sent this prompt to job %s at %s, and the state does not show it. Apply sends nothing. "+
				"To send the prompt again, change it (any change will do).", id, sentAt))
	}
	return true
}

// warnUnrecorded says that a named journal does not hold what the state holds.
func warnUnrecorded(err error, jobID string, diags *diag.Diagnostics) {
	if err != nil {
		diags.AddWarning("Journal not written", wording.Paragraphs(
			fmt.Sprintf("The prompt was sent and job %s is in the state, but the journal could not record it. If this state is lost, a later run cannot take the job over.", jobID),
			wording.Sentence(err)))
	}
}
