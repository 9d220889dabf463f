// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package job is agent_job: the resource, the data source and the actions, with
// their schemas, plans and state.
package job

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/resourcevalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/validate"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

var (
	_ resource.ResourceWithConfigValidators = (*jobResource)(nil)
	_ resource.ResourceWithConfigure        = (*jobResource)(nil)
	_ resource.ResourceWithIdentity         = (*jobResource)(nil)
	_ resource.ResourceWithImportState      = (*jobResource)(nil)
	_ resource.ResourceWithModifyPlan       = (*jobResource)(nil)
	_ resource.ResourceWithValidateConfig   = (*jobResource)(nil)
)

type jobResource struct{ provider *ProviderData }

// NewResource returns the resource agent_job.
func NewResource() resource.Resource { return &jobResource{provider: unconfigured()} }

func (r *jobResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_job"
}

func (r *jobResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = jobSchema(ctx)
}

func (r *jobResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = jobIdentitySchema()
}

func (r *jobResource) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	if data, ok := req.ProviderData.(*ProviderData); ok {
		r.provider = data
	}
}

func (r *jobResource) ConfigValidators(context.Context) []resource.ConfigValidator {
	return []resource.ConfigValidator{resourcevalidator.ExactlyOneOf(path.MatchRoot("prompt"), path.MatchRoot("prompt_wo"))}
}

func (r *jobResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	checkTimeouts(ctx, req.Config, &resp.Diagnostics, "create", "update")
}

// ModifyPlan plans what an apply would do. It promises no value that the service may change.
func (r *jobResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan, state jobModel
	diags := &resp.Diagnostics
	defer recovered(ctx, "planning", "A plan sends no prompt.", diags)
	if !req.State.Raw.IsNull() {
		if diags.Append(req.State.Get(ctx, &state)...); diags.HasError() {
			return
		}
		pruneJournal(ctx, r.provider.Sender.Journal, req.Private, resp.Private, diags)
	}
	if req.Plan.Raw.IsNull() {
		return // destroy
	}
	project, more := plan.readPlan(ctx, req.Plan, req.Config)
	if diags.Append(more...); diags.HasError() {
		return
	}
	if req.State.Raw.IsNull() {
		plan.ProjectID = r.provider.projectOr(project, diags)
		diags.Append(resp.Plan.SetAttribute(ctx, path.Root("project_id"), plan.ProjectID)...)
		r.announceOrCount(ctx, send.Create, &plan, "", diags)
		return
	}
	options := plan.readWaitOptions(ctx, diags)
	if diags.HasError() {
		return
	}
	unmark(ctx, resp.Private, markIgnored)
	if plan.promptText().IsNull() {
		mark(ctx, resp.Private, markIgnored)
	}
	plan.ID, plan.ProjectID = state.ID, state.ProjectID
	plan.recordPlanned(ctx, resp.Private, state.ID.ValueString())
	sent := func() bool { return len(equalMessages(ctx, r.provider.Sender.Journal, &plan, diags)) > 0 }
	d := decide(compare(&plan, &state, state.recordedPrompt(ctx, req.Private), options, sent), &plan, &state, project)
	for _, attribute := range d.replacedBy {
		resp.RequiresReplace.Append(path.Root(attribute))
	}
	d.setValues(&plan, &state)
	if diags.Append(resp.Plan.Set(ctx, plan.stored())...); diags.HasError() {
		return
	}
	r.provider.Sender.Limits.TakeBack(state.ID.ValueString())
	ref := getMark[journal.Ref](ctx, req.Private, markJournal)
	if !d.newPrompt && !d.newTriggers && !plan.promptText().IsNull() {
		pruneShown(ctx, r.provider.Sender.Journal, &plan, ref, diags)
	}
	if !d.replaces() {
		announceOther(ctx, r.provider.Sender.Journal, &plan, ref, diags)
	}
	switch {
	case d.replaces(): // Terraform drops the warnings of the second planning call, which counts the new job
		r.announceOrCount(ctx, send.Create, &plan, state.ID.ValueString(), diags)
	case d.message():
		if r.announceOrCount(ctx, send.Message, &plan, state.ID.ValueString(), diags) {
			return // its warning replaces the one of this plan
		}
	}
	d.explain(&plan, &state, diags)
	if isMarked(ctx, req.Private, markUnconfirmed) && !d.replaces() && !d.message() {
		validate.WarnAt(diags, plan.promptPath())(wording.Unconfirmed.Of(state.facts(), nil))
	}
}

