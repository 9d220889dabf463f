// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/agentjobs/terraform-provider-agent/internal/escape"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

func createKey(ctx context.Context, j *journal.Journal, job *jobModel) journal.Key {
	triggers := map[string]*string{}
	_ = job.Triggers.ElementsAs(ctx, &triggers, true)
	sorted, _ := json.Marshal(triggers)
	return j.CreateKey(job.ProjectID.ValueString(), job.promptText().ValueString(), string(sorted))
}

func messageKey(j *journal.Journal, job *jobModel) journal.Key {
	return j.MessageKey(job.ProjectID.ValueString(), job.ID.ValueString(), job.promptText().ValueString())
}

// pruneJournal removes from the journal what the prior state shows. The entries of an
// imported job stay until its prompt is recorded, because an import may be undone.
func pruneJournal(ctx context.Context, j *journal.Journal, job *jobModel, private privateState, diags *diag.Diagnostics) {
	if !job.recordedPrompt(ctx, private).missing() {
		reportJournalError(j, j.Seen(ctx, job.ID.ValueString(), getMark[journal.Ref](ctx, private, markJournal)), diags)
	}
}

// reportJournalError warns once that the journal cannot be used, and of each thing that
// was noticed while it was read.
func reportJournalError(j *journal.Journal, err error, diags *diag.Diagnostics) {
	notices, err := j.Report(err)
	for _, notice := range notices {
		diags.AddWarning(journalNotice(notice))
	}
	if err != nil {
		diags.AddWarning(journalUnusable(err, j.Named()))
	}
}

// reportProblem warns that the journal does not show an outcome.
func reportProblem(j *journal.Journal, outcome send.Outcome, job string, diags *diag.Diagnostics) {
	if outcome.Result == send.Sent && outcome.Problem != nil && j.Named() {
		diags.AddWarning(journalNotWritten(outcome.Problem, job))
		return
	}
	reportJournalError(j, outcome.Problem, diags)
}

// announce warns in a plan if the apply will take over a request of an earlier run, or
// fail because of it, as far as the plan knows the request. It reports whether the apply
// will send nothing.
func announce(ctx context.Context, j *journal.Journal, kind send.Kind, plan *jobModel, diags *diag.Diagnostics) (found bool) {
	if plan.promptText().IsUnknown() {
		return false
	}
	key := messageKey(j, plan)
	if kind == send.Create {
		triggers, _ := plan.Triggers.ToTerraformValue(ctx)
		if plan.ProjectID.IsUnknown() || !triggers.IsFullyKnown() {
			return false
		}
		key = createKey(ctx, j, plan)
	}
	orphans, err := j.Announce(ctx, key)
	reportJournalError(j, err, diags)
	if len(orphans) == 0 {
		return false
	}
	var unresolved []*journal.Orphan
	if kind == send.Create && orphans[0].Unknown {
		unresolved = j.Unresolved(ctx)
	}
	summary, detail := announcement(kind, orphans, unresolved, plan)
	diags.AddAttributeWarning(plan.promptPath(), summary, detail)
	return true
}

