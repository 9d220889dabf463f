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
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
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
	kind     requestKind
	provider *ProviderData
}

// NewStartJobAction returns the action agent_start_job.
func NewStartJobAction() action.Action { return &jobAction{kind: newJobs} }

// NewSendMessageAction returns the action agent_send_message.
func NewSendMessageAction() action.Action { return &jobAction{kind: messages} }

func (a *jobAction) Metadata(_ context.Context, req action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_start_job"
	if a.kind == messages {
		resp.TypeName = req.ProviderTypeName + "_send_message"
	}
}

func (a *jobAction) Schema(ctx context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = startJobSchema(ctx)
	if a.kind == messages {
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
	ID types.String `tfsdk:"id"`
	actionModel
}

func (a *jobAction) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var config messageModel
	arguments, operation := any(&config), "sending a message"
	if a.kind == newJobs {
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
	if err := a.provider.Limits.send(a.kind); err != nil {
		resp.Diagnostics.AddError(err.diagnostic())
		return
	}
	ctx, cancel := context.WithTimeout(a.provider.Mask(ctx), timeout)
	defer cancel()
	i := invocation{a.provider, project, options, resp}
	if a.kind == newJobs {
		job, err := a.provider.Client.CreateJob(ctx, project, config.Prompt.ValueString(), nil)
		if err != nil {
			i.failed(err, "Failed to start agent job", "project "+project, "a job may have been started")
			return
		}
		i.progress("Job %s started in project %s.", job.ID, project)
		i.await(ctx, job, wait.Created)
		return
	}
	id := config.ID.ValueString()
	job, err := a.provider.Client.SendMessage(ctx, project, id, config.Prompt.ValueString(), nil)
	if err != nil {
		i.failed(err, "Failed to send message to agent job", fmt.Sprintf("job %s in project %s", id, project), "it may have arrived")
		return
	}
	i.progress("Message sent to job %s in project %s.", id, project)
	i.await(ctx, job, wait.Messaged)
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

// failed reports a prompt without an accepted response: where it was sent, and what
// may have happened if it arrived.
func (i invocation) failed(err error, summary, target, mayHave string) {
	if mayHaveArrived(err) {
		i.resp.Diagnostics.AddError(summary, wording.Paragraphs(
			fmt.Sprintf("The prompt was sent to %s, but no response shows its outcome: %s. It is not sent again automatically.", target, mayHave), cause(err),
			"Check the service's dashboard before you run the action again, which sends the prompt again."))
		return
	}
	i.resp.Diagnostics.AddError(summary, wording.Paragraphs(notAccepted(err, target)+", so the prompt had no effect.", cause(err), "Run the action again to send the prompt."))
}
