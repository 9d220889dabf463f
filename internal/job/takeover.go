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

// takeOver looks for a job that an earlier run started for the same request.
// Without one it returns nil, and the request may be sent unless stop is true.
func (r *jobResource) takeOver(ctx context.Context, job *jobModel, key journal.Key, options waitOptions, out stateWriter) (record *agentapi.Job, stop bool) {
	const summary = "Failed to create agent job"
	project := job.ProjectID.ValueString()
	for {
		orphan, err := r.provider.Journal.TakeOver(ctx, key)
		switch {
		case err != nil:
			out.diags.AddError(summary, notTakenOver(err, "project "+project))
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
				"An earlier run started job %s in project %s for this prompt, but the state did not show it. This resource takes the job over without sending the prompt again. No action is needed.", orphan.JobID, project))
			return record, false
		case err != nil && (!errors.Is(err, agentapi.ErrNotFound) || orphan.Age < wait.NewJobGrace):
			r.provider.Journal.Keep(orphan)
			out.diags.AddError(summary, wording.Paragraphs(
				fmt.Sprintf("An earlier run started job %s in project %s for this prompt, but the job cannot be read now. The prompt was not sent again.", escape.Printable(orphan.JobID), project),
				cause(err), "Apply again once the service responds."))
			return nil, true
		}
		// It failed or no longer exists: a new one must be started.
		if err := r.provider.Journal.Drop(ctx, orphan); err != nil {
			out.diags.AddError(summary, notTakenOver(err, "project "+project))
			return nil, true
		}
	}
}

// takeOverError is why a message could be neither taken over nor sent.
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

// pruneJournal removes from the journal what the prior state shows. An import may be
// undone, so this run only does not take its job over.
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
	_ = d.Journal.Seen(ctx, *job.ID, journal.Ref{}) // a failure has no effects: see Blocked
}

// reportJournalError warns once that a named journal cannot be read or cleaned up.
func (d *ProviderData) reportJournalError(err error, diags *diag.Diagnostics) {
	if err == nil {
		return
	}
	d.journalWarning.Do(func() {
		diags.AddWarning("Journal not usable", wording.Paragraphs(wording.Sentence(err),
			"Jobs and state are not affected. Creates and messages fail before they are sent until the journal can be used, and requests with a known outcome stay in it.",
			"Check journal.url and the credentials of this run: both plan and apply must be able to list, read, write and delete there."))
	})
}

// announce warns in a plan if the apply will take over a request of an earlier run,
// as far as the plan knows the request, or cannot send its own. It reports whether
// the apply will send nothing.
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
			fmt.Sprintf("The state shows the outcome of an equal request to project %s, which could not be removed from the journal: an apply would take it for this one. This request was not sent.", plan.ProjectID.ValueString()),
			wording.Sentence(err), "Plan again once the journal can be written."))
		return false
	}
	orphans, err := d.Journal.Announce(ctx, key)
	d.reportJournalError(err, diags)
	if len(orphans) == 0 {
		return false
	}
	orphan := orphans[0]
	const sendInstead = "To send the prompt instead, change triggers, or set journal = { enabled = false } in the provider block. If this plan uses -target, plan without it first."
	sentAt := fmt.Sprintf("in project %s at %s", plan.ProjectID.ValueString(), orphan.SentAt.UTC().Format(time.RFC3339))
	id, others := escape.Printable(orphan.JobID), "" // whoever can write to the journal chose it
	for _, other := range orphans[1:] {
		if other.JobID != "" {
			others += ", " + escape.Printable(other.JobID)
		}
	}
	if others != "" {
		others = " Other equal resources take over these jobs: " + others[2:] + "."
	}
	switch {
	case orphan.JobID == "":
		diags.AddAttributeWarning(at, "Outcome of an earlier request unknown", wording.Paragraphs(
			fmt.Sprintf("An earlier run sent this prompt %s and did not record the outcome. Apply waits for it, and sends the prompt only if that request had no effect.", sentAt), sendInstead))
	case kind == newJobs:
		diags.AddAttributeWarning(at, "Agent job of an earlier run will be taken over", wording.Paragraphs(
			fmt.Sprintf("An earlier run started job %s with this prompt %s, but the state does not show it. Apply takes the job over without sending anything.%s "+
				"If another resource has the job by then, or it failed or no longer exists, apply starts a new one; wait.on_failure = \"warn\" keeps a failed job.", id, sentAt, others), sendInstead))
	default:
		diags.AddAttributeWarning(at, "Message of an earlier run will be taken over",
			fmt.Sprintf("An earlier run sent this prompt to job %s %s, but the state does not show it. Apply sends nothing. "+
				"To send the prompt again, change it (any change will do).", id, sentAt))
	}
	return true
}

// warnUnrecorded warns that a named journal does not contain what the state contains.
func warnUnrecorded(err error, job string, diags *diag.Diagnostics) {
	if err != nil {
		diags.AddWarning("Journal not written", wording.Paragraphs(
			fmt.Sprintf("The prompt was sent and job %s is in the state, but the journal could not record that.", job), wording.Sentence(err),
			"No action is needed unless this state is lost: then import the job, because a later run cannot take it over."))
	}
}
