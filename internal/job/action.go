// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/action/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/actionvalidator"
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/check"
	"github.com/agentjobs/terraform-provider-agent/internal/escape"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

var (
	_ action.ActionWithConfigValidators = (*jobAction)(nil)
	_ action.ActionWithConfigure        = (*jobAction)(nil)
	_ action.ActionWithModifyPlan       = (*jobAction)(nil)
	_ action.ActionWithValidateConfig   = (*jobAction)(nil)
)

// progressInterval is how often an action reports that its job is still active.
const progressInterval = 10 * time.Second

// stopGrace is how long an action waits for the response to its request after Ctrl-C. The
// service usually responds within a second. Until the action has reported its outcome,
// the CLI stops nothing else, and GitHub Actions interrupts again after 7.5 seconds.
const stopGrace = 5 * time.Second

// jobAction sends a prompt, as a new job or as a message to any job, without
// keeping the job in the state.
type jobAction struct {
	kind     send.Kind
	provider *ProviderData
}

// NewStartJobAction returns the action agent_start_job.
func NewStartJobAction() action.Action {
	return &jobAction{kind: send.Create, provider: unconfigured()}
}

// NewSendMessageAction returns the action agent_send_message.
func NewSendMessageAction() action.Action {
	return &jobAction{kind: send.Message, provider: unconfigured()}
}

func (a *jobAction) Metadata(_ context.Context, req action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_start_job"
	if a.kind == send.Message {
		resp.TypeName = req.ProviderTypeName + "_send_message"
	}
}

func (a *jobAction) Schema(ctx context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = startJobSchema(ctx)
	if a.kind == send.Message {
		resp.Schema = sendMessageSchema(ctx)
	}
}

func (a *jobAction) Configure(_ context.Context, req action.ConfigureRequest, _ *action.ConfigureResponse) {
	if data, ok := req.ProviderData.(*ProviderData); ok {
		a.provider = data
	}
}

func (a *jobAction) ConfigValidators(context.Context) []action.ConfigValidator {
	return []action.ConfigValidator{actionvalidator.ExactlyOneOf(path.MatchRoot("prompt"), path.MatchRoot("prompt_wo"))}
}

func (a *jobAction) ValidateConfig(ctx context.Context, req action.ValidateConfigRequest, resp *action.ValidateConfigResponse) {
	checkTimeouts(ctx, req.Config, &resp.Diagnostics, "invoke")
}

// ModifyPlan fails the plan when no service, key or project is configured.
func (a *jobAction) ModifyPlan(ctx context.Context, req action.ModifyPlanRequest, resp *action.ModifyPlanResponse) {
	if a.provider.reportMissing(a.provider.Missing.Service, &resp.Diagnostics) {
		return
	}
	var project types.String
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("project_id"), &project)...)
	a.provider.projectOr(project, &resp.Diagnostics)
}

// actionModel holds the arguments that the actions share.
type actionModel struct {
	Prompt    types.String   `tfsdk:"prompt"`
	PromptWO  types.String   `tfsdk:"prompt_wo"`
	ProjectID types.String   `tfsdk:"project_id"`
	Wait      types.Object   `tfsdk:"wait"`
	Timeouts  timeouts.Value `tfsdk:"timeouts"`
}

// messageModel holds the arguments of agent_send_message.
type messageModel struct {
	JobID types.String `tfsdk:"job_id"`
	actionModel
}

