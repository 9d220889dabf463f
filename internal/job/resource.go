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

	"github.com/hashicorp/terraform-plugin-framework-validators/resourcevalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/check"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
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

// Create sends the prompt as a new job, or adopts the job that the record of the name has. What it
// returns with an error taints the resource (T5), so the next apply comes back here.
func (r *jobResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	out := stateWriter{&resp.State, resp.Identity, resp.Private, new(marks), &resp.Diagnostics}
	r.provider.names.isApplying.Store(true)
	var job jobModel
	_, diags := job.readPlan(ctx, req.Plan, req.Config)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() || !r.provider.usable(&resp.Diagnostics) || !job.checkPrompts(&resp.Diagnostics) {
		return
	}
	defer out.recoverAndSave(ctx, &job)
	options := readWaitOptions(ctx, job.Wait, &resp.Diagnostics)
	timeout, diags := job.Timeouts.Create(ctx, defaultJobTimeout)
	resp.Diagnostics.Append(diags...)
	request, name := job.request(ctx, ""), job.projectAndName()
	if resp.Diagnostics.HasError() || !checkName(request, &resp.Diagnostics) {
		return
	}
	if otherJob, isOnly := r.provider.names.beginCreate(name); !isOnly {
		check.ErrorAt(&resp.Diagnostics, path.Root("name"), wording.DuplicateName(request.Name, request.Project, "", otherJob))
		return
	}

	request.RetryFailed, request.PlannedJob = options.onFailure == onRetry, job.ID.ValueString()
	job.Messages = types.Int64Value(0)
	operation := r.provider.Sender.Begin(ctx, request)
	ctx, cancel := r.provider.withTimeout(ctx, "timeouts.create", timeout)
	defer cancel()
	outcome := operation.Send(ctx)
	warnings := saveOutcome(ctx, &job, outcome, operation, out) // before anything else
	if outcome.JobID == "" {
		r.provider.names.endCreate(name)
	}
	isOwn := outcome.Result == send.Adopted && r.provider.Sender.Journal.IsLeft(outcome.Record)
	sayOutcome(&job, outcome, request, isOwn, out)

	switch {
	case outcome.Job == nil:
	case options.enabled:
		r.provider.await(ctx, &job, wait.Created, options, out)
	default:
		resp.Diagnostics.Append(warnings...) // a wait reports what it reads last
		if outcome.Result == send.Adopted && out.marks.message.hasFailed(&job.shownJob) {
			options.addFailure(&resp.Diagnostics, wording.Failed(job.facts(), r.provider.whatFollows(ctx, &job, true, options).AfterFailure()))
		}
	}
	// This comes last: in the meantime, the journal may have recorded what its store did not take.
	r.provider.reportProblem(operation, outcome, job.facts(), &resp.Diagnostics)
}

func (r *jobResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	out := stateWriter{&resp.State, resp.Identity, resp.Private, readMarks(ctx, req.Private), &resp.Diagnostics}
	var job jobModel
	resp.Diagnostics.Append(req.State.Get(ctx, &job)...)
	if resp.Diagnostics.HasError() {
		return
	}
	defer recoverAsError(ctx, "reading job "+job.facts().String(), wording.RefreshSendsNothing, &resp.Diagnostics)
	before, isImported := job, job.Status.IsNull()
	r.provider.names.noteRead(job.ID.ValueString())
	r.provider.names.endCreate(job.projectAndName())
	if r.provider.Sender.Client == nil {
		r.keepUnrefreshed(ctx, &job, isImported, out)
		return
	}
	ctx = r.provider.Mask(ctx)
	defer func() { out.marks.write(ctx, out.private) }()
	id, project := job.ID.ValueString(), job.ProjectID.ValueString()
	shown, err := r.provider.Sender.Client.ReadJob(ctx, project, id)
	out.marks.message.IsMissing = errors.Is(err, agentapi.ErrNotFound)
	switch {
	case errors.Is(err, agentapi.ErrNotFound) && !isImported:
		addWarning(&resp.Diagnostics, wording.NotFound(job.facts(), err, r.provider.lastRequest(ctx, &job)))
		out.identify(ctx, &job)
	case err != nil && isImported:
		addError(&resp.Diagnostics, wording.ImportFailed.Of(job.facts(), err))
	case err != nil:
		addError(&resp.Diagnostics, wording.RefreshFailed.Of(job.facts(), err))
	default:
		shown.Status = out.marks.message.observed(&job, shown.Status)
		if !before.hasFinished() && !isImported && readWaitOptions(ctx, job.Wait, &resp.Diagnostics).enabled {
			shown = r.provider.Waiter.AwaitLink(ctx, project, shown) // an earlier wait has stopped too early for it
		}
		resp.Diagnostics.Append(job.set(shown)...)
		if isImported {
			job.Messages = types.Int64Value(0)
		}
		if reflect.DeepEqual(job, before) {
			out.identify(ctx, &job)
		} else {
			out.save(ctx, &job)
		}
	}
}

