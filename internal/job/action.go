// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/action/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/escape"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
)

var (
	_ action.ActionWithConfigure      = (*jobAction)(nil)
	_ action.ActionWithModifyPlan     = (*jobAction)(nil)
	_ action.ActionWithValidateConfig = (*jobAction)(nil)
)

// progressInterval is how often an action reports that its job is still active.
const progressInterval = 10 * time.Second

// jobAction sends a prompt, as a new job or as a message to any job, without
// keeping the job in the state.
type jobAction struct {
	kind     send.Kind
	provider *ProviderData
}

// NewStartJobAction returns the action agent_start_job.
func NewStartJobAction() action.Action { return &jobAction{kind: send.Create} }

// NewSendMessageAction returns the action agent_send_message.
func NewSendMessageAction() action.Action { return &jobAction{kind: send.Message} }

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
	a.provider, _ = req.ProviderData.(*ProviderData)
}

func (a *jobAction) ValidateConfig(ctx context.Context, req action.ValidateConfigRequest, resp *action.ValidateConfigResponse) {
	checkTimeouts(ctx, req.Config, &resp.Diagnostics, "invoke")
}

// ModifyPlan fails the plan when no project is configured.
func (a *jobAction) ModifyPlan(ctx context.Context, req action.ModifyPlanRequest, resp *action.ModifyPlanResponse) {
	var project types.String
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("project_id"), &project)...)
	a.provider.projectOr(project, &resp.Diagnostics)
}

// actionModel holds the arguments that the actions share.
type actionModel struct {
	Prompt    types.String   `tfsdk:"prompt"`
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
	arguments, operation := any(&config), "sending a message"
	if a.kind == send.Create {
		arguments, operation = &config.actionModel, "starting a job"
	}
	defer recovered(ctx, operation, mayHaveSent, &resp.Diagnostics)
	resp.Diagnostics.Append(req.Config.Get(ctx, arguments)...)
	if resp.Diagnostics.HasError() || !a.provider.usable(&resp.Diagnostics) {
		return
	}
	options := readWaitOptions(ctx, config.Wait, waitOptions{enabled: true, onFailure: onError, onTimeout: onError}, &resp.Diagnostics)
	timeout, diags := config.Timeouts.Invoke(ctx, defaultJobTimeout)
	resp.Diagnostics.Append(diags...)
	project := a.provider.projectOr(config.ProjectID, &resp.Diagnostics).ValueString()
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(a.provider.Mask(ctx), timeout)
	defer cancel()
	id := config.JobID.ValueString()
	i := invocation{a.provider, project, options, resp}
	request := send.Request{Kind: a.kind, ProjectID: project, JobID: id, Prompt: config.Prompt.ValueString()} // without a key: a weekly action must send each time
	outcome := a.provider.Sender.Begin(ctx, request).Send(ctx)
	switch {
	case outcome.Result != send.Sent:
		resp.Diagnostics.AddError(notInvoked(outcome, request))
	case a.kind == send.Create:
		i.progress("Job %s started in project %s.", outcome.Job.ID, project)
		i.await(ctx, outcome.Job, wait.Created)
	default:
		i.progress("Message sent to job %s in project %s.", id, project)
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
	i.provider.recent.add(i.projectID, accepted.ID, event)
	if !i.options.enabled {
		return
	}
	start := time.Now()
	status, reported := agentapi.StatusActive, start
	request := i.provider.recent.request(i.projectID, accepted.ID)
	request.Progress = func(job *agentapi.Job, age time.Duration) {
		// A final status may be the one from before a message: only Wait knows.
		if job.Status.Terminal() || job.Status == status && time.Since(reported) < progressInterval {
			return
		}
		status, reported = job.Status, time.Now()
		i.progress("Job %s is %s (%s elapsed).", job.ID, escape.Printable(string(status)), age.Round(time.Second))
	}
	record, err := i.provider.Waiter.Wait(ctx, request)
	if record == nil {
		record = accepted
	}
	job := &jobModel{ProjectID: types.StringValue(i.projectID)}
	for _, d := range job.apply(record) {
		i.resp.Diagnostics.AddWarning(d.Summary(), d.Detail()) // an action has no such attribute to point at
	}
	if err == nil {
		link := "It opened no pull request."
		if !job.PRLink.IsNull() {
			link = "Pull request: " + job.PRLink.ValueString()
		}
		i.progress("Job %s finished with the status %s (%s elapsed). %s", record.ID, record.Status, time.Since(start).Round(time.Second), link)
	}
	reportWait(job, err, i.options, &i.resp.Diagnostics,
		"The state does not contain this job. To check it, use the data source agent_job or the service's dashboard. Running the action again sends the prompt again.",
		"Running the action again sends the prompt again.")
}
