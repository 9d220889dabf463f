// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/action/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/escape"
	"github.com/agentjobs/terraform-provider-agent/internal/validate"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// progressInterval is how often an action says that its job is still active.
const progressInterval = 10 * time.Second

// jobAction is what the actions have in common.
type jobAction struct{ provider *ProviderData }

func (a *jobAction) Configure(_ context.Context, req action.ConfigureRequest, _ *action.ConfigureResponse) {
	a.provider, _ = req.ProviderData.(*ProviderData)
}

func (a *jobAction) ValidateConfig(ctx context.Context, req action.ValidateConfigRequest, resp *action.ValidateConfigResponse) {
	checkTimeouts(ctx, req.Config, &resp.Diagnostics, "invoke")
}

// ModifyPlan lets a plan fail already when no project is named.
func (a *jobAction) ModifyPlan(ctx context.Context, req action.ModifyPlanRequest, resp *action.ModifyPlanResponse) {
	var project types.String
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("project_id"), &project)...)
	a.provider.projectOr(project, &resp.Diagnostics)
}

// actionModel are the arguments that the actions share.
type actionModel struct {
	Prompt    types.String   `tfsdk:"prompt"`
	ProjectID types.String   `tfsdk:"project_id"`
	Wait      types.Object   `tfsdk:"wait"`
	Timeouts  timeouts.Value `tfsdk:"timeouts"`
}

// actionAttributes are those of actionModel, in the words of one action.
func actionAttributes(ctx context.Context, prompt, projectID string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"prompt": schema.StringAttribute{
			Required:            true,
			MarkdownDescription: prompt + " Plans show it and saved plans hold it; no state does.",
			Validators:          []validator.String{validPrompt()},
		},
		"project_id": schema.StringAttribute{
			Optional:            true,
			MarkdownDescription: projectID + " Default: the provider's `project_id`.",
			Validators:          []validator.String{validate.ID()},
		},
		"wait": schema.SingleNestedAttribute{
			Optional:            true,
			MarkdownDescription: "Whether to wait until the job finishes, and what its outcome does to the run.",
			Attributes: map[string]schema.Attribute{
				"enabled": schema.BoolAttribute{
					Optional: true,
					MarkdownDescription: "Wait until the job finishes, with a line of progress every ten seconds. Default: `true`. " +
						"With `false` the action completes as soon as the service has accepted the prompt.",
				},
				"on_failure": schema.StringAttribute{
					Optional:            true,
					MarkdownDescription: "What to do when the job fails: `error` fails the action, `warn` completes it with a warning. Default: `error`.",
					Validators:          []validator.String{stringvalidator.OneOf(onError, onWarn)},
				},
				"on_timeout": schema.StringAttribute{
					Optional: true,
					MarkdownDescription: "What to do when waiting stops before the job finishes: the timeout expires, the key is rejected, or the service cannot be reached. " +
						"`error` fails the action, `warn` completes it with a warning. The job keeps running. Default: `error`.",
					Validators: []validator.String{stringvalidator.OneOf(onError, onWarn)},
				},
			},
		},
		"timeouts": timeouts.AttributesWithOpts(ctx, timeouts.Opts{
			InvokeDescription: "Longest time to send the prompt and wait for the job, including pauses for the service's rate limit. Default: `60m`.",
		}),
	}
}

// invocation is one run of an action, its arguments read.
type invocation struct {
	provider  *ProviderData
	projectID string
	prompt    string
	options   waitOptions
	timeout   time.Duration
	resp      *action.InvokeResponse
}

// begin reads the arguments; ok is false when the response holds an error.
func (a *jobAction) begin(ctx context.Context, config actionModel, resp *action.InvokeResponse) (_ invocation, ok bool) {
	if resp.Diagnostics.HasError() || !a.provider.usable(&resp.Diagnostics) {
		return invocation{}, false
	}
	options, diags := readWait(ctx, config.Wait, waitOptions{enabled: true, onFailure: onError, onTimeout: onError})
	resp.Diagnostics.Append(diags...)
	timeout, diags := config.Timeouts.Invoke(ctx, defaultJobTimeout)
	resp.Diagnostics.Append(diags...)
	project := a.provider.projectOr(config.ProjectID, &resp.Diagnostics)
	return invocation{
		provider: a.provider, projectID: project.ValueString(), prompt: config.Prompt.ValueString(),
		options: options, timeout: timeout, resp: resp,
	}, !resp.Diagnostics.HasError()
}

// progress shows a line at once. Only the goroutine of the invocation may call it.
func (i invocation) progress(format string, args ...any) {
	i.resp.SendProgress(action.InvokeProgressEvent{Message: fmt.Sprintf(format, args...)})
}

// follow waits for the end of the job that has just taken the prompt.
func (i invocation) follow(ctx context.Context, taken *agentapi.Job, event wait.Event) {
	i.provider.recent.add(i.projectID, taken.ID, event)
	if !i.options.enabled {
		return
	}
	start := time.Now()
	status, said := agentapi.StatusActive, start
	request := i.provider.recent.request(i.projectID, taken.ID)
	request.Progress = func(job *agentapi.Job, age time.Duration) {
		// An end may be the one from before a message: only Wait knows.
		if job.Status.Terminal() || job.Status == status && time.Since(said) < progressInterval {
			return
		}
		status, said = job.Status, time.Now()
		i.progress("Job %s is %s (%s elapsed).", job.ID, escape.Printable(string(status)), age.Round(time.Second))
	}
	record, err := i.provider.Waiter.Wait(ctx, request)
	if record == nil {
		record = taken
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
		i.progress("Job %s ended as %s (%s elapsed). %s", record.ID, record.Status, time.Since(start).Round(time.Second), link)
	}
	end := waitOutcome{job: job, err: err, options: i.options}
	end.report(&i.resp.Diagnostics,
		fmt.Sprintf("Terraform keeps no record of it. To follow it, read job %s of project %s with the data source agent_job, or look at the service. "+
			"Running the action again sends the prompt again.", taken.ID, i.projectID),
		"Running the action again sends the prompt again.")
}

// failed words a prompt that the service did not take. The target is what it
// was for, and mayHave what has happened if it was taken.
func (i invocation) failed(err error, summary, target, mayHave string) {
	var first, next string
	switch {
	case errors.Is(err, agentapi.ErrUnknownOutcome):
		first = fmt.Sprintf("The prompt was sent to %s, but no answer tells its outcome: %s. It will not be sent again by itself.", target, mayHave)
		next = "Look there before you run the action again, because that sends the prompt again."
	case errors.Is(err, agentapi.ErrNotSent):
		first, next = fmt.Sprintf("Nothing was sent to %s.", target), "Running the action again sends the prompt."
	default:
		first = fmt.Sprintf("The service refused the prompt for %s, so it has had no effect.", target)
	}
	i.resp.Diagnostics.AddError(summary, wording.Paragraphs(first, cause(err), next))
}
