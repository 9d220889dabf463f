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

// Create sends the prompt as a new job, or takes what the record of the name has: it adopts the
// job, or sends it the prompt as a message. What it returns with an error taints the resource (T5),
// so the next apply comes back here.
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
	if !r.provider.names.beginCreate(name) {
		ErrorAt(&resp.Diagnostics, path.Root("name"), wording.DuplicateName(request.Name, request.Project))
		return
	}

	request.RetryFailed, request.PlannedJob = options.onFailure == onRetry, job.ID.ValueString()
	job.Messages = types.Int64Value(0)
	operation := r.provider.Sender.Begin(ctx, request)
	ctx, cancel := r.provider.withTimeout(ctx, "timeouts.create", timeout)
	defer cancel()
	outcome := operation.Send(ctx)
	out.marks.message.WasCompleted = outcome.Result == send.Adopted && r.provider.names.hasCompleted(outcome.Record.Job)
	warnings := saveOutcome(ctx, &job, outcome, operation, out) // before anything else
	// If only the address of a resource has changed, without a moved block, this apply creates it here
	// and destroys it at the old address, in any order. A Delete that comes later must not release the
	// name: this create has the job, or failed to adopt it, and then the next apply adopts it.
	r.provider.names.endCreate(name, cmp.Or(outcome.JobID, request.PlannedJob))
	r.noteRefusal(ctx, &job, &outcome, operation, true, out)
	sayOutcome(&job, outcome, operation.Request, out)

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
	if outcome.JobID != "" && resp.Diagnostics.HasError() {
		operation.NoteBroken() //nolint:contextcheck // it has the context of Begin, without our deadline
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
	r.provider.names.notePrompt(job.projectAndName(), out.marks.message.Prompt)
	r.provider.names.forgetCreate(job.projectAndName(), job.ID.ValueString())
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
	case r.provider.reportMissing(out.diags):
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
	if isIgnored { // ignore_changes hides a write-only prompt from the plan, but not from the apply (T8)
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

	// The plan asked for an update, so it is too late to replace the job: Terraform would refuse the
	// result. So decide gets neither of two reasons for that, a new project and a request that was
	// given up. With AlreadySent, a new prompt for a closed job is a message, which is not sent
	// (OnlyIfSent), but may have been sent by an earlier run.
	change := existing{plan: &job, state: &before, marks: &out.marks.message, options: options, verdict: journal.AlreadySent}.decide()
	isMessage := change.effect == sendMessage
	job.shownJob = before.shownJob
	isCounted := job.Messages.IsUnknown() // the plan did not know whether it sends a message
	if isCounted {
		job.Messages = before.Messages
	}
	if (isMessage || change.isWaited) && !r.provider.usable(&resp.Diagnostics) {
		return
	}
	if !isMessage {
		isNamed := change.effect == storePrompt || !job.Name.Equal(before.Name)
		if isNamed && !r.provider.assign(ctx, &job, out) {
			return
		}
		out.save(ctx, &job)
		if change.fails || change.replaces() { // the plan did not know that on_failure is "retry"
			addError(&resp.Diagnostics, wording.Failed(job.facts(), r.provider.whatFollows(ctx, &job, false, options).AfterFailure()))
		}
		if change.isWaited {
			ctx, cancel := r.provider.withTimeout(ctx, "timeouts.update", timeout)
			defer cancel()
			r.provider.await(ctx, &job, wait.Resumed, options, out)
		}
		return
	}

	request := job.request(ctx, job.ID.ValueString())
	request.OnlyIfSent = change.isClosed
	if !checkName(request, &resp.Diagnostics) {
		return
	}
	operation := r.provider.Sender.Begin(ctx, request)
	ctx, cancel := r.provider.withTimeout(ctx, "timeouts.update", timeout)
	defer cancel()
	outcome := operation.Send(ctx)
	if isCounted && (outcome.Result == send.Sent || outcome.Result == send.Unknown) {
		job.Messages = types.Int64Value(job.Messages.ValueInt64() + 1)
	}
	saveOutcome(ctx, &job, outcome, operation, out) // a later read reports an invalid link
	r.noteRefusal(ctx, &job, &outcome, operation, false, out)
	sayOutcome(&job, outcome, request, out)
	if outcome.Job != nil && options.enabled {
		after := wait.Resumed
		if outcome.Result == send.Sent {
			after = wait.Messaged
		}
		r.provider.await(ctx, &job, after, options, out)
	}
	r.provider.reportProblem(operation, outcome, job.facts(), &resp.Diagnostics)
}

// Delete removes the job from the state, and decides what becomes of its name. Usually it releases
// the name, so that the next create sends. It does not if the successor may keep the job, because the
// object is only tainted, or the plan does not know what the successor wants; nor if another object
// has adopted the job since. Nothing is sent: the service cannot cancel a job.
func (r *jobResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var job jobModel
	resp.Diagnostics.Append(req.State.Get(ctx, &job)...)
	defer recoverAsError(ctx, "removing job "+job.facts().String()+" from the state", "A destroy sends no prompt.", &resp.Diagnostics)
	r.provider.names.isApplying.Store(true)
	// Without base_url no record can be found, and without the key no successor can be created.
	if len(r.provider.Missing) > 0 && !r.provider.usable(&resp.Diagnostics) {
		return
	}
	id, project, name := job.ID.ValueString(), job.ProjectID.ValueString(), job.Name.ValueString()
	marks, j := readMarks(ctx, req.Private), r.provider.Sender.Journal // as planned (T6)
	successor, adoption, prompt := marks.plan.Successor, marks.record.Adoption, marks.message.Prompt
	r.provider.names.noteState(&job.shownJob, &marks.message)
	// The create that follows needs the journal: it would fail, with the old job out of the state.
	if why := j.Unusable(); successor != nil && why != nil {
		addError(&resp.Diagnostics, wording.NotReplaced.Of(job.facts(), why))
		return
	}
	if r.provider.names.hasCreated(job.projectAndName(), id) {
		return
	}

	keepsName := marks.plan.MayBeSame
	leavesName := successor == nil || successor.Project != "" && successor.Project != project || successor.Name != "" && successor.Name != name
	// The object is tainted, so its marks were written by the plan of its successor alone (T1).
	if successor != nil && marks.plan.Job == "" {
		adoption, prompt = journal.AnyAdoption, successor.Prompt
		keepsName = successor.MayKeepJob
	}
	keepsName = keepsName && !leavesName
	if text := job.comparedPrompt(); !text.IsNull() {
		prompt = promptHash(id, text)
	}
	// The runs of "terraform test" share a process, and none must adopt what an earlier one destroyed.
	if keepsName || leavesName && r.provider.Command != "test" {
		j.Leave(project, name, journal.Left{Job: id, Arguments: job.request(ctx, "").Arguments, Prompt: prompt, KeepsName: keepsName})
	}
	if keepsName {
		return
	}
	err := j.Release(ctx, project, name, id, adoption)
	if err != nil && successor != nil {
		addError(&resp.Diagnostics, wording.NotReplaced.Of(job.facts(), err))
		return
	}
	r.provider.reportJournalError(err, &resp.Diagnostics)
	if !resp.Diagnostics.HasError() && !job.hasFinished() {
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
		ErrorAt(diags, path.Root("name"), wording.NameMissing(request))
	}
	return request.Name != ""
}

// assign records that the name has the job, which was imported, without sending anything.
func (d *ProviderData) assign(ctx context.Context, job *jobModel, out stateWriter) (ok bool) {
	request := job.request(ctx, job.ID.ValueString())
	started, _ := time.Parse(time.RFC3339, job.CreatedAt.ValueString())
	operation := d.Sender.Begin(ctx, request)
	if err := operation.Assign(ctx, started); err != nil {
		addError(out.diags, wording.NameNotRecorded(err, request, job.facts()))
		return false
	}
	out.marks.record.Adoption = operation.Adoption()
	return true
}
