// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/validate"
	"github.com/agentjobs/terraform-provider-agent/internal/wait"
)

var (
	_ action.ActionWithConfigure      = (*sendMessageAction)(nil)
	_ action.ActionWithModifyPlan     = (*sendMessageAction)(nil)
	_ action.ActionWithValidateConfig = (*sendMessageAction)(nil)
)

// sendMessageAction sends a follow-up prompt to a job, whoever started it.
type sendMessageAction struct{ jobAction }

// NewSendMessageAction returns the action agent_send_message.
func NewSendMessageAction() action.Action { return &sendMessageAction{} }

type sendMessageModel struct {
	ID types.String `tfsdk:"id"`
	actionModel
}

func (a *sendMessageAction) Metadata(_ context.Context, req action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_send_message"
}

func (a *sendMessageAction) Schema(ctx context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	attributes := actionAttributes(ctx, "Further instructions for the agent.", "Project that the job belongs to.")
	attributes["id"] = schema.StringAttribute{
		Required:            true,
		MarkdownDescription: "Id of the job to send the message to.",
		Validators:          []validator.String{validate.ID()},
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Sends a follow-up message to a job, whoever started it, and waits until the job finishes again. " +
			"Needs Terraform 1.14 or later.\n\n" +
			"Each invocation sends the message once. For a job of the resource `agent_job`, changing its `prompt` sends a message too, " +
			"and the state has the outcome.",
		Attributes: attributes,
	}
}

func (a *sendMessageAction) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	defer recovered("sending of a message, which may have arrived: look at the service before you run the action again", &resp.Diagnostics)
	var config sendMessageModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	run, ok := a.begin(ctx, config.actionModel, resp)
	if !ok {
		return
	}
	if err := a.provider.Limits.send(messages); err != nil {
		resp.Diagnostics.AddError(err.diagnostic())
		return
	}
	ctx, cancel := context.WithTimeout(a.provider.Mask(ctx), run.timeout)
	defer cancel()
	id := config.ID.ValueString()
	job, err := a.provider.Client.SendMessage(ctx, run.projectID, id, run.prompt)
	if err != nil {
		run.failed(err, "Failed to send message to agent job", fmt.Sprintf("job %s in project %s", id, run.projectID), "it may have arrived")
		return
	}
	run.progress("Message sent to job %s in project %s.", id, run.projectID)
	run.follow(ctx, job, wait.Messaged)
}