// keepUnrefreshed is a refresh while the provider's configuration is not known, or something is
// missing in it.
func (r *jobResource) keepUnrefreshed(ctx context.Context, job *jobModel, isImported bool, out stateWriter) {
	switch {
	case r.provider.reportMissing(r.provider.Missing.Service, out.diags):
	case isImported:
		addError(out.diags, wording.ImportUnconfigured.Of(job.facts(), nil))
		return
	default:
		addWarning(out.diags, wording.NotRefreshed.Of(job.facts(), nil))
	}
	out.identify(ctx, job)
}

// Update sends a new prompt as a message, resumes a wait that stopped earlier, and stores what
// needs neither. Its errors do not taint (T5), so each apply comes back here until the job is done.
func (r *jobResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	out := stateWriter{&resp.State, resp.Identity, resp.Private, readMarks(ctx, req.Private), &resp.Diagnostics}
	out.marks.replacement = replacement{} // as planned once, before a plan that replaces nothing
	r.provider.names.isApplying.Store(true)
	var job, before jobModel
	_, diags := job.readPlan(ctx, req.Plan, req.Config)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(req.State.Get(ctx, &before)...)
	if resp.Diagnostics.HasError() {
		return
	}
	// ignore_changes hides a write-only prompt from the plan, but not from the apply (T7). So what the
	// plan keeps the hash of is not looked at.
	if !job.PromptWOHash.IsUnknown() {
		job.PromptWO = types.StringNull()
	}
	if !job.promptText().IsNull() && !job.checkPrompts(&resp.Diagnostics) {
		return
	}
	options := readWaitOptions(ctx, job.Wait, &resp.Diagnostics)
	timeout, diags := job.Timeouts.Update(ctx, defaultJobTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	defer recoverAsError(ctx, "updating job "+before.facts().String(), wording.MayHaveSent, &resp.Diagnostics)

	// The plan asked for an update, so it is too late to replace the job: Terraform would refuse the
	// result. A message to a closed job is not sent, but may have been sent by an earlier run
	// (OnlyIfSent).
	does, isWaited := job.promptEffect(&before), options.enabled && !before.hasFinished()
	isMessage := does == sendMessage
	job.shownJob = before.shownJob
	isCounted := job.Messages.IsUnknown() // the plan did not know whether it sends a message
	if isCounted {
		job.Messages = before.Messages
	}
	if (isMessage || isWaited) && !r.provider.usable(&resp.Diagnostics) {
		return
	}
	if !isMessage {
		isNamed := does == storePrompt || !job.Name.Equal(before.Name)
		if isNamed && (lacks(r.provider.Missing.Journal, &resp.Diagnostics) || !r.provider.assign(ctx, &job, out)) {
			return
		}
		out.save(ctx, &job)
		if out.marks.message.hasFailed(&before.shownJob) && options.failsRuns() {
			addError(&resp.Diagnostics, wording.Failed(job.facts(), r.provider.whatFollows(ctx, &job, false, options).AfterFailure()))
		}
		if isWaited {
			ctx, cancel := r.provider.withTimeout(ctx, "timeouts.update", timeout)
			defer cancel()
			r.provider.await(ctx, &job, wait.Resumed, options, out)
		}
		return
	}

	request := job.request(ctx, job.ID.ValueString())
	request.OnlyIfSent = before.isClosed(out.marks.message.IsClosed)
	if !checkName(request, &resp.Diagnostics) {
		return
	}
	operation := r.provider.Sender.Begin(ctx, request)
	ctx, cancel := r.provider.withTimeout(ctx, "timeouts.update", timeout)
	defer cancel()
	outcome := operation.Send(ctx)
	if isCounted && (outcome.Result == send.Accepted || outcome.Result == send.Unknown) {
		job.Messages = types.Int64Value(job.Messages.ValueInt64() + 1)
	}
	saveOutcome(ctx, &job, outcome, operation, out) // a later read reports an invalid link
	r.noteRefusal(ctx, &outcome, request, out)
	sayOutcome(&job, outcome, request, false, out)
	if outcome.Job != nil && options.enabled {
		after := wait.Resumed
		if outcome.Result == send.Accepted {
			after = wait.Messaged
		}
		r.provider.await(ctx, &job, after, options, out)
	}
	r.provider.reportProblem(operation, outcome, job.facts(), &resp.Diagnostics)
}

// Delete removes the job from the state, and does with its name what the plan of a replacement says
// (replacement.fate). Nothing is sent: the service cannot cancel a job.
func (r *jobResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var job jobModel
	resp.Diagnostics.Append(req.State.Get(ctx, &job)...)
	defer recoverAsError(ctx, "removing job "+job.facts().String()+" from the state", "A destroy sends no prompt.", &resp.Diagnostics)
	r.provider.names.isApplying.Store(true)
	marks, j := readMarks(ctx, req.Private), r.provider.Sender.Journal // as planned (T6)
	carried := marks.replacement
	isReplaced, needed := carried.By != nil, r.provider.Missing.Journal
	if isReplaced { // by what could not be created
		needed = r.provider.Missing.Service
	}
	if lacks(needed, &resp.Diagnostics) {
		return
	}
	object := journal.Object{
		Project: job.ProjectID.ValueString(), Name: job.Name.ValueString(), JobID: job.ID.ValueString(),
		Arguments: job.request(ctx, "").Arguments, PromptHash: job.hashOfPrompt(),
		Holder: marks.record.Holder, IsTainted: carried.isOfTainted(),
	}
	isWanted, err := false, j.Unusable()
	switch fate := carried.fate(job.projectAndName()); {
	case err != nil && isReplaced:
	case fate == keep:
		isWanted, err = j.Keep(ctx, object)
	default: // the runs of "terraform test" share a process, and none adopts what an earlier one destroyed
		isWanted, err = j.Free(ctx, object, fate == leave && r.provider.Command != "test")
	}
	if errors.Is(err, context.Canceled) {
		addError(&resp.Diagnostics, wording.NotRemoved.Of(job.facts(), nil))
		return
	}
	if err != nil && isReplaced { // the create that follows would fail, with the old job out of the state
		addError(&resp.Diagnostics, wording.NotReplaced.Of(job.facts(), err))
		return
	}
	r.provider.reportJournalError(err, &resp.Diagnostics)
	if !resp.Diagnostics.HasError() && !isWanted && !job.hasFinished() {
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

// checkName checks that a request has a name, without which it would not be recorded. An imported
// job has none yet, and ignore_changes can keep it so.
func checkName(request send.Request, diags *diag.Diagnostics) (ok bool) {
	if request.Name == "" {
		check.ErrorAt(diags, path.Root("name"), wording.NameMissing(request))
	}
	return request.Name != ""
}

// assign records that the name has the job, which was imported, without sending anything.
func (d *ProviderData) assign(ctx context.Context, job *jobModel, out stateWriter) (ok bool) {
	request := job.request(ctx, job.ID.ValueString())
	operation := d.Sender.Begin(ctx, request)
	if err := operation.Assign(ctx); err != nil {
		addError(out.diags, wording.NameNotRecorded(err, request, job.facts()))
		return false
	}
	out.marks.record.Holder = operation.Holder()
	return true
}
