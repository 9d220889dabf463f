// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/validate"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// staying is what an apply would find in the journal for a job that stays: under its name, if that is new, or for a message to it.
type staying struct {
	request   send.Request
	isMessage bool
	isNewName bool // the job gets a name, or another one
	hadName   bool
	verdict   journal.Verdict
	record    *journal.Record // nil if there is none, or if that is not known
}

// planStaying plans what becomes of the name of a job that stays, and of a message to it: it keeps the record in step, finds out what
// the apply would meet, says what follows, and counts a message that the apply sends.
func (d *ProviderData) planStaying(ctx context.Context, plan, state *jobModel, c change, m *marks, diags *diag.Diagnostics) {
	s := staying{
		isMessage: c.effect == sendMessage, isNewName: !plan.Name.Equal(state.Name), hadName: !state.Name.IsNull(), verdict: journal.Send,
	}
	if s.isNewName {
		d.planLeave(ctx, state, m, diags)
	} else {
		d.reconcileRecord(ctx, state, m, diags)
	}
	if s.isMessage || s.isNewName {
		s.request = plan.request(ctx, state.ID.ValueString())
	}
	switch {
	case s.isMessage && !plan.Name.IsNull():
		s.verdict, s.record = d.peekMessage(ctx, plan, state, diags)
	case s.isNewName:
		s.verdict, s.record = d.peek(ctx, s.request.Wanted, diags)
	}

	warn := func(text wording.Diagnostic) { validate.WarnAt(diags, path.Root("name"), text) }
	switch {
	case s.isMessage && plan.Name.IsNull():
		checkName(s.request, diags)
		return
	case s.isObstructed():
		warn(wording.Announcement(s.verdict, s.request, s.record))
		return
	case s.verdict == journal.OtherJob:
		warn(wording.NameFromOther(state.facts(), s.record))
	case s.isNewName && s.hadName && s.record != nil && s.record.IsUnknownCreate():
		warn(wording.OtherJob(state.facts(), s.record))
	}
	if s.isMessage {
		d.planRequest(ctx, s.request, diags)
	}
	c.say(plan, state, &m.message, diags)
}

// isObstructed reports whether the record keeps the apply from sending a message, or from changing the name. An import may take a name
// from another job.
func (s staying) isObstructed() bool {
	if s.isMessage {
		return s.verdict != journal.Send
	}
	return s.verdict == journal.OtherJob && s.hadName
}

// peek tells what an apply would find under a name. While that is not known, it is nothing.
func (d *ProviderData) peek(ctx context.Context, w journal.Wanted, diags *diag.Diagnostics) (journal.Verdict, *journal.Record) {
	if w.Name == "" || w.Project == "" {
		return journal.Send, nil
	}
	verdict, record, err := d.Sender.Journal.Peek(ctx, w)
	d.reportJournalError(err, diags)
	return verdict, record
}

// peekMessage is peek for a message to a job in the state. If the job gets another name, the record under its earlier one counts, unless
// a run was killed after it had renamed the job.
func (d *ProviderData) peekMessage(ctx context.Context, plan, state *jobModel, diags *diag.Diagnostics) (journal.Verdict, *journal.Record) {
	w := plan.request(ctx, state.ID.ValueString()).Wanted
	verdict, record := d.peek(ctx, w, diags)
	if verdict == journal.OtherJob || plan.Name.Equal(state.Name) || state.Name.IsNull() {
		return verdict, record
	}
	w.Name = state.Name.ValueString()
	had, earlier := d.peek(ctx, w, diags)
	if record != nil && record.Outlives(earlier, w.Job) || !isMessageSent(verdict) && !isMessageSent(had) {
		return verdict, record
	}
	return had, earlier
}

// isMessageSent reports whether a message counts as sent.
func isMessageSent(verdict journal.Verdict) bool {
	return verdict == journal.AlreadySent || verdict == journal.UnknownMessage
}
