// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package job is agent_job: the resource, the data source and the actions, with
// their schemas, plans and state.
package job

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/resourcevalidator"
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
	if !r.provider.names.start(&job) {
		validate.ErrorAt(&resp.Diagnostics, path.Root("name"), wording.DuplicateName(job.Name.ValueString(), job.ProjectID.ValueString()))
		return
	}
	defer func() {
		if job.ID.IsUnknown() {
			r.provider.names.end(&job)
		}
	}()
	defer out.recoverAndSave(ctx, &job)
	project := job.ProjectID.ValueString()
	operation := r.provider.Sender.Begin(ctx, send.Request{
		Kind: send.Create, ProjectID: project, Prompt: job.promptText().ValueString(), Name: job.Name.ValueString(),
		PromptHash: job.promptHash(), Key: requestKey(ctx, send.Create, &job),
	})
	defer operation.End()
	ctx, cancel := r.provider.withTimeout(ctx, "timeouts.create", timeout)
	defer cancel()

	outcome := operation.Send(ctx)
	if outcome.Job != nil { // before anything else
		warnings := job.apply(outcome.Job)
		out.shows(operation)
		out.save(ctx, &job)
		if !options.enabled { // with a wait, await reports those of the last record
			resp.Diagnostics.Append(warnings...)
		}
	}
	switch outcome.Result {
	case send.Sent:
	case send.TakenOver:
		addWarning(&resp.Diagnostics, wording.TakenOver(outcome, operation.Request))
	default:
		addError(&resp.Diagnostics, wording.NotAccepted(outcome, operation.Request, wording.ApplyAgain))
	}
	reportProblem(r.provider.Sender.Journal, outcome, job.facts(), &resp.Diagnostics)
	if outcome.Job != nil && options.enabled {
		r.provider.await(ctx, &job, wait.Created, options, out)
	}
}

func (r *jobResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	out := stateWriter{&resp.State, resp.Identity, resp.Private, readMarks(ctx, req.Private), &resp.Diagnostics}
	var job, before jobModel
	_, diags := job.readPlan(ctx, req.Plan, req.Config)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(req.State.Get(ctx, &before)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if out.marks.ignored { // the CLI hides a write-only prompt with ignore_changes from the plan, but not from the apply
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
	change := compare(&job, &before, out.marks, options.enabled)
	if change.restored {
		out.marks.reopen()
	}
	job.jobRecord = before.jobRecord
	if !job.Name.Equal(before.Name) {
		r.provider.names.end(&before)
	}
	if !change.newPrompt && !change.resume {
		out.save(ctx, &job)
		return
	}
	if !r.provider.usable(&resp.Diagnostics) {
		return
	}
	r.provider.Sender.Journal.DealtWith(out.marks.journal.Entries...)
	operation := r.provider.Sender.Begin(ctx, send.Request{
		Kind: send.Message, ProjectID: job.ProjectID.ValueString(), JobID: job.ID.ValueString(),
		Prompt: job.promptText().ValueString(), Key: requestKey(ctx, send.Message, &job),
		Closed: change.closedJob,
	})
	defer operation.End()
	ctx, cancel := r.provider.withTimeout(ctx, "timeouts.update", timeout)
	defer cancel()

	after := wait.Resumed
	if !change.newPrompt {
		out.save(ctx, &job)
	} else if outcome := r.sendMessage(ctx, &job, operation, out); outcome.Job == nil {
		return
	} else if outcome.Result == send.Sent {
		after = wait.Messaged
	}
	if options.enabled {
		r.provider.await(ctx, &job, after, options, out)
	}
}

// sendMessage sends the new prompt to the job. From the moment it may have arrived the state holds the new prompt, so that
// no later apply sends it again.
func (r *jobResource) sendMessage(ctx context.Context, job *jobModel, operation *send.Operation, out stateWriter) send.Outcome {
	outcome, at := operation.Send(ctx), time.Time{}
	arrived := outcome.Job != nil
	if arrived {
		at = time.Now()
		if outcome.Result == send.TakenOver {
			at = outcome.Earlier.SentAt
		}
		job.apply(outcome.Job)                                        // an invalid link is reported once the job has finished
		job.Status = types.StringValue(string(agentapi.StatusActive)) // the record may be the one from before the message
	}
	if arrived || outcome.Result == send.Unknown || outcome.Result == send.EarlierUnknown {
		out.marks.messaged(at)
		out.shows(operation)
		out.save(ctx, job)
	}
	switch {
	case outcome.Result == send.TakenOver:
		addWarning(out.diags, wording.TakenOver(outcome, operation.Request))
	case outcome.Result == send.Closed:
		facts := job.facts()
		facts.RefusedMessage = out.marks.closed
		validate.ErrorAt(out.diags, job.promptPath(), wording.MessageToClosedJob.Of(facts, nil))
	case !arrived:
		operation.Request.Closed = r.isClosed(ctx, job, outcome.Err, out)
		addError(out.diags, wording.NotAccepted(outcome, operation.Request, wording.ApplyAgain))
	}
	reportProblem(r.provider.Sender.Journal, outcome, job.facts(), out.diags)
	return outcome
}

// isClosed reports whether refusals of messages and a GET after this one show that the job accepts no messages
// any more, and leaves a mark for the next plan: a service may refuse messages to every job that has finished.
func (r *jobResource) isClosed(ctx context.Context, job *jobModel, refusal error, out stateWriter) bool {
	reason := agentapi.ReasonOf(refusal)
	if reason != agentapi.ReasonPrompt && reason != agentapi.ReasonJob {
		return false
	}
	id := job.ID.ValueString()
	record, err := r.provider.Sender.Client.ReadJob(ctx, job.ProjectID.ValueString(), id)
	if err != nil || !record.Status.Terminal() || wait.MayBeStale(record.Status, out.marks.messagedAt) {
		return false
	}
	out.marks.refuses(promptHash(id, job.comparedPrompt()), reason)
	out.marks.write(ctx, out.private)
	return out.marks.closed
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
	out.marks.pruneJournal(ctx, r.provider.Sender.Journal, &resp.Diagnostics)
	defer func() { out.marks.write(ctx, out.private) }()
	id, project := job.ID.ValueString(), job.ProjectID.ValueString()
	record, err := r.provider.Sender.Client.ReadJob(ctx, project, id)
	switch {
	case errors.Is(err, agentapi.ErrNotFound) && !imported:
		addWarning(&resp.Diagnostics, wording.RefreshNotFound.Of(job.facts(), err))
		out.identify(ctx, &job)
	case err != nil && imported:
		addError(&resp.Diagnostics, wording.ImportFailed.Of(job.facts(), err))
	case err != nil:
		addError(&resp.Diagnostics, wording.RefreshFailed.Of(job.facts(), err))
	default:
		record.Status = out.marks.observed(&job, record.Status)
		resp.Diagnostics.Append(job.apply(record)...)
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
	r.provider.names.end(&job)
	j := r.provider.Sender.Journal
	reportJournalError(j, j.Destroyed(ctx, readMarks(ctx, req.Private).journal, job.ID.ValueString()), &resp.Diagnostics)
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
