// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/validate"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// ModifyPlan plans what an apply would do, and promises no value that the service may change. It sends and writes nothing.
func (r *jobResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	defer recoverAsError(ctx, "planning", "A plan sends no prompt.", &resp.Diagnostics)
	r.provider.lacks(&resp.Diagnostics) // it plans all the same: an apply must not plan other values than the plan before it
	switch {
	case req.State.Raw.IsNull():
		r.provider.planNew(ctx, req, resp)
	case req.Plan.Raw.IsNull():
		marks := readMarks(ctx, req.Private)
		marks.plan = planMarks{} // those of a replacement that failed
		marks.write(ctx, resp.Private)
	default:
		r.provider.planExisting(ctx, req, resp)
	}
}

// planNew plans a job that no state has, or the one that follows a tainted resource. Of a replacement, this is the second call, which
// finds what the first one has left in the private state: Terraform drops its warnings.
func (d *ProviderData) planNew(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan jobModel
	diags := &resp.Diagnostics
	project, more := plan.readPlan(ctx, req.Plan, req.Config)
	if diags.Append(more...); more.HasError() {
		return
	}
	plan.ProjectID = d.projectOr(project, diags)
	diags.Append(resp.Plan.SetAttribute(ctx, path.Root("project_id"), plan.ProjectID)...)
	diags.Append(resp.Plan.SetAttribute(ctx, path.Root("messages"), types.Int64Value(0))...)

	marks := readMarks(ctx, req.Private)
	c := d.planCreate(ctx, &plan, marks.plan.Job, diags)
	if adopted := c.adopted(); adopted != "" {
		diags.Append(resp.Plan.SetAttribute(ctx, path.Root("id"), types.StringValue(adopted))...)
	}
	h := holder{job: c.replaced}
	if h.job == "" {
		h.request = plan.fingerprint(ctx)
	}
	d.holdName(&plan, h, diags)
	if c.verdict == journal.Adopt || c.verdict == journal.OtherPrompt {
		d.hold(ofJob(c.record.Job), &plan, h, diags)
	}
	marks.plan.Successor = &successor{
		Name: plan.Name.ValueString(), MayBeSame: c.mayKeepJob(), Prompt: d.names.promptOf(plan.projectAndName()),
	}
	marks.write(ctx, resp.Private)
}

// create is what an apply does with a create, as far as a plan knows.
type create struct {
	request  send.Request
	replaced string // the job in the state that it replaces; empty without one, or if that is tainted
	verdict  journal.Verdict
	record   *journal.Record // of the name; nil if there is none, or if that is not known
	isKnown  bool            // the plan knows the record, or that there is none
}

// planCreate finds out what a create would meet, says what follows, and counts it.
func (d *ProviderData) planCreate(ctx context.Context, plan *jobModel, replaced string, diags *diag.Diagnostics) create {
	j := d.Sender.Journal
	c := create{request: plan.request(ctx, ""), replaced: replaced}
	if replaced != "" && j.IsUnusable() && !d.names.isApplying.Load() {
		addError(diags, wording.NotReplaced.Of(wording.Job{ID: replaced, Project: plan.ProjectID.ValueString()}, j.Unusable()))
		return c
	}
	c.request.RetryFailed = plan.retries(ctx)
	if plan.areArgumentsKnown(ctx) && d.Sender.Client != nil { // else the journal is not configured yet
		var err error
		c.verdict, c.record, err = j.Peek(ctx, c.request.Wanted)
		c.isKnown = err == nil
		d.reportJournalError(err, diags)
	}
	if c.verdict == journal.Send || c.isReleased() || c.continues() {
		d.planRequest(c.request, diags)
	}
	if text, is := c.surprise(); is && !d.names.isApplying.Load() && (c.verdict != journal.Send || d.IsPlanCommand) {
		// The apply's own plan cannot tell a create from a replacement with create_before_destroy, which sends beside a job, too.
		validate.WarnAt(diags, path.Root("name"), text)
	}
	return c
}

// isReleased reports whether the name has the job that the apply replaces, so that its Delete frees the name first.
func (c *create) isReleased() bool {
	return c.record != nil && c.record.Job != "" && c.record.Job == c.replaced
}

// continues reports whether the apply sends the prompt as a message: the create of the name's job was cut short.
func (c *create) continues() bool {
	return c.verdict == journal.OtherPrompt && c.record.Broken
}

// mayKeepJob reports whether the apply may adopt the job that the name has, or send it the prompt, as far as the plan knows.
func (c *create) mayKeepJob() bool {
	return !c.isKnown || c.record == nil || c.record.Last == nil || c.verdict == journal.Adopt || c.continues()
}

// adopted is the job that the apply adopts for sure; empty without one.
func (c *create) adopted() string {
	if c.verdict != journal.Adopt || c.replaced != "" || c.request.IsPromptUnknown || c.request.RetryFailed {
		return ""
	}
	return c.record.Job
}

// surprise says what a plan's symbols do not show: why the apply will fail, or that it starts a job beside another one.
func (c *create) surprise() (text wording.Diagnostic, is bool) {
	switch {
	case c.record == nil, c.isReleased(), c.continues(), c.verdict == journal.Adopt:
		return text, false
	case c.verdict != journal.Send:
		return wording.WillStop(c.verdict, c.request, c.record), true
	case c.record.IsFree(), c.record.Broken, c.record.IsUnknownCreate(), c.record.Arguments == journal.Hash(c.request.Arguments):
		return text, false
	}
	return wording.BesideAnother(c.request, c.record), true
}

