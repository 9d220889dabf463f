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
			"and waits until it finishes. Needs Terraform 1.14 or later.\n\n" +
			"Each invocation sends the prompt once. It is not sent again if the job fails or the run is interrupted, unless Terraform invokes the action again. " +
			"Use the resource `agent_job` for a job whose outcome other resources need, or that later prompts continue.",
		Attributes: actionAttributes(ctx, "Instructions for the agent.", "Project in which the job is started."),
	}
}

func sendMessageSchema(ctx context.Context) schema.Schema {
	attributes := actionAttributes(ctx, "Further instructions for the agent.", "Project that the job belongs to.")
	attributes["id"] = schema.StringAttribute{
		Required:            true,
		MarkdownDescription: "Id of the job to send the message to.",
		Validators:          []validator.String{validate.ID()},
	}
	return schema.Schema{
		MarkdownDescription: "Sends a follow-up message to a job, whoever started it, and waits until the job finishes again. " +
			"Needs Terraform 1.14 or later.\n\n" +
			"Each invocation sends the message once. For a job of the resource `agent_job`, changing its `prompt` sends a message too, " +
			"and the state has the outcome.",
		Attributes: attributes,
	}
}

// actionAttributes describes actionModel in the words of one action.
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
