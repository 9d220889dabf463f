// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/action/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/agentjobs/terraform-provider-agent/internal/validate"
)

func startJobSchema(ctx context.Context) schema.Schema {
	return schema.Schema{
		MarkdownDescription: "Starts a job without keeping it in the state, for example whenever a resource changes, " +
			"and waits until it finishes. Requires Terraform 1.14 or later.\n\n" +
			"Each invocation starts one job. " +
			"Use the resource `agent_job` if other resources need the outcome, or later prompts continue the job.",
		Attributes: actionAttributes("Instructions for the agent.", "Project of the new job."),
		Blocks:     actionBlocks(ctx),
	}
}

func sendMessageSchema(ctx context.Context) schema.Schema {
	attributes := actionAttributes("Further instructions for the agent.", "Project of the job.")
	attributes["job_id"] = schema.StringAttribute{
		Required:            true,
		MarkdownDescription: "Id of the job.",
		Validators:          []validator.String{validate.ID()},
	}
	return schema.Schema{
		MarkdownDescription: "Sends a follow-up message to a job, whoever started it, and waits until the job finishes again. " +
			"Requires Terraform 1.14 or later.\n\n" +
			"Each invocation sends one message. To keep the outcome in the state, change the `prompt` of an `agent_job` instead.",
		Attributes: attributes,
		Blocks:     actionBlocks(ctx),
	}
}

// actionAttributes describes actionModel in the words of one action.
func actionAttributes(prompt, projectID string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"prompt": schema.StringAttribute{
			Required:            true,
			MarkdownDescription: prompt + " Shown in plans and stored in saved plans, but not in the state.",
			Validators:          []validator.String{validPrompt()},
		},
		"project_id": schema.StringAttribute{
			Optional:            true,
			MarkdownDescription: projectID + " Default: the provider's `project_id`.",
			Validators:          []validator.String{validate.ID()},
		},
	}
}

func actionBlocks(ctx context.Context) map[string]schema.Block {
	return map[string]schema.Block{
		"wait": schema.SingleNestedBlock{
			MarkdownDescription: waitDescription,
			Attributes: map[string]schema.Attribute{
				"enabled": schema.BoolAttribute{
					Optional: true,
					MarkdownDescription: "Wait until the job finishes. Default: `true`. " +
						"With `false`, the action completes as soon as the service accepts the prompt.",
				},
				"on_failure": schema.StringAttribute{
					Optional:            true,
					MarkdownDescription: "What to do when the job fails: `error` fails the action, `warn` completes it with a warning. Default: `error`.",
					Validators:          []validator.String{stringvalidator.OneOf(onError, onWarn)},
				},
				"on_timeout": schema.StringAttribute{
					Optional: true,
					MarkdownDescription: timeoutDescription +
						"`error` fails the action, `warn` completes it with a warning. The job keeps running. Default: `error`.",
					Validators: []validator.String{stringvalidator.OneOf(onError, onWarn)},
				},
			},
		},
		"timeouts": timeouts.BlockWithOpts(ctx, timeouts.Opts{
			InvokeDescription: "Maximum time to send the prompt and wait for the job, including pauses for the service's rate limit. Default: `60m`.",
		}),
	}
}