// planExisting plans what becomes of a job in the state: it decides, sets the planned values, and then says what follows.
func (d *ProviderData) planExisting(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan, state jobModel
	diags := &resp.Diagnostics
	if diags.Append(req.State.Get(ctx, &state)...); diags.HasError() {
		return
	}
	marks := readMarks(ctx, req.Private)
	plan = state
	if !req.Plan.Raw.Equal(req.State.Raw) { // what the framework does is a tenth of a plan's CPU
		diags.Append(req.Plan.Get(ctx, &plan)...)
	}
	project, more := plan.readConfig(ctx, req.Config)
	options := readWaitOptions(ctx, plan.Wait, diags)
	if diags.Append(more...); diags.HasError() {
		return
	}
	proposed := plan.withoutWriteOnly()
	marks.plan = planMarks{IsPromptIgnored: plan.promptText().IsNull(), Job: state.ID.ValueString()}
	marks.write(ctx, resp.Private)
	plan.ID, plan.ProjectID = state.ID, state.ProjectID
	d.names.isStored(state.projectAndName(), state.ID.ValueString())

	isNewProject := !project.IsNull() && !project.Equal(state.ProjectID)
	isSent := func() bool {
		verdict, _ := d.peek(ctx, &plan, diags)
		return verdict == journal.AlreadySent || verdict == journal.UnknownMessage
	}
	c := decide(&plan, &state, &marks.message, options, isNewProject, d.isGivenUp(ctx, &state), isSent)
	verdict, record := journal.Send, (*journal.Record)(nil)
	if c.effect == sendMessage || c.effect == storePrompt {
		verdict, record = d.peek(ctx, &plan, diags)
	}

	c.setValues(&plan, &state)
	if isNewProject {
		plan.ProjectID = project
	}
	resp.RequiresReplace.Append(c.replacedAt(&plan)...)
	if planned := plan.withoutWriteOnly(); !reflect.DeepEqual(planned, proposed) { // the same
		if diags.Append(resp.Plan.Set(ctx, planned)...); diags.HasError() {
			return
		}
	}

	h := holder{job: state.ID.ValueString(), stays: !c.replaces()}
	d.holdName(&plan, h, diags)
	if h.stays {
		h.request = plan.Name.ValueString()
		d.hold(ofJob(h.job), &plan, h, diags)
	}
	request := plan.request(ctx, state.ID.ValueString())
	switch {
	case c.replaces(): // Terraform plans it again, as a create, whose warnings it drops
		d.planCreate(ctx, &plan, h.job, diags)
	case c.effect == sendMessage && plan.Name.IsNull():
		checkName(request, diags)
	case c.effect == sendMessage && verdict == journal.Send && !c.isMissing:
		d.planRequest(request, diags)
	case c.effect == sendMessage && verdict == journal.OtherJob, c.effect == sendMessage && verdict == journal.Wait:
		validate.WarnAt(diags, path.Root("name"), wording.WillStop(verdict, request, record))
	case c.effect == storePrompt && verdict == journal.OtherJob && !record.IsUnknownCreate(): // which the import decides about
		validate.WarnAt(diags, path.Root("name"), wording.NameFromOther(state.facts(), record))
	}
	d.say(ctx, c, &plan, &state, marks, diags)
}

// peek tells what a message to the job of a plan would meet. While its name is not known, that is nothing.
func (d *ProviderData) peek(ctx context.Context, plan *jobModel, diags *diag.Diagnostics) (journal.Verdict, *journal.Record) {
	if !plan.areArgumentsKnown(ctx) || plan.Name.ValueString() == "" {
		return journal.Send, nil
	}
	verdict, record, err := d.Sender.Journal.Peek(ctx, plan.request(ctx, plan.ID.ValueString()).Wanted)
	d.reportJournalError(err, diags)
	return verdict, record
}

// say warns of what the plan's symbols do not show.
func (d *ProviderData) say(ctx context.Context, c change, plan, state *jobModel, m *marks, diags *diag.Diagnostics) {
	job := state.facts()
	job.RefusedMessage = m.message.RefusesMessages
	warn := func(at path.Path, text wording.Text) { validate.WarnAt(diags, at, text.Of(job, nil)) }
	prompt, status := plan.promptPath(), path.Root("status")
	switch {
	case c.effect == replaceClosed:
		warn(prompt, wording.NewJob)
	case c.effect == replace && !state.ended():
		warn(status, wording.ActiveReplaced)
	case c.effect == messageIfSent:
		warn(prompt, wording.PromptNotKnownClosed)
	case c.isKept() && state.is(agentapi.StatusFailed) && c.fails:
		validate.WarnAt(diags, status, wording.FailedEarlier(job, d.lastRequest(ctx, state)))
	case c.isKept() && state.is(agentapi.StatusFailed) && c.isUndecided:
		warn(status, wording.FailedUnnoticed)
	}
	if m.message.Unconfirmed && !c.replaces() && c.effect != sendMessage {
		warn(prompt, wording.Unconfirmed)
	}
}

// planRequest counts a request that the apply sends. What is beyond a limit fails the plan if it is a create. A message may be that of a
// resource which -replace replaces, so the plan only warns. Once an apply has begun, which plans each resource again, its calls refuse what
// is beyond a limit: if a plan fails there with create_before_destroy, the CLI keeps the old object as a deposed one.
func (d *ProviderData) planRequest(request send.Request, diags *diag.Diagnostics) {
	d.warnOfPlace(diags)
	err := d.Sender.Limits.Plan(request)
	switch {
	case err == nil, d.names.isApplying.Load():
	case request.Kind() == send.Message:
		addWarning(diags, wording.BeyondLimit(err, request))
	default:
		addError(diags, wording.BeyondLimit(err, request))
	}
}
