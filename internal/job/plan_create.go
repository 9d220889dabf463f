// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"cmp"
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/validate"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// create is what an apply does with a create, as far as a plan knows: what was found, what was decided, and how that went.
type create struct {
	request     send.Request
	verdict     journal.Verdict
	record      *journal.Record // of the name; nil if there is none, or if that is not known
	err         error           // why the journal does not show it
	isKnown     bool            // the plan knows the record, or that there is none
	isApplying  bool            // an apply plans again
	isSuccessor bool            // the plan has a new resource, and takes it for the tainted one that has the record's job
	isLeaving   bool            // the resource that has that job leaves the name in the same plan
	wasReleased bool            // a plan that was not applied has released the name of that job

	isOwn       bool            // the record has the job that the resource has had
	keepsFailed bool            // that job failed, nothing but its taint asks for another one, and the create adopts it
	isRefused   bool            // the job stays in the state: without a journal, its name cannot be released
	toRelease   *journal.Record // what the plan releases; may be nil

	releaseErr error // why it was not released

	hasStray  bool               // no state is known to have the job of the record, which the create does not adopt
	elsewhere *journal.Elsewhere // what an earlier place has of the name, if it has no record
	renamed   *journal.Record    // otherwise, of another name, with the same request
	othersErr error              // why the earlier place does not show it
}

// isSent reports whether the apply sends it.
func (c *create) isSent() bool { return c.verdict == journal.Send && !c.isRefused && !c.keepsFailed }

// findCreate finds out what a create would meet. predecessor is the job that the resource has had, or empty.
func (d *ProviderData) findCreate(ctx context.Context, plan *jobModel, predecessor string) create {
	c := create{request: plan.request(ctx, ""), verdict: journal.Send, isApplying: d.names.isApplying.Load()}
	c.request.Predecessor, c.request.RetryFailed = predecessor, plan.retries(ctx)
	j := d.Sender.Journal
	if !plan.areArgumentsKnown(ctx) {
		if predecessor != "" && c.request.Name != "" && c.request.Project != "" {
			_, c.record, c.err = j.Peek(ctx, c.request.Wanted)
		}
		return c
	}
	c.verdict, c.record, c.err = j.Peek(ctx, c.request.Wanted)
	c.isKnown = c.err == nil && d.Sender.Client != nil // else the journal is not configured yet
	if predecessor != "" || c.record == nil || !d.mayReplace(plan, c.record.Job) {
		return c
	}
	isLeaving := d.names.isLeaving(plan.projectAndName(), c.record.Job, c.record.Adoption)
	hasName := d.names.inState(c.record.Job).name == c.request.Name // else a rename has released it
	c.wasReleased = c.record.Released && hasName && !isLeaving && !c.isApplying
	if c.verdict != journal.Twin && !c.wasReleased {
		return c
	}
	// Unless a call for the resource that has the job says otherwise, it is this one.
	c.isSuccessor, c.isLeaving = true, isLeaving
	c.request.Predecessor = c.record.Job
	if !c.isLeaving {
		c.verdict, c.record, c.err = j.Peek(ctx, c.request.Wanted)
	}
	return c
}

// decide decides what becomes of a create that was found: it is sent, or the record of its name stands in the way.
//
// With create_before_destroy, nothing tells the apply that the record's job is the one that is being replaced, so the plan releases the
// name. An apply that plans again does not: it may not have read what is replaced.
func (c *create) decide(hasFailed func(jobID string) bool, isJournalUnusable bool) {
	isAccepted := c.verdict == journal.Adopt || c.verdict == journal.OtherPrompt
	c.isOwn = c.record != nil && c.record.Job != "" && c.record.Job == c.request.Predecessor
	c.keepsFailed = c.isSuccessor && !c.isLeaving && c.verdict == journal.Adopt && hasFailed(c.record.Job) && !c.request.RetryFailed
	c.isRefused = c.err != nil && isJournalUnusable && c.request.Predecessor != "" && !c.isApplying
	switch {
	case c.isLeaving:
		c.verdict, c.toRelease = journal.Send, c.record
	case c.isApplying, c.keepsFailed:
	case c.isOwn && (isAccepted || !c.isKnown):
		c.verdict, c.toRelease = journal.Send, c.record
	case c.isKnown && c.record == nil && c.request.Predecessor != "": // another journal may have the record
		c.toRelease = &journal.Record{Job: c.request.Predecessor}
	}
}

// predecessor is the job that the apply's create must know as the one that it replaces; it may be empty.
func (c *create) predecessor() string {
	if c.isOwn && (!c.isApplying || c.verdict != journal.OtherPrompt) {
		return c.record.Job
	}
	return ""
}