func (a *jobAction) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var config messageModel
	arguments := any(&config)
	if a.kind == send.Create {
		arguments = &config.actionModel
	}
	resp.Diagnostics.Append(req.Config.Get(ctx, arguments)...)
	if resp.Diagnostics.HasError() || !a.provider.checkService(&resp.Diagnostics) {
		return
	}
	options := readWaitOptions(ctx, config.Wait, &resp.Diagnostics)
	timeout, diags := config.Timeouts.Invoke(ctx, defaultJobTimeout)
	resp.Diagnostics.Append(diags...)
	project := a.provider.projectOr(config.ProjectID, &resp.Diagnostics).ValueString()
	// Validation found one of them, so its value is null by now, or the CLI has not passed it.
	if config.Prompt.IsNull() && config.PromptWO.IsNull() {
		check.ErrorAt(&resp.Diagnostics, path.Root("prompt_wo"), wording.PromptNotPassed.Of(wording.Job{Project: project}, nil))
	}
	prompts := jobModel{Prompt: config.Prompt, PromptWO: config.PromptWO, ProjectID: types.StringValue(project)}
	if resp.Diagnostics.HasError() || !prompts.checkPrompts(&resp.Diagnostics) {
		return
	}
	target, doing := wording.Job{ID: config.JobID.ValueString(), Project: project}, "starting a job in project "+project
	if a.kind == send.Message {
		doing = "sending a message to job " + target.String()
		if err := check.ID(target.ID); err != nil { // it may have been unknown when it was validated
			check.ErrorAt(&resp.Diagnostics, path.Root("job_id"), wording.InvalidID.Because(err, "The prompt was not sent."))
			return
		}
	}
	defer recoverAsError(ctx, doing, wording.MayHaveSent, &resp.Diagnostics)
	ctx, cancel := a.provider.withTimeout(agentapi.WithGrace(ctx, stopGrace), "timeouts.invoke", timeout)
	defer cancel()
	i := invocation{a.provider, project, options, resp}
	// An action has no name, and so no record: it must send its prompt each time that it runs.
	request := send.Request{Wanted: journal.Wanted{Project: project, Recipient: target.ID}, Body: prompts.postBody()}
	outcome := a.provider.Sender.Begin(ctx, request).Send(ctx)
	switch {
	case outcome.Result != send.Accepted:
		addError(&resp.Diagnostics, wording.NotAccepted(outcome, request))
	case a.kind == send.Create:
		i.progress("Job %s started in project %s.", outcome.Job.ID, project)
		i.await(ctx, outcome.Job, wait.Created)
	default:
		i.progress("Message sent to job %s.", target)
		i.await(ctx, outcome.Job, wait.Messaged)
	}
}

// invocation is one run of an action.
type invocation struct {
	provider  *ProviderData
	projectID string
	options   waitOptions
	resp      *action.InvokeResponse
}

// progress shows a line at once. Only the goroutine of the invocation may call it.
func (i invocation) progress(format string, args ...any) {
	i.resp.SendProgress(action.InvokeProgressEvent{Message: fmt.Sprintf(format, args...)})
}

// await waits until the job that just accepted the prompt finishes.
func (i invocation) await(ctx context.Context, accepted *agentapi.Job, event wait.Event) {
	if !i.options.enabled {
		return
	}
	start := time.Now()
	status, reported := agentapi.StatusActive, start
	target := wait.Target{ProjectID: i.projectID, JobID: accepted.ID, After: event, At: start}
	target.Progress = func(job *agentapi.Job, age time.Duration) {
		// A final status may be the one from before a message: only Wait knows.
		if job.Status.Terminal() || job.Status == status && time.Since(reported) < progressInterval {
			return
		}
		status, reported = job.Status, time.Now()
		i.progress("Job %s is %s (%s elapsed).", job.ID, escape.Printable(string(status)), age.Round(time.Second))
	}
	shown, sawActive, err := i.provider.Waiter.Wait(ctx, target)
	if shown == nil {
		shown = accepted
	}
	job := &jobModel{ProjectID: types.StringValue(i.projectID)}
	for _, d := range job.set(shown) {
		i.resp.Diagnostics.AddWarning(d.Summary(), d.Detail()) // actions have no such attribute
	}
	switch {
	case errors.Is(err, agentapi.ErrNotFound):
		addError(&i.resp.Diagnostics, wording.LostInAction.Of(job.facts(), err))
		return
	case err != nil:
		addError(&i.resp.Diagnostics, wording.StillRunning(err, job.facts(), wording.NotInState))
		return
	}
	if event == wait.Messaged && !sawActive {
		addWarning(&i.resp.Diagnostics, wording.NotSeenActiveInAction.Of(job.facts(), nil))
	}
	i.progress("%s", wording.Finished(job.facts(), time.Since(start)))
	switch {
	case new(messageMarks).countsAsFailed(&job.shownJob):
		i.options.addFailure(&i.resp.Diagnostics, wording.Failed(job.facts(), wording.SendAgain))
	case shown.Status == agentapi.StatusArchived:
		addWarning(&i.resp.Diagnostics, wording.Archived.Of(job.facts(), nil))
	}
}
