// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package job is agent_job: the resource, the data source and the actions, with
// their schemas, plans and state.
package job

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework-validators/resourcevalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
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
	kept, j := readMarks(ctx, req.Private), r.provider.Sender.Journal
	ref := kept.journal
	if !req.State.Raw.IsNull() {
		if diags.Append(req.State.Get(ctx, &state)...); diags.HasError() {
			return
		}
		defer func() { kept.write(ctx, resp.Private) }()
		kept.pruneJournal(ctx, j, diags)
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
	options := readWaitOptions(ctx, plan.Wait, diags)
	if diags.HasError() {
		return
	}
	kept.plans(&plan, state.ID.ValueString())
	plan.ID, plan.ProjectID = state.ID, state.ProjectID
	sent := func() bool { return len(earlierRequests(ctx, j, send.Message, &plan, true, diags)) > 0 }
	d := decide(compare(&plan, &state, kept.recordedPrompt(&state), options.enabled, sent), &plan, &state, project)
	for _, attribute := range d.replacedBy {
		resp.RequiresReplace.Append(path.Root(attribute))
	}
	d.setValues(&plan, &state)
	if diags.Append(resp.Plan.Set(ctx, plan.stored())...); diags.HasError() {
		return
	}
	switch {
	case d.recordOnly:
		j.Imported(state.ID.ValueString())
	case ref.Run == "":
		reportJournalError(j, j.ShownByImport(ctx, state.ID.ValueString()), diags)
	case !d.newPrompt:
		earlierRequests(ctx, j, send.Message, &plan, false, diags) // which removes those that runs without a lock have left
	}
	if !d.replaces() {
		announceOther(ctx, j, &plan, ref, diags)
	}
	switch {
	case d.replaces():
		// Terraform plans a replacement twice. This call has the prior state, and its warnings are shown. The second
		// one has none: it plans a create, which counts the new job, and Terraform drops its warnings.
		r.announceOrCount(ctx, send.Create, &plan, state.ID.ValueString(), diags)
	case d.message():
		if r.announceOrCount(ctx, send.Message, &plan, state.ID.ValueString(), diags) {
			return // its warning replaces the one of this plan
		}
	}
	d.explain(&plan, &state, diags)
	if kept.unconfirmed && !d.replaces() && !d.message() {
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
	out := stateWriter{&resp.State, resp.Identity, resp.Private, new(marks), &resp.Diagnostics}
	var job jobModel
	_, diags := job.readPlan(ctx, req.Plan, req.Config)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() || !r.provider.usable(&resp.Diagnostics) || !job.checkPrompts(&resp.Diagnostics) {
		return
	}
	options := readWaitOptions(ctx, job.Wait, &resp.Diagnostics)
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
		out.sent(operation)
		out.save(ctx, &job)
		if !options.enabled { // with a wait, await reports those of the last record
			resp.Diagnostics.Append(warnings...)
		}
	}
	switch outcome.Result {
	case send.Sent:
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
	out := stateWriter{&resp.State, resp.Identity, resp.Private, readMarks(ctx, req.Private), &resp.Diagnostics}
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
	out.marks.pruneJournal(ctx, r.provider.Sender.Journal, &resp.Diagnostics)
	defer func() { out.marks.write(ctx, out.private) }()
	id, project := job.ID.ValueString(), job.ProjectID.ValueString()
	record, err := r.provider.Sender.Client.ReadJob(ctx, project, id)
	switch {
	case errors.Is(err, agentapi.ErrNotFound) && !imported:
		if !out.marks.missing {
			out.marks.missing = true
			resp.Diagnostics.AddWarning(wording.RefreshNotFound.Of(job.facts(), err))
		}
		out.identify(ctx, &job)
	case err != nil && imported:
		resp.Diagnostics.AddError(wording.ImportFailed.Of(job.facts(), err))
	case err != nil:
		resp.Diagnostics.AddError(wording.RefreshFailed.Of(job.facts(), err))
	default:
		record.Status = out.marks.observed(&job, record.Status)
		resp.Diagnostics.Append(job.apply(record)...)
		out.save(ctx, &job)
	}
}

func (r *jobResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var job jobModel
	resp.Diagnostics.Append(req.State.Get(ctx, &job)...)
	defer recovered(ctx, "removing job "+job.facts().String()+" from the state", "A destroy sends no prompt.", &resp.Diagnostics)
	kept := r.provider.Sender.Journal
	reportJournalError(kept, kept.Destroyed(ctx, readMarks(ctx, req.Private).journal), &resp.Diagnostics)
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