// announcement describes in a plan what its apply will do because of an earlier run.
// Of several equal requests, the plan does not know which one it will find.
func announcement(kind send.Kind, orphans, unresolved []*journal.Orphan, plan *jobModel) (summary, detail string) {
	const sendInstead = "To send the prompt instead, change triggers, or set journal { enabled = false } in the provider block. " +
		"If this plan uses -target, plan without it first."
	summary = "Outcome of an earlier request unknown"
	first := orphans[0]
	sent := fmt.Sprintf("in project %s at %s", plan.ProjectID.ValueString(), first.SentAt.UTC().Format(time.RFC3339))
	var jobs []string
	for _, orphan := range orphans {
		if orphan.JobID != "" {
			jobs = append(jobs, escape.Printable(orphan.JobID)) // whoever can write to the journal chose it
		}
	}
	switch {
	case kind == send.Message && len(jobs) > 0:
		return "Message of an earlier run will be taken over",
			fmt.Sprintf("An earlier run sent this prompt to job %s %s, but the state does not show it. Apply sends nothing. "+
				"To send the prompt again, change it (any change will do).", jobs[0], sent)
	case len(jobs) > 0:
		others := ""
		if len(jobs) > 1 {
			others = " Equal resources take over: " + strings.Join(jobs[1:], ", ") + "."
		}
		return "Agent job of an earlier run will be taken over", wording.Paragraphs(
			fmt.Sprintf("An earlier run started job %s with this prompt %s, but the state does not show it. "+
				"Apply takes the job over without sending anything.%s "+
				"If another resource has the job by then, or it failed, apply starts a new one; "+
				"on_failure = \"warn\" in the wait block keeps a failed job.", jobs[0], sent, others), sendInstead)
	case kind == send.Message:
		return summary, fmt.Sprintf("An earlier run sent this prompt %s and did not record the outcome. "+
			"Apply waits for it if it can still arrive, and sends nothing.", sent)
	case !first.Unknown:
		return summary, wording.Paragraphs(fmt.Sprintf("An earlier run sent this prompt %s and did not record the outcome. "+
			"Apply waits for it, and sends the prompt only if that request had no effect.", sent), sendInstead)
	}
	var ids []string
	for _, orphan := range unresolved {
		if orphan.Unknown {
			ids = append(ids, orphan.ID)
		}
	}
	return summary, wording.Paragraphs(
		fmt.Sprintf("An earlier run sent this prompt %s, and its outcome is unknown: a job may have been started. "+
			"Apply sends nothing and fails until you decide.", sent),
		waysOut(plan.ProjectID.ValueString(), first),
		fmt.Sprintf("To send all requests with unknown outcome again (%d):\n  AGENT_JOURNAL_FORGET=%s", len(ids), strings.Join(ids, ",")))
}

// lostJobs describes what earlier runs have started and no state may show.
func lostJobs(lost []*journal.Orphan, projectID string) (summary, detail string) {
	var names []string
	for _, orphan := range lost[:min(len(lost), 10)] { // few enough to be read
		name := "an unknown outcome (" + orphan.ID + ")"
		if orphan.JobID != "" {
			name = escape.Printable(orphan.JobID)
		}
		names = append(names, fmt.Sprintf("%s, sent at %s", name, orphan.SentAt.UTC().Format(time.RFC3339)))
	}
	return "Agent jobs of an earlier run may be missing from the state", wording.Paragraphs(
		fmt.Sprintf("Earlier runs that did not end cleanly sent other prompts to project %s, "+
			"and no run has seen the jobs in the state since:", projectID),
		strings.Join(names, "\n"),
		fmt.Sprintf("If no resource has such a job, import it: terraform (or tofu) import ADDRESS %s/JOB_ID\nIgnore this if another resource "+
			"has it, or if you used -target.", projectID))
}

// journalUnusable describes a journal that cannot be read or cleaned up.
func journalUnusable(err error, named bool) (summary, detail string) {
	effect := "But if this run is killed or cannot store its state, the next one may send a prompt again."
	next := "Check that the folder can be read and written."
	if named {
		effect = "Creates and messages fail before they are sent until the journal can be used, and requests with a known outcome stay in it."
		next = "Check journal.url and the credentials of this run: both plan and apply must be able to list, read, write and delete there."
	}
	summary = "Journal not usable"
	return summary, wording.Paragraphs(wording.Sentence(err), "Jobs and state are not affected. "+effect, next)
}

// journalNotWritten warns that a named journal does not contain what the state contains.
func journalNotWritten(err error, job string) (summary, detail string) {
	return "Journal not written", wording.Paragraphs(
		fmt.Sprintf("The prompt was sent and job %s is in the state, but the journal could not record that.", job), wording.Sentence(err),
		"No action is needed unless this state is lost: then import the job, because a later run cannot take it over.")
}

// journalNotice describes what was noticed while the journal was read.
func journalNotice(err error) (summary, detail string) {
	return "Journal entry not usable", wording.Paragraphs(wording.Sentence(err), "Nothing was sent. If it names a job that no state shows, "+
		"import it.")
}
