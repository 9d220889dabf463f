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
	out := stateWriter{&resp.State, resp.Identity, resp.Private, new(marks), &resp.Diagnostics}
	r.provider.names.isApplying.Store(true)
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
	defer out.recoverAndSave(ctx, &job)
	request := job.request(ctx, "")
	if !checkName(request, &resp.Diagnostics) {
		return
	}
	request.Replaces, request.RetryFailed = r.provider.names.replacedBy(job.projectAndName()), options.onFailure == onRetry
	operation := r.provider.Sender.Begin(ctx, request)
	ctx, cancel := r.provider.withTimeout(ctx, "timeouts.create", timeout)
	defer cancel()

	outcome := operation.Send(ctx)
	if outcome.Job != nil { // before anything else
		warnings := job.set(outcome.Job)
		out.marks.record.Version, out.marks.record.Adoption = operation.Call.Version(), operation.Call.Adoption()
		if last := outcome.Record.LastMessage(); outcome.Result == send.Adopted && last != nil {
			out.marks.message.SentAt, out.marks.message.Unconfirmed = last.SentAt, last.Unknown
		}
		out.save(ctx, &job)
		if !options.enabled { // with a wait, await reports those of the last record
			resp.Diagnostics.Append(warnings...)
		}
	}
	switch outcome.Result {
	case send.Sent:
	case send.Adopted:
		if outcome.Job.ID != request.Replaces { // else it is still the failed one
			addWarning(&resp.Diagnostics, wording.Adopted(outcome, request))
		}
	default:
		addError(&resp.Diagnostics, wording.NotAccepted(outcome, request, wording.ApplyAgain))
	}
	if outcome.Job != nil && options.enabled {
		r.provider.await(ctx, &job, wait.Created, options, out)
	}
	r.provider.reportProblem(operation, outcome, job.facts(), &resp.Diagnostics) // by now, the store may have taken it
}

