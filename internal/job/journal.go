// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/agentjobs/terraform-provider-agent/internal/escape"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

func createKey(ctx context.Context, job *jobModel) journal.Key {
	triggers := map[string]*string{}
	_ = job.Triggers.ElementsAs(ctx, &triggers, true)
	sorted, _ := json.Marshal(triggers)
	return store.CreateKey(job.ProjectID.ValueString(), job.promptText().ValueString(), string(sorted))
}

func messageKey(job *jobModel) journal.Key {
	return store.MessageKey(job.ProjectID.ValueString(), job.ID.ValueString(), job.promptText().ValueString())
}

// pruneJournal removes from the journal what the prior state makes superfluous.
func pruneJournal(ctx context.Context, j *journal.Journal, prior, next privateState, diags *diag.Diagnostics) {
	ref := getMark[journal.Ref](ctx, prior, markJournal)
	if len(ref.Entries) == 0 {
		return
	}
	remaining, err := j.Seen(ctx, ref)
	reportJournalError(j, err, diags)
	setMark(ctx, next, markJournal, remaining)
}

// reportJournalError warns once that the journal cannot be used.
func reportJournalError(j *journal.Journal, err error, diags *diag.Diagnostics) {
	if err := j.Unusable(err); err != nil {
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

// equalCreates returns the creates of other runs that are equal to a planned one, as far as the plan knows it.
func equalCreates(ctx context.Context, j *journal.Journal, plan *jobModel, diags *diag.Diagnostics) []*journal.Earlier {
	triggers, _ := plan.Triggers.ToTerraformValue(ctx)
	if plan.promptText().IsNull() || plan.promptText().IsUnknown() || plan.ProjectID.IsUnknown() || !triggers.IsFullyKnown() {
		return nil
	}
	found, err := j.Announce(ctx, createKey(ctx, plan))
	reportJournalError(j, err, diags)
	return found
}

// equalMessages returns the messages of other runs that are equal to a planned one.
func equalMessages(ctx context.Context, j *journal.Journal, plan *jobModel, diags *diag.Diagnostics) []*journal.Earlier {
	if plan.promptText().IsUnknown() {
		return nil
	}
	found, err := j.Announce(ctx, messageKey(plan))
	reportJournalError(j, err, diags)
	return found
}

// announce warns in a plan if the apply will take over a request of an earlier run, or
// fail because of it. It reports whether the apply will send nothing.
func announce(ctx context.Context, j *journal.Journal, kind send.Kind, plan *jobModel, diags *diag.Diagnostics) bool {
	equal := equalMessages
	if kind == send.Create {
		equal = equalCreates
	}
	found := equal(ctx, j, plan, diags)
	if len(found) == 0 {
		return false
	}
	summary, detail := announcement(kind, found, plan)
	diags.AddAttributeWarning(plan.promptPath(), summary, detail)
	return true
}

// announceOther warns in a plan that keeps a job if another run has started one with the planned
// prompt that no state is known to have: a replacement that was killed, for example. What the
// run that wrote this state has started beside the job belongs to an equal resource.
func announceOther(ctx context.Context, j *journal.Journal, plan *jobModel, ref journal.Ref, diags *diag.Diagnostics) {
	found := slices.DeleteFunc(equalCreates(ctx, j, plan, diags), func(e *journal.Earlier) bool {
		return e.Run() == ref.Run || e.JobID == plan.ID.ValueString()
	})
	if len(found) == 0 {
		return
	}
	started := "may have started a job, with unknown outcome,"
	if jobs := jobsOf(found); len(jobs) > 0 {
		started = "started job " + strings.Join(jobs, " and ")
	}
	diags.AddAttributeWarning(plan.promptPath(), "Agent job of another run not in the state", wording.Paragraphs(
		fmt.Sprintf("Another run %s with this prompt in project %s at %s, and no state is known to have it. "+
			"That run may have been killed while it replaced job %s, or an equal resource that this plan has not read yet has the job.",
			started, plan.ProjectID.ValueString(), found[0].SentAt.UTC().Format(time.RFC3339), plan.ID.ValueString()),
		"Apply sends nothing because of it and keeps job "+plan.ID.ValueString()+". To take the other one over, apply with -replace=ADDRESS. "+
			"To ignore it, "+giveUp(found...)+"."))
}

// announcement describes in a plan what its apply will do because of an earlier run.
// Of several equal requests, the plan does not know which one it will find.
func announcement(kind send.Kind, found []*journal.Earlier, plan *jobModel) (summary, detail string) {
	const sendInstead = "To send the prompt instead, change triggers, or set journal { enabled = false } in the provider block. " +
		"If this plan uses -target, plan without it first."
	summary = "Outcome of an earlier request unknown"
	first := found[0]
	sent := fmt.Sprintf("in project %s at %s", plan.ProjectID.ValueString(), first.SentAt.UTC().Format(time.RFC3339))
	jobs := jobsOf(found)
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
	return summary, wording.Paragraphs(
		fmt.Sprintf("An earlier run sent this prompt %s, and its outcome is unknown: a job may have been started. "+
			"Apply sends nothing and fails until you decide.", sent),
		waysOut(plan.ProjectID.ValueString(), first))
}

// jobsOf names the jobs of requests, each once.
func jobsOf(found []*journal.Earlier) (jobs []string) {
	for _, earlier := range found {
		if name := escape.Printable(earlier.JobID); name != "" && !slices.Contains(jobs, name) { // whoever can write to the journal chose it
			jobs = append(jobs, name)
		}
	}
	return jobs
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
