// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/validate"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// requestKey identifies the request that a plan makes.
func requestKey(ctx context.Context, kind send.Kind, job *jobModel) journal.Key {
	project, prompt := job.ProjectID.ValueString(), job.comparedPrompt().ValueString()
	if kind == send.Message {
		return store.MessageKey(project, job.ID.ValueString(), prompt)
	}
	triggers := map[string]*string{}
	_ = job.Triggers.ElementsAs(ctx, &triggers, true)
	sorted, _ := json.Marshal(triggers)
	if !job.Name.IsNull() {
		return store.NamedCreateKey(project, job.Name.ValueString(), string(sorted))
	}
	return store.CreateKey(project, prompt, string(sorted))
}

// pruneJournal removes from the journal what the prior state makes superfluous.
func (m *marks) pruneJournal(ctx context.Context, j *journal.Journal, diags *diag.Diagnostics) {
	remaining, err := j.Prune(ctx, m.journal)
	reportJournalError(j, err, diags)
	reportMoved(j, diags)
	reportUnremoved(ctx, j, diags)
	m.journal = remaining
}

// reportMoved warns once that the last apply of the state kept the journal elsewhere, if this plan sends something.
func reportMoved(j *journal.Journal, diags *diag.Diagnostics) {
	if j.Moved() {
		addWarning(diags, wording.JournalMoved(j.Location.String()))
	}
}

// reportUnremoved warns that an apply of this plan would find entries of jobs that the state has.
func reportUnremoved(ctx context.Context, j *journal.Journal, diags *diag.Diagnostics) {
	unremoved, err := j.Unremoved(ctx)
	reportJournalError(j, err, diags)
	for _, e := range unremoved {
		if e.JobID != "" {
			addWarning(diags, wording.EntryNotRemoved(e))
		}
	}
}

// reportJournalError warns once that the journal cannot be used.
func reportJournalError(j *journal.Journal, err error, diags *diag.Diagnostics) {
	if err := j.FirstError(err); err != nil {
		addWarning(diags, wording.JournalUnusable(err))
	}
}

// reportProblem warns that the journal does not show an outcome.
func reportProblem(j *journal.Journal, outcome send.Outcome, job wording.Job, diags *diag.Diagnostics) {
	if outcome.Result == send.Sent && outcome.Problem != nil {
		addWarning(diags, wording.JournalNotWritten(outcome.Problem, job))
		return
	}
	reportJournalError(j, cmp.Or(outcome.Problem, j.NotRemoved()), diags)
}

// equalRequests returns the requests of other runs that have the key of a planned one, as far as the plan knows it.
func equalRequests(ctx context.Context, j *journal.Journal, kind send.Kind, plan *jobModel, diags *diag.Diagnostics) []*journal.Earlier {
	if !plan.hasKnownKey(ctx, kind) {
		return nil
	}
	found, err := j.Find(ctx, requestKey(ctx, kind, plan))
	reportJournalError(j, err, diags)
	return found
}

// hasKnownKey reports whether a plan knows all that identifies a request: of a create with a name, that is not the prompt.
func (m *jobModel) hasKnownKey(ctx context.Context, kind send.Kind) bool {
	triggers, _ := m.Triggers.ToTerraformValue(ctx)
	isNamed := kind == send.Create && !m.Name.IsNull()
	return !m.promptText().IsNull() && (isNamed || !m.promptText().IsUnknown()) &&
		!m.Name.IsUnknown() && !m.ProjectID.IsUnknown() && triggers.IsFullyKnown()
}

// announce warns in a plan if the apply will take over a request of an earlier run, or
// fail because of it. It returns how many there are.
func (d *ProviderData) announce(ctx context.Context, kind send.Kind, plan *jobModel, diags *diag.Diagnostics) int {
	j := d.Sender.Journal
	found := equalRequests(ctx, j, kind, plan, diags)
	if kind == send.Create {
		reportJournalError(j, j.RemoveStored(ctx, requestKey(ctx, kind, plan), found), diags)
		j.PlansCreate(requestKey(ctx, kind, plan))
		reportUnremoved(ctx, j, diags)
		found = slices.DeleteFunc(found, func(e *journal.Earlier) bool {
			isOther := e.GivenUp && plan.promptHash() != "" && e.Prompt != plan.promptHash()
			return isOther && e.Status == store.Accepted || d.isOver(e)
		})
	}
	if len(found) > 0 {
		validate.WarnAt(diags, plan.promptPath(), wording.Announcement(kind, plan.ProjectID.ValueString(), plan.promptHash(), found))
	}
	return len(found)
}