// announceOrCount announces that a request was sent by an earlier run, or else counts it. It
// reports whether it was.
func (r *jobResource) announceOrCount(
	ctx context.Context, kind send.Kind, plan *jobModel, jobID string, diags *diag.Diagnostics,
) (announced bool) {
	if announce(ctx, r.provider.Sender.Journal, kind, plan, diags) {
		return true
	}
	if err := r.provider.Sender.Limits.Plan(kind, jobID); err != nil {
		diags.AddError(wording.BeyondLimit(err, send.Request{Kind: kind, ProjectID: plan.ProjectID.ValueString(), JobID: jobID}))
	}
	return false
}

func (r *jobResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	out := stateWriter{&resp.State, resp.Identity, resp.Private, &resp.Diagnostics}
	var job jobModel
	_, diags := job.readPlan(ctx, req.Plan, req.Config)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() || !r.provider.usable(&resp.Diagnostics) || !job.checkPrompts(&resp.Diagnostics) {
		return
	}
	options := job.readWaitOptions(ctx, &resp.Diagnostics)
	timeout, diags := job.Timeouts.Create(ctx, defaultJobTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	defer out.recovered(ctx, &job)
	project := job.ProjectID.ValueString()
	operation := r.provider.Sender.Begin(ctx, send.Request{
		Kind: send.Create, ProjectID: project, Prompt: job.promptText().ValueString(),
		Key: createKey(ctx, &job), KeepFailed: options.onFailure == onWarn,
	})
	defer operation.End()
	ctx, cancel := r.provider.withTimeout(ctx, "timeouts.create", timeout)
	defer cancel()

	outcome := operation.Send(ctx)
	if outcome.Job != nil { // before anything else
		warnings := job.apply(outcome.Job)
		recordRef(ctx, out.private, operation)
		out.save(ctx, &job)
		if !options.enabled { // else they come when the job has finished
			resp.Diagnostics.Append(warnings...)
		}
	}
	switch outcome.Result {
	case send.Sent:
		r.provider.recent.add(project, outcome.Job.ID, wait.Created)
	case send.TakenOver:
		resp.Diagnostics.AddWarning(wording.TakenOver(outcome, operation.Request))
	default:
		resp.Diagnostics.AddError(wording.NotAccepted(outcome, operation.Request, wording.ApplyAgain))
	}
	reportProblem(r.provider.Sender.Journal, outcome, job.facts(), &resp.Diagnostics)
	if outcome.Job != nil && options.enabled {
		r.provider.await(ctx, &job, wait.Created, options, out)
	}
}

func (r *jobResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	out := stateWriter{&resp.State, resp.Identity, resp.Private, &resp.Diagnostics}
	var job jobModel
	resp.Diagnostics.Append(req.State.Get(ctx, &job)...)
	if resp.Diagnostics.HasError() {
		return
	}
	defer recovered(ctx, "reading job "+job.facts().String(), wording.RefreshSendsNothing, &resp.Diagnostics)
	imported := job.Status.IsNull()
	if r.provider.Sender.Client == nil {
		r.keepUnrefreshed(ctx, &job, imported, out)
		return
	}
	ctx = r.provider.Mask(ctx)
	pruneJournal(ctx, r.provider.Sender.Journal, req.Private, resp.Private, &resp.Diagnostics)
	id, project := job.ID.ValueString(), job.ProjectID.ValueString()
	record, err := r.provider.Sender.Client.ReadJob(ctx, project, id)
	switch {
	case errors.Is(err, agentapi.ErrNotFound) && !imported:
		if !isMarked(ctx, resp.Private, markMissing) {
			mark(ctx, resp.Private, markMissing)
			resp.Diagnostics.AddWarning(wording.RefreshNotFound.Of(job.facts(), err))
		}
		out.identify(ctx, &job)
	case err != nil && imported:
		resp.Diagnostics.AddError(wording.ImportFailed.Of(job.facts(), err))
	case err != nil:
		resp.Diagnostics.AddError(wording.RefreshFailed.Of(job.facts(), err))
	default:
		updateMarks(ctx, resp.Private, &job, record)
		resp.Diagnostics.Append(job.apply(record)...)
		out.save(ctx, &job)
	}
}

func (r *jobResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	out := stateWriter{&resp.State, resp.Identity, resp.Private, &resp.Diagnostics}
	var job, before jobModel
	_, diags := job.readPlan(ctx, req.Plan, req.Config)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(req.State.Get(ctx, &before)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if isMarked(ctx, req.Private, markIgnored) {
		job.keepPrompt(&before)
	} else if !job.checkPrompts(&resp.Diagnostics) {
		return
	}
	options := job.readWaitOptions(ctx, &resp.Diagnostics)
	timeout, diags := job.Timeouts.Update(ctx, defaultJobTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	defer recovered(ctx, "updating job "+before.facts().String(), wording.MayHaveSent, &resp.Diagnostics)
	change := compare(&job, &before, before.recordedPrompt(ctx, req.Private), options, func() bool { return false })
	planned := getMark[string](ctx, req.Private, markPlanned)
	unmark(ctx, out.private, markPlanned)
	if change.newPrompt && planned != "" && planned != promptHash(before.ID.ValueString(), job.PromptWO.ValueString()) {
		validate.WarnAt(&resp.Diagnostics, job.promptPath())(wording.PromptDiffers.Of(before.facts(), nil))
	}
	job.jobRecord = before.jobRecord
	if !change.newPrompt && !change.resume {
		out.save(ctx, &job)
		return
	}
	if !r.provider.usable(&resp.Diagnostics) {
		return
	}
	r.provider.Sender.Journal.Settle(getMark[journal.Ref](ctx, req.Private, markJournal))
	operation := r.provider.Sender.Begin(ctx, send.Request{
		Kind: send.Message, ProjectID: job.ProjectID.ValueString(), JobID: job.ID.ValueString(),
		Prompt: job.promptText().ValueString(), Key: messageKey(&job),
		Closed: change.closedJob,
	})
	defer operation.End()
	ctx, cancel := r.provider.withTimeout(ctx, "timeouts.update", timeout)
	defer cancel()

	if !change.newPrompt {
		out.save(ctx, &job)
		r.provider.await(ctx, &job, wait.Resumed, options, out)
		return
	}
	if r.sendMessage(ctx, &job, operation, out) && options.enabled {
		r.provider.await(ctx, &job, wait.Messaged, options, out)
	}
}

func (r *jobResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var job jobModel
	resp.Diagnostics.Append(req.State.Get(ctx, &job)...)
	defer recovered(ctx, "removing job "+job.facts().String()+" from the state", "A destroy sends no prompt.", &resp.Diagnostics)
	kept := r.provider.Sender.Journal
	reportJournalError(kept, kept.Destroyed(ctx, getMark[journal.Ref](ctx, req.Private, markJournal)), &resp.Diagnostics)
	if !resp.Diagnostics.HasError() && !job.ended() {
		resp.Diagnostics.AddWarning(wording.ActiveRemoved.Of(job.facts(), nil))
	}
}

// keepUnrefreshed is a refresh while the provider's configuration is not known.
func (r *jobResource) keepUnrefreshed(ctx context.Context, job *jobModel, imported bool, out stateWriter) {
	if imported {
		out.diags.AddError(wording.ImportUnconfigured.Of(job.facts(), nil))
		return
	}
	out.diags.AddWarning(wording.NotRefreshed.Of(job.facts(), nil))
	out.identify(ctx, job)
}

// sendMessage sends the new prompt to the job and reports whether it arrived.
// From the moment it may have arrived the state holds the new prompt, so that
// no later apply sends it again.
func (r *jobResource) sendMessage(ctx context.Context, job *jobModel, operation *send.Operation, out stateWriter) (arrived bool) {
	outcome := operation.Send(ctx)
	if outcome.InState(send.Message) {
		recordRef(ctx, out.private, operation)
	}
	switch outcome.Result {
	case send.Sent, send.TakenOver:
	case send.Unknown, send.EarlierUnknown:
		// An earlier unconfirmed message may be why the job is active again. And a job
		// that was already active shows nothing by being active.
		if !isMarked(ctx, out.private, markUnconfirmed) && job.ended() {
			outcome.Job = wait.MessageEffect(ctx, r.provider.Sender.Client,
				job.ProjectID.ValueString(), job.ID.ValueString(), r.provider.Waiter.Schedule.Min)
		}
		if outcome.Job == nil {
			mark(ctx, out.private, markUnconfirmed)
			out.save(ctx, job)
			out.diags.AddError(wording.NotAccepted(outcome, operation.Request, wording.ApplyAgain))
			return false
		}
	case send.Closed:
		validate.ErrorAt(out.diags, job.promptPath())(wording.MessageToClosedJob.Of(job.facts(), nil))
		return false
	default:
		out.diags.AddError(wording.NotAccepted(outcome, operation.Request, wording.ApplyAgain))
		reportProblem(r.provider.Sender.Journal, outcome, job.facts(), out.diags)
		return false
	}
	if outcome.Result == send.TakenOver {
		out.diags.AddWarning(wording.TakenOver(outcome, operation.Request))
	}
	reportProblem(r.provider.Sender.Journal, outcome, job.facts(), out.diags)
	r.provider.recent.add(job.ProjectID.ValueString(), job.ID.ValueString(), wait.Messaged)
	job.apply(outcome.Job)                                        // an invalid link is reported once the job has finished
	job.Status = types.StringValue(string(agentapi.StatusActive)) // the record may be the one from before the message
	unmark(ctx, out.private, markUnconfirmed)
	setMark(ctx, out.private, markMessaged, time.Now())
	out.save(ctx, job)
	return true
}