// note leaves what a later call must know.
func (c *create) note(m *planMarks) {
	if s := m.Successor; s != nil {
		s.KeepsFailed = c.keepsFailed
		s.IsUndecided = !c.isKnown && c.request.Predecessor == "" && !c.request.RetryFailed
	}
}

// mayReplace reports whether a new resource may be the tainted one of a job. It is not if this run has started the job, or if the plan
// keeps it.
func (d *ProviderData) mayReplace(plan *jobModel, jobID string) bool {
	return d.Sender.Journal.IsInState(jobID) && !d.names.isHeld(plan.projectAndName(), holder{job: jobID})
}

// planCreate plans a create, in the place of the job that the marks name, if they do: it finds out what is there, decides, notes that,
// releases the name of that job, so that no apply adopts it, says what follows, and counts it. Of a replacement, only the first call has
// the state, and Terraform shows the warnings of that one alone.
func (d *ProviderData) planCreate(ctx context.Context, plan, state *jobModel, m *marks, diags *diag.Diagnostics) create {
	c := d.findCreate(ctx, plan, m.plan.Job)
	c.decide(d.names.hasFailed, d.Sender.Journal.IsUnusable())

	c.note(&m.plan)
	if job := c.predecessor(); job != "" {
		d.names.setPredecessor(plan.projectAndName(), job)
	}
	switch {
	case c.toRelease != nil:
		c.releaseErr = d.release(ctx, c.request, c.toRelease)
	case c.keepsFailed && c.wasReleased:
		retaken := d.Sender.Journal.Retake(ctx, c.request.Project, c.request.Name, c.record.Job, journal.AnyAdoption)
		d.reportJournalError(retaken, diags)
	}

	d.findOthers(ctx, &c)

	isFirst, isSecond := state != nil, state == nil && m.plan.Job != ""
	d.sayCreate(&c, isSecond && !m.plan.IsAnnounced, diags)
	m.plan.IsAnnounced = isFirst
	if c.isSent() {
		d.planRequest(ctx, c.request, diags)
	}
	return c
}

// findOthers finds out whether the create starts a job beside another one that it may be about. An apply that plans again does not ask
// again, and a plan that does not know the name cannot.
func (d *ProviderData) findOthers(ctx context.Context, c *create) {
	j := d.Sender.Journal
	switch {
	case !c.isSent() || c.isApplying || !c.isKnown && c.err == nil:
	case c.record != nil && !c.record.IsEmpty():
		// In a plan of "apply", this may be what a plan in the apply would say of the job that is being replaced.
		c.hasStray = d.IsPlanCommand && !c.record.IsFree() && !c.isOwn && !j.IsForgotten(c.record)
	default:
		c.elsewhere, c.othersErr = j.FindElsewhere(ctx, c.request.Project, c.request.Name, false)
		if c.elsewhere == nil {
			c.renamed = j.Renamed(ctx, c.request.Wanted)
		}
	}
}

// sayCreate warns of what becomes of a create. isUnseen: Terraform shows no warning of this call, and no earlier one has given it, so
// what this plan could not do must be an error.
func (d *ProviderData) sayCreate(c *create, isUnseen bool, diags *diag.Diagnostics) {
	warn := func(text wording.Diagnostic) { validate.WarnAt(diags, path.Root("name"), text) }
	failed := cmp.Or(c.releaseErr, c.err)
	switch {
	case c.isRefused:
		addError(diags, wording.NotReplaced.Of(wording.Job{ID: c.request.Predecessor, Project: c.request.Project}, c.err))
		return
	case failed != nil && isUnseen && !c.isApplying:
		addError(diags, wording.NameNotReleased(failed, c.request, c.request.Predecessor))
	case c.releaseErr != nil:
		addWarning(diags, wording.NameNotReleased(failed, c.request, c.toRelease.Job))
	}
	d.reportJournalError(c.err, diags)
	if c.isLeaving {
		warn(wording.NotAdopted(c.request, wording.Job{ID: c.record.Job, Project: c.record.Project}))
	}
	d.reportJournalError(c.othersErr, diags)
	switch {
	case c.keepsFailed:
		warn(wording.StillFailed(c.request, c.record))
	case c.verdict == journal.Twin: // an error of holdName, or of the apply
	case c.elsewhere != nil:
		warn(wording.RecordElsewhere(c.request, c.elsewhere))
	case c.renamed != nil:
		warn(wording.Renamed(c.request, c.renamed))
	case c.hasStray:
		warn(wording.Stray(c.request, c.record))
	case !c.isSent() && !c.isApplying:
		warn(wording.Announcement(c.verdict, c.request, c.record))
	}
}
