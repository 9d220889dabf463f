// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package job is agent_job: the resource, the data source and the actions, with
// their schemas, plans and state.
package job

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/resourcevalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

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

func (r *jobResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	out := stateWriter{&resp.State, resp.Identity, resp.Private, new(marks), &resp.Diagnostics, nil}
	r.provider.names.isApplying.Store(true)
	var job jobModel
	_, diags := job.readPlan(ctx, req.Plan, req.Config)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() || !r.provider.usable(&resp.Diagnostics) || !job.checkPrompts(&resp.Diagnostics) {
		return
	}
	job.Messages = types.Int64Value(0)
	options := readWaitOptions(ctx, job.Wait, &resp.Diagnostics)
	timeout, diags := job.Timeouts.Create(ctx, defaultJobTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	defer out.recoverAndSave(ctx, &job)
	request := job.request(ctx, "")
	if !checkName(request, &resp.Diagnostics) {
		return
	}
	if !r.provider.names.create(job.projectAndName()) {
		validate.ErrorAt(&resp.Diagnostics, path.Root("name"), wording.DuplicateName(request.Name, request.Project))
		return
	}
	request.RetryFailed, request.Adopts = options.onFailure == onRetry, job.ID.ValueString()
	operation := r.provider.Sender.Begin(ctx, request)
	ctx, cancel := r.provider.withTimeout(ctx, "timeouts.create", timeout)
	defer cancel()

	outcome := operation.Send(ctx)
	left, isFailedAdoption := operation.Call.Left(), outcome.Result == send.Unreadable || outcome.Result == send.JournalUnusable
	if outcome.Result == send.Unknown { // a message to the job of a create that was cut short; of a create, there is no job
		left, isFailedAdoption = operation.Request.Job, true
		out.marks.message.messaged(time.Time{})
	}
	isLeft := isFailedAdoption && left != ""
	if isLeft { // perhaps nothing else knows it any more
		job.set(&agentapi.Job{ID: left})
		out.marks.record.Adoption = operation.Call.Adoption()
		out.save(ctx, &job)
	}
	if outcome.Job == nil { // what the next apply adopts must not be released meanwhile by a Delete, at another address
		r.provider.names.hasCreated(job.projectAndName(), request.Adopts)
	} else { // before anything else
		warnings := job.set(outcome.Job)
		r.provider.names.hasCreated(job.projectAndName(), outcome.Job.ID)
		out.marks.record.Adoption = operation.Call.Adoption()
		if last := outcome.Record.LastMessage(); outcome.Result == send.Adopted && last != nil {
			out.marks.message.SentAt, out.marks.message.Unconfirmed = last.SentAt, last.Unknown
		}
		if operation.Request.Job != "" { // a message to the job of a create that was cut short
			out.marks.message.messaged(time.Now())
			job.Status = types.StringValue(string(agentapi.StatusActive))
		}
		out.save(ctx, &job)
		if !options.enabled { // with a wait, await reports those of the last record
			resp.Diagnostics.Append(warnings...)
		}
	}
	switch outcome.Result {
	case send.Sent:
	case send.Adopted:
		if !outcome.Record.Broken { // else it is that of this resource
			addWarning(&resp.Diagnostics, wording.Adopted(outcome, request))
		}
	default:
		if sent := operation.Request; sent.Job != "" && r.isFinished(ctx, sent.Project, sent.Job, outcome.Err, time.Time{}) {
			outcome.BecameClosed = true
			operation.Call.Closes() //nolint:contextcheck // it has the context of Begin, without our deadline
		}
		addError(&resp.Diagnostics, wording.NotAccepted(outcome, operation.Request, wording.Resource))
	}
	switch {
	case outcome.Job != nil && options.enabled:
		r.provider.await(ctx, &job, wait.Created, options, out)
	case outcome.Result == send.Adopted && job.is(agentapi.StatusFailed):
		options.addFailure(&resp.Diagnostics, wording.Failed(job.facts(), r.provider.next(ctx, &job, true, options).AfterFailure()))
	}
	if (outcome.Job != nil || isLeft) && resp.Diagnostics.HasError() { // so Terraform taints the resource
		operation.Call.Breaks() //nolint:contextcheck // it has the context of Begin, without our deadline
	}
	r.provider.reportProblem(operation, outcome, job.facts(), &resp.Diagnostics) // by now, the store may have taken it
}

// checkName checks that a request has a name: ignore_changes may hide it, and without it nothing would be recorded.
func checkName(request send.Request, diags *diag.Diagnostics) (ok bool) {
	if request.Name == "" {
		validate.ErrorAt(diags, path.Root("name"), wording.NameMissing(request))
	}
	return request.Name != ""
}

func (r *jobResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	out := stateWriter{&resp.State, resp.Identity, resp.Private, readMarks(ctx, req.Private), &resp.Diagnostics, nil}
	var job jobModel
	resp.Diagnostics.Append(req.State.Get(ctx, &job)...)
	if resp.Diagnostics.HasError() {
		return
	}
	defer recoverAsError(ctx, "reading job "+job.facts().String(), wording.RefreshSendsNothing, &resp.Diagnostics)
	before, imported := job, job.Status.IsNull()
	r.provider.names.storePrompt(job.projectAndName(), out.marks.message.Prompt)
	r.provider.names.isStored(job.projectAndName(), job.ID.ValueString())
	if r.provider.Sender.Client == nil {
		r.keepUnrefreshed(ctx, &job, imported, out)
		return
	}
	ctx = r.provider.Mask(ctx)
	defer func() { out.marks.write(ctx, out.private) }()
	id, project := job.ID.ValueString(), job.ProjectID.ValueString()
	shown, err := r.provider.Sender.Client.ReadJob(ctx, project, id)
	out.marks.message.IsMissing = errors.Is(err, agentapi.ErrNotFound)
	switch {
	case errors.Is(err, agentapi.ErrNotFound) && !imported:
		addWarning(&resp.Diagnostics, wording.NotFound(job.facts(), err, r.provider.lastRequest(ctx, &job)))
		out.identify(ctx, &job)
	case err != nil && imported:
		addError(&resp.Diagnostics, wording.ImportFailed.Of(job.facts(), err))
	case err != nil:
		addError(&resp.Diagnostics, wording.RefreshFailed.Of(job.facts(), err))
	default:
		shown.Status = out.marks.message.observed(&job, shown.Status)
		resp.Diagnostics.Append(job.set(shown)...)
		if imported {
			job.Messages = types.Int64Value(0)
		}
		if reflect.DeepEqual(job, before) {
			out.identify(ctx, &job)
		} else {
			out.save(ctx, &job)
		}
	}
}

// keepUnrefreshed is a refresh while the provider's configuration is not known, or something is missing in it.
func (r *jobResource) keepUnrefreshed(ctx context.Context, job *jobModel, imported bool, out stateWriter) {
	switch {
	case r.provider.lacks(out.diags):
	case imported:
		addError(out.diags, wording.ImportUnconfigured.Of(job.facts(), nil))
		return
	default:
		addWarning(out.diags, wording.NotRefreshed.Of(job.facts(), nil))
	}
	out.identify(ctx, job)
}

func (r *jobResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var job jobModel
	resp.Diagnostics.Append(req.State.Get(ctx, &job)...)
	defer recoverAsError(ctx, "removing job "+job.facts().String()+" from the state", "A destroy sends no prompt.", &resp.Diagnostics)
	r.provider.names.isApplying.Store(true)
	if len(r.provider.Missing) > 0 && !r.provider.usable(&resp.Diagnostics) { // the journal needs the URL, and what replaces the job the key
		return
	}
	marks, j := readMarks(ctx, req.Private), r.provider.Sender.Journal
	if marks.plan.Successor != nil && j.IsUnusable() { // else the job would leave the state, and nothing would follow
		addError(&resp.Diagnostics, wording.NotReplaced.Of(job.facts(), j.Unusable()))
		return
	}
	if r.provider.names.isAdopted(job.projectAndName(), job.ID.ValueString()) {
		return
	}
	isKept, err := r.provider.release(ctx, &job, marks)
	switch {
	case isKept:
		return
	case err != nil && marks.plan.Successor != nil:
		addError(&resp.Diagnostics, wording.NotReplaced.Of(job.facts(), err))
		return
	}
	r.provider.reportJournalError(err, &resp.Diagnostics)
	if !resp.Diagnostics.HasError() && !job.ended() {
		addWarning(&resp.Diagnostics, wording.ActiveRemoved.Of(job.facts(), nil))
	}
}

func (r *jobResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	var identity jobIdentity
	if req.ID == "" {
		resp.Diagnostics.Append(req.Identity.Get(ctx, &identity)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	own, id := identity.ProjectID, cmp.Or(req.ID, identity.ID.ValueString())
	if before, after, hasProject := strings.Cut(req.ID, "/"); hasProject {
		own, id = types.StringValue(before), after
	}
	if own.IsNull() {
		own = r.provider.ProjectID
	}
	if own.IsNull() || own.IsUnknown() {
		addError(&resp.Diagnostics, wording.ImportWithoutProject(id, EnvProjectID))
		return
	}
	project := own.ValueString()
	if !agentapi.ValidID(project) || !agentapi.ValidID(id) {
		addError(&resp.Diagnostics, wording.InvalidImport(project, id))
		return
	}
	for name, value := range map[string]string{"project_id": project, "id": id} { // a read completes the state
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(name), value)...)
		if resp.Identity != nil {
			resp.Diagnostics.Append(resp.Identity.SetAttribute(ctx, path.Root(name), value)...)
		}
	}
}