func (r *jobResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	out := stateWriter{&resp.State, resp.Identity, resp.Private, readMarks(ctx, req.Private), &resp.Diagnostics}
	isIgnored := out.marks.plan.IsPromptIgnored
	out.marks.plan = planMarks{}
	r.provider.names.isApplying.Store(true)
	var job, before jobModel
	_, diags := job.readPlan(ctx, req.Plan, req.Config)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(req.State.Get(ctx, &before)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if isIgnored { // the CLI hides a write-only prompt with ignore_changes from the plan, but not from the apply
		job.PromptWO = types.StringNull()
	} else if !job.checkPrompts(&resp.Diagnostics) {
		return
	}
	options := readWaitOptions(ctx, job.Wait, &resp.Diagnostics)
	timeout, diags := job.Timeouts.Update(ctx, defaultJobTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	defer recoverAsError(ctx, "updating job "+before.facts().String(), wording.MayHaveSent, &resp.Diagnostics)
	change := decideApply(&job, &before, &out.marks.message, options)
	isMessage := change.effect == sendMessage
	if change.effect == reopen {
		out.marks.message.reopen()
	}
	job.jobRecord = before.jobRecord
	named := &before // the name that the job has in the journal
	if change.effect == storePrompt || !job.Name.Equal(before.Name) {
		isAssigned, ok := r.provider.assign(ctx, &job, &before, isMessage, out)
		if !ok {
			return
		}
		if isAssigned {
			named = &job
		}
	}
	if !isMessage && !change.isWaited {
		out.save(ctx, &job)
		return
	}
	if !r.provider.usable(&resp.Diagnostics) {
		return
	}
	request := job.request(ctx, job.ID.ValueString())
	request.Closed = change.isClosed
	if isMessage && !checkName(request, &resp.Diagnostics) {
		return
	}
	operation := r.provider.Sender.Begin(ctx, request)
	ctx, cancel := r.provider.withTimeout(ctx, "timeouts.update", timeout)
	defer cancel()

	after := wait.Resumed
	if !isMessage {
		out.save(ctx, &job)
	} else {
		outcome := r.sendMessage(ctx, &job, named, operation, out)
		defer func() { r.provider.reportProblem(operation, outcome, job.facts(), &resp.Diagnostics) }() // by then, the store may have taken it
		if outcome.Job == nil {
			return
		}
		if outcome.Result == send.Sent {
			after = wait.Messaged
		}
	}
	if options.enabled {
		r.provider.await(ctx, &job, after, options, out)
	}
}

// checkName checks that a request has a name: ignore_changes may hide it, and without it nothing would be recorded.
func checkName(request send.Request, diags *diag.Diagnostics) (ok bool) {
	if request.Name == "" {
		validate.ErrorAt(diags, path.Root("name"), wording.NameMissing(request))
	}
	return request.Name != ""
}

// sendMessage sends the new prompt to the job. From the moment it may have arrived the state holds the new prompt, so that
// no later apply sends it again. If the journal has named the job otherwise, the message's record gives it the new name.
func (r *jobResource) sendMessage(ctx context.Context, job, named *jobModel, operation *send.Operation, out stateWriter) send.Outcome {
	outcome, at := operation.Send(ctx), time.Time{}
	arrived := outcome.Job != nil
	if arrived {
		at = time.Now()
		if outcome.Result == send.AlreadySent {
			at = outcome.Record.Last.SentAt
		}
		job.set(outcome.Job)                                          // an invalid link is reported once the job has finished
		job.Status = types.StringValue(string(agentapi.StatusActive)) // the record may be the one from before the message
	}
	if arrived || outcome.Result == send.Unknown || outcome.Result == send.EarlierUnknown {
		earlier := *out.marks
		out.marks.message.messaged(at)
		out.marks.record.Version, out.marks.record.Adoption = operation.Call.Version(), operation.Call.Adoption()
		out.save(ctx, job)
		r.provider.releaseEarlierName(ctx, job, named, &earlier, out.diags)
	}
	switch {
	case outcome.Result == send.AlreadySent:
		addWarning(out.diags, wording.AlreadySent(outcome, operation.Request))
	case outcome.Result == send.Closed:
		facts := job.facts()
		facts.RefusedMessage = out.marks.message.RefusesMessages
		validate.ErrorAt(out.diags, job.promptPath(), wording.MessageToClosedJob.Of(facts, nil))
	case !arrived:
		request := operation.Request
		request.Closed = r.noteRefusal(ctx, job, outcome.Err, out)
		addError(out.diags, wording.NotAccepted(outcome, request, wording.ApplyAgain))
	}
	return outcome
}

// noteRefusal reads the job after it refused a message. If it has finished, a mark tells the next plan, because a service may refuse
// messages to every job that has finished. isClosed reports whether this and earlier refusals show that the job accepts no messages any
// more.
func (r *jobResource) noteRefusal(ctx context.Context, job *jobModel, refusal error, out stateWriter) (isClosed bool) {
	reason := agentapi.ReasonOf(refusal)
	if reason != agentapi.ReasonPrompt && reason != agentapi.ReasonJob {
		return false
	}
	id := job.ID.ValueString()
	shown, err := r.provider.Sender.Client.ReadJob(ctx, job.ProjectID.ValueString(), id)
	if err != nil || !shown.Status.Terminal() || wait.MayBeStale(shown.Status, out.marks.message.SentAt) {
		return false
	}
	out.marks.message.refuses(promptHash(id, job.comparedPrompt()), reason)
	out.marks.write(ctx, out.private)
	return out.marks.message.RefusesMessages
}

func (r *jobResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	out := stateWriter{&resp.State, resp.Identity, resp.Private, readMarks(ctx, req.Private), &resp.Diagnostics}
	var job jobModel
	resp.Diagnostics.Append(req.State.Get(ctx, &job)...)
	if resp.Diagnostics.HasError() {
		return
	}
	defer recoverAsError(ctx, "reading job "+job.facts().String(), wording.RefreshSendsNothing, &resp.Diagnostics)
	before, imported := job, job.Status.IsNull()
	if r.provider.Sender.Client == nil {
		r.keepUnrefreshed(ctx, &job, imported, out)
		return
	}
	ctx = r.provider.Mask(ctx)
	r.provider.readRecord(ctx, &job, out)
	defer func() { out.marks.write(ctx, out.private) }()
	id, project := job.ID.ValueString(), job.ProjectID.ValueString()
	shown, err := r.provider.Sender.Client.ReadJob(ctx, project, id)
	switch {
	case errors.Is(err, agentapi.ErrNotFound) && !imported:
		addWarning(&resp.Diagnostics, wording.RefreshNotFound.Of(job.facts(), err))
		out.identify(ctx, &job)
	case err != nil && imported:
		addError(&resp.Diagnostics, wording.ImportFailed.Of(job.facts(), err))
	case err != nil:
		addError(&resp.Diagnostics, wording.RefreshFailed.Of(job.facts(), err))
	default:
		r.provider.names.observe(id, string(shown.Status))
		shown.Status = out.marks.message.observed(&job, shown.Status)
		resp.Diagnostics.Append(job.set(shown)...)
		if reflect.DeepEqual(job, before) {
			out.identify(ctx, &job)
		} else {
			out.save(ctx, &job)
		}
	}
}

// keepUnrefreshed is a refresh while the provider's configuration is not known.
func (r *jobResource) keepUnrefreshed(ctx context.Context, job *jobModel, imported bool, out stateWriter) {
	if imported {
		addError(out.diags, wording.ImportUnconfigured.Of(job.facts(), nil))
		return
	}
	addWarning(out.diags, wording.NotRefreshed.Of(job.facts(), nil))
	out.identify(ctx, job)
}

func (r *jobResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var job jobModel
	resp.Diagnostics.Append(req.State.Get(ctx, &job)...)
	defer recoverAsError(ctx, "removing job "+job.facts().String()+" from the state", "A destroy sends no prompt.", &resp.Diagnostics)
	r.provider.names.isApplying.Store(true)
	marks := readMarks(ctx, req.Private)
	next := marks.plan.Successor
	if next != nil && r.provider.Sender.Journal.IsUnusable() { // else the job would leave the state, and nothing would follow
		addError(&resp.Diagnostics, wording.NotReplaced.Of(job.facts(), r.provider.Sender.Journal.Unusable()))
		return
	}
	r.provider.Sender.Journal.NotInState(job.ID.ValueString())
	if next != nil && (next.KeepsFailed || next.IsUndecided && job.is(agentapi.StatusFailed)) {
		// Under another name perhaps, if a run that renamed the job was killed.
		name := projectAndName{job.ProjectID.ValueString(), cmp.Or(next.Name, job.Name.ValueString())}
		r.provider.names.replaces(name, job.ID.ValueString())
	} else {
		r.provider.releaseName(ctx, &job, marks, &resp.Diagnostics)
	}
	if !resp.Diagnostics.HasError() && !job.ended() {
		addWarning(&resp.Diagnostics, wording.ActiveRemoved.Of(job.facts(), nil))
	}
}

func (r *jobResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	var identity jobIdentity
	if req.ID == "" {
		resp.Diagnostics.Append(req.Identity.Get(ctx, &identity)...)
	}
	project, id := identity.ProjectID.ValueString(), identity.ID.ValueString()
	if req.ID != "" {
		project, id, _ = strings.Cut(req.ID, "/")
	}
	if resp.Diagnostics.HasError() {
		return
	}
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
