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

// create is what an apply does with a create, as far as a plan knows.
type create struct {
	request send.Request
	verdict journal.Verdict
	record  *journal.Record // of the name; nil if there is none, or if that is not known
	err     error           // why the journal does not show it
	isKnown bool            // the plan knows the record, or that there is none

	isOwn       bool            // the record has the job that the resource has had
	isLeaving   bool            // that job's resource gives up the name in the same plan
	keepsFailed bool            // that job failed, nothing but its taint asks for another one, and the create adopts it
	released    *journal.Record // what the plan releases; may be nil
}

// decideCreate decides what becomes of a create: it is sent, or the record of its name stands in the way. replaces is the job that the
// resource has had, or empty. An apply plans again, and knows less: with create_before_destroy, it has not read what is replaced.
//
// With create_before_destroy, nothing tells the apply that the record's job is the one that is being replaced, so the plan releases the
// name.
func (d *ProviderData) decideCreate(ctx context.Context, plan *jobModel, replaces string) create {
	c := create{request: plan.request(ctx, ""), verdict: journal.Send}
	c.request.Replaces, c.request.RetryFailed = replaces, plan.retries(ctx)
	if !plan.areArgumentsKnown(ctx) {
		return c
	}
	j := d.Sender.Journal
	if c.verdict, c.record, c.err = j.Peek(ctx, c.request.Wanted); c.err != nil {
		return c
	}
	c.isKnown = true
	isTainted := c.verdict == journal.Twin && replaces == "" && d.mayReplace(plan, c.record.Job)
	if isTainted { // unless a call for the resource that has the job says otherwise, it is this one
		c.request.Replaces = c.record.Job
		c.isLeaving = d.names.isLeaving(c.record.Job)
	}
	if isTainted && !c.isLeaving {
		c.verdict, c.record, c.err = j.Peek(ctx, c.request.Wanted)
	}
	plans, isAccepted := !d.names.applies.Load(), c.verdict == journal.Adopt || c.verdict == journal.OtherPrompt
	c.isOwn = c.record != nil && c.record.Job != "" && c.record.Job == c.request.Replaces
	c.keepsFailed = isTainted && !c.isLeaving && c.verdict == journal.Adopt && d.names.hasFailed(c.record.Job) && !c.request.RetryFailed
	switch {
	case c.isLeaving, c.isOwn && plans && isAccepted && !c.keepsFailed:
		c.verdict, c.released = journal.Send, c.record
	case c.record == nil && replaces != "" && plans: // another journal may have the record
		c.released = &journal.Record{Job: replaces}
	}
	return c
}

// mayReplace reports whether a new resource may be the tainted one of a job. It is not if this run has started the job, or if the plan
// keeps it.
func (d *ProviderData) mayReplace(plan *jobModel, jobID string) bool {
	return d.Sender.Journal.IsInState(jobID) && !d.names.isHeld(plan.projectAndName(), holder{job: jobID})
}

// planCreate plans a create. Of a replacement, only the first call has the state, and Terraform shows the warnings of that one alone.
func (d *ProviderData) planCreate(
	ctx context.Context, plan *jobModel, replaces string, hasState bool, m *marks, diags *diag.Diagnostics,
) {
	c := d.decideCreate(ctx, plan, replaces)
	plans := !d.names.applies.Load()
	isUnsaid := !hasState && replaces != "" && !m.plan.IsAnnounced && plans // what this plan cannot do must be an error
	m.plan.IsAnnounced = hasState
	if s := m.plan.Successor; s != nil {
		s.KeepsFailed = c.keepsFailed
		s.IsUndecided = !c.isKnown && replaces == "" && !c.request.RetryFailed
	}
	if c.err != nil && replaces != "" && plans && d.Sender.Journal.IsUnusable() {
		addError(diags, wording.NotReplaced.Of(wording.Job{ID: replaces, Project: c.request.Project}, c.err))
		return
	}
	if c.err != nil && isUnsaid {
		addError(diags, wording.NameNotReleased(c.err, c.request, replaces))
	}
	d.reportJournalError(c.err, diags)
	if c.isOwn && (plans || c.verdict != journal.OtherPrompt) {
		d.names.replaces(plan.projectAndName(), c.record.Job)
	}
	if c.released != nil {
		d.release(ctx, c.request, c.released, isUnsaid, diags)
	}
	d.sayCreate(ctx, plan, c, diags)
}

// sayCreate warns of what becomes of a create, and counts it if it is sent.
func (d *ProviderData) sayCreate(ctx context.Context, plan *jobModel, c create, diags *diag.Diagnostics) {
	warn := func(text wording.Diagnostic) { validate.WarnAt(diags, path.Root("name"), text) }
	if c.isLeaving {
		warn(wording.NotAdopted(c.request, wording.Job{ID: c.record.Job, Project: c.record.Project}))
	}
	switch {
	case c.keepsFailed:
		warn(wording.StillFailed(c.request, c.record))
	case c.verdict == journal.Send || c.verdict == journal.Supersede:
		if plan.areArgumentsKnown(ctx) && !d.names.applies.Load() { // of an apply, the plan has said it
			d.warnOfOthers(ctx, c, diags)
		}
		d.planRequest(ctx, c.request, diags)
	case c.verdict == journal.Twin: // the apply stops it, if the plan does not
	case !d.names.applies.Load():
		warn(wording.Announcement(c.verdict, c.request, c.record))
	}
}

// warnOfOthers warns of a job that the create does not adopt, and that no state is known to have.
func (d *ProviderData) warnOfOthers(ctx context.Context, c create, diags *diag.Diagnostics) {
	j, warn := d.Sender.Journal, func(text wording.Diagnostic) { validate.WarnAt(diags, path.Root("name"), text) }
	if c.record != nil {
		// An apply of one process, with create_before_destroy, plans again what is being replaced.
		if d.Plans && !c.record.IsFree() && !c.isOwn && !j.IsForgotten(c.record) {
			warn(wording.LeftBehind(c.request, c.record))
		}
		return
	}
	if elsewhere := j.LeftElsewhere(ctx, c.request.Project, c.request.Name); elsewhere != nil {
		warn(wording.RecordElsewhere(c.request, elsewhere))
	} else if renamed := j.Renamed(ctx, c.request.Wanted); renamed != nil {
		warn(wording.Renamed(c.request, renamed))
	}
}
