// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package job is agent_job: the resource, the data source and the actions, with
// their schemas, plans and state.
package job

import (
	"context"
	"errors"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework-validators/resourcevalidator"
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
	var job jobModel
	c := applyCall{
		stateWriter: stateWriter{&resp.State, resp.Identity, resp.Private, new(marks), &resp.Diagnostics},
		provider:    r.provider, job: &job, isCreate: true,
	}
	r.provider.names.isApplying.Store(true)

	// Make a request of the plan.
	_, diags := job.readPlan(ctx, req.Plan, req.Config)
	c.diags.Append(diags...)
	if c.diags.HasError() || !r.provider.checkService(c.diags) || !job.checkPrompts(c.diags) {
		return
	}
	defer c.recoverAndSave(ctx, &job)
	c.options = readWaitOptions(ctx, job.Wait, c.diags)
	timeout, diags := job.Timeouts.Create(ctx, defaultJobTimeout)
	c.diags.Append(diags...)
	request := job.request(ctx, "")
	request.RetryFailed, request.PlannedJob = c.options.onFailure == onRetry, job.ID.ValueString()
	if c.diags.HasError() || !checkName(request, c.diags) {
		return
	}

	// No other resource of this apply may have the name.
	name := job.projectAndName()
	if otherJob, isOnly := r.provider.names.beginCreate(name); !isOnly {
		check.ErrorAt(c.diags, path.Root("name"), wording.DuplicateName(request.Name, request.Project, "", otherJob))
		return
	}

	// Send the prompt, or do what the record of the name says. The journal gets the CLI's own context,
	// because an outcome is recorded even after our timeout.
	operation := r.provider.Sender.Begin(ctx, request)
	ctx, cancel := r.provider.withTimeout(ctx, "timeouts.create", timeout)
	defer cancel()
	outcome := operation.Send(ctx)

	// Save the job before anything that can panic or take long.
	job.Messages = types.Int64Value(0)
	warnings := c.saveOutcome(ctx, outcome, operation)
	if outcome.JobID == "" {
		r.provider.names.endCreate(name)
	}
	c.sayOutcome(outcome, request, outcome.Result == send.Adopted && r.provider.Sender.Journal.IsLeftByThisRun(outcome.Record))

	// Wait until the job finishes.
	switch {
	case outcome.Job == nil:
	case c.options.enabled:
		c.await(ctx, wait.Created)
	default: // nothing else reports an invalid link, or an adopted job that had failed
		c.diags.Append(warnings...)
		if outcome.Result == send.Adopted && c.marks.message.hasFailed(&job.shownJob) {
			c.reportFailure(ctx)
		}
	}
	// This comes last: in the meantime, the journal may have recorded what its store did not take.
	c.reportProblem(operation, outcome.Result)
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
	switch {
	case errors.Is(err, agentapi.ErrNotFound) && !isImported:
		addWarning(&resp.Diagnostics, wording.NotFound(job.facts(), err, job.lastRequest(ctx, r.provider.Sender.Journal)))
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
	var job, before jobModel
	c := applyCall{
		stateWriter: stateWriter{&resp.State, resp.Identity, resp.Private, readMarks(ctx, req.Private), &resp.Diagnostics},
		provider:    r.provider, job: &job,
	}
	c.marks.replacement = replacement{} // of an earlier plan, which was not applied: a later Delete must not read it
	r.provider.names.isApplying.Store(true)

	// Read what was planned.
	_, diags := job.readPlan(ctx, req.Plan, req.Config)
	c.diags.Append(diags...)
	c.diags.Append(req.State.Get(ctx, &before)...)
	if c.diags.HasError() {
		return
	}
	if !job.PromptWOHash.IsUnknown() {
		// The plan keeps the hash, so it keeps the prompt: ignore_changes hides a write-only prompt from a
		// plan, but not from its apply (T7).
		job.PromptWO = types.StringNull()
	}
	if !job.promptText().IsNull() && !job.checkPrompts(c.diags) {
		return
	}
	c.options = readWaitOptions(ctx, job.Wait, c.diags)
	timeout, diags := job.Timeouts.Update(ctx, defaultJobTimeout)
	c.diags.Append(diags...)
	if c.diags.HasError() {
		return
	}
	defer recoverAsError(ctx, "updating job "+before.facts().String(), wording.MayHaveSent, c.diags)

	// The plan has decided against a replacement, and Terraform refuses one now.
	job.shownJob = before.shownJob
	if job.Messages.IsUnknown() { // the plan did not know whether it sends a message
		job.Messages = before.Messages
	}
	if does := job.promptEffect(&before); does == sendMessage {
		c.sendMessage(ctx, &before, timeout)
	} else {
		c.storeAndWait(ctx, &before, does == storePrompt, timeout)
	}
}

// Delete removes the job from the state, and does with its name what the plan of a replacement says
// (replacement.fate). Nothing is sent: the service cannot cancel a job.
func (r *jobResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var job jobModel
	resp.Diagnostics.Append(req.State.Get(ctx, &job)...)
	defer recoverAsError(ctx, "removing job "+job.facts().String()+" from the state", "A destroy sends no prompt.", &resp.Diagnostics)
	r.provider.names.isApplying.Store(true)

	// Read what the plan has left (T6). A replacement needs what its create needs.
	marks := readMarks(ctx, req.Private)
	isReplaced, needed := marks.replacement.By != nil, r.provider.Missing.Journal
	if isReplaced {
		needed = r.provider.Missing.Service
	}
	if addMissing(needed, &resp.Diagnostics) {
		return
	}

	// Do with the name what the plan says.
	isInUse, err := r.leaveName(ctx, &job, marks)

	// An error keeps the object in the state.
	switch {
	case errors.Is(err, context.Canceled):
		addError(&resp.Diagnostics, wording.NotRemoved.Of(job.facts(), nil))
		return
	case err != nil && isReplaced: // the create that follows would fail, with the old job out of the state
		addError(&resp.Diagnostics, wording.NotReplaced.Of(job.facts(), err))
		return
	}
	r.provider.reportJournalError(err, &resp.Diagnostics)
	if !resp.Diagnostics.HasError() && !isInUse && !job.hasFinished() {
		addWarning(&resp.Diagnostics, wording.ActiveRemoved.Of(job.facts(), nil))
	}
}

// leaveName frees the name of a job that is removed, or keeps it for the create that follows. isInUse:
// another object has the job, or may get it. With an unusable journal, a replacement must not begin.
func (r *jobResource) leaveName(ctx context.Context, job *jobModel, marks *marks) (isInUse bool, err error) {
	records := r.provider.Sender.Journal
	if err := records.Unusable(); err != nil && marks.replacement.By != nil {
		return false, err
	}
	object := journal.Object{
		Project: job.ProjectID.ValueString(), Name: job.Name.ValueString(), JobID: job.ID.ValueString(),
		Arguments: job.request(ctx, "").Arguments, PromptHash: job.hashOfPrompt(), Holder: marks.holder,
	}
	fate := marks.replacement.fate(job.projectAndName())
	if fate == journal.Leave && r.provider.Command == "test" {
		fate = journal.Release // the runs of a test share a process, and none adopts what an earlier one destroyed
	}
	return records.Remove(ctx, object, fate)
}