// isOver reports whether no create finds an earlier one: a resource has its job, or a person has given it up.
func (d *ProviderData) isOver(e *journal.Earlier) bool {
	return d.Sender.Journal.HasOwner(e.JobID) || isGivenUp(e)
}

// warnOfNamesakes warns in a plan of a new job with a name that earlier runs have started others with that name and
// other triggers, or with this prompt and without a name.
func (d *ProviderData) warnOfNamesakes(ctx context.Context, plan *jobModel, diags *diag.Diagnostics) {
	if plan.Name.IsNull() || !plan.hasKnownKey(ctx, send.Create) {
		return
	}
	found, err := d.Sender.Journal.FindNamesakes(ctx, requestKey(ctx, send.Create, plan))
	reportJournalError(d.Sender.Journal, err, diags)
	unnamed := *plan
	unnamed.Name = types.StringNull()
	found = append(found, equalRequests(ctx, d.Sender.Journal, send.Create, &unnamed, diags)...)
	found = slices.DeleteFunc(found, func(e *journal.Earlier) bool { return e.GivenUp || d.isOver(e) })
	if len(found) > 0 {
		validate.WarnAt(diags, path.Root("name"), wording.Namesakes(plan.ProjectID.ValueString(), found))
	}
}

// warnOfPlace warns once, where something would be sent, that the journal may not outlive this run, or that
// entries of earlier runs are elsewhere.
func (d *ProviderData) warnOfPlace(ctx context.Context, diags *diag.Diagnostics) {
	d.warnsOfPlace.Do(func() {
		if d.OnRunner {
			addWarning(diags, wording.JournalOnRunner(d.Sender.Journal.Location.Folder))
		}
		if number, where := d.Sender.Journal.LeftElsewhere(ctx); number > 0 {
			addWarning(diags, wording.JournalElsewhere(number, where))
		} else {
			d.Sender.Journal.Sends()
		}
	})
	reportMoved(d.Sender.Journal, diags)
}

func isGivenUp(e *journal.Earlier) bool { return e.GivenUp && e.Status == store.Unknown }

// tidyJournal follows a plan that keeps a job: it removes creates that the stored state, or a person, makes
// superfluous, and warns of others with the planned prompt that no state is known to have: a
// replacement that was killed, for example. What the run that wrote this state has started beside
// the job belongs to an equal resource.
func (d *ProviderData) tidyJournal(ctx context.Context, plan *jobModel, stored journal.Ref, isImporting bool, diags *diag.Diagnostics) {
	j, jobID := d.Sender.Journal, plan.ID.ValueString()
	var superfluous []*journal.Earlier
	var err error
	switch {
	case isImporting: // this run may have imported the job, so that no stored state has it
		j.Taken(jobID)
	case stored.Run == "" && j.IsStored(jobID): // it was imported earlier, perhaps with another prompt
		superfluous, err = j.StartedBy(ctx, jobID)
		reportJournalError(j, err, diags)
	}
	var others []*journal.Earlier
	found := equalRequests(ctx, j, send.Create, plan, diags)
	for _, e := range found {
		switch {
		case isGivenUp(e):
			superfluous = append(superfluous, e)
		case e.JobID != jobID && !j.HasOwner(e.JobID) && e.Run != stored.Run && !e.GivenUp:
			others = append(others, e)
		}
	}
	if len(others) > 0 {
		validate.WarnAt(diags, plan.promptPath(), wording.OtherJob(plan.facts(), others))
	}
	for _, e := range superfluous {
		j.Remove(ctx, e.Name)
	}
	reportJournalError(j, j.RemoveStored(ctx, requestKey(ctx, send.Create, plan), found), diags)
	reportUnremoved(ctx, j, diags)
}
