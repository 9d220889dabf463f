// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/action/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/agentjobs/terraform-provider-agent/internal/check"
)

func startJobSchema(ctx context.Context) schema.Schema {
	return schema.Schema{
		MarkdownDescription: "Starts a job without keeping it in the state, for example whenever a resource changes, " +
			"and waits until it finishes. Requires Terraform 1.14 or later. If anything needs the outcome, use the resource `agent_job`.",
		Attributes: actionAttributes("Instructions for the agent.", "Project of the new job."),
		Blocks:     actionBlocks(ctx),
	}
}

func sendMessageSchema(ctx context.Context) schema.Schema {
	attributes := actionAttributes("Further instructions for the agent.", "Project of the job.")
	attributes["job_id"] = schema.StringAttribute{
		Required:            true,
		MarkdownDescription: "Id of the job.",
		Validators:          []validator.String{check.ValidID()},
	}
	return schema.Schema{
		MarkdownDescription: "Sends a follow-up message to a job, whoever started it, and waits until the job finishes again. " +
			"Requires Terraform 1.14 or later.",
		Attributes: attributes,
		Blocks:     actionBlocks(ctx),
	}
}

// actionAttributes describes actionModel in the words of one action.
func actionAttributes(prompt, projectID string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"prompt": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: prompt + " Set either this or `prompt_wo`. " +
				"Stored in plans, but not in the state.",
			Validators: []validator.String{validPrompt()},
		},
		"prompt_wo": schema.StringAttribute{
			Optional:  true,
			WriteOnly: true,
			MarkdownDescription: "Like `prompt`, but not shown in plans. An ephemeral value is in no saved plan either, " +
				"but works neither in destroy events nor with `apply -invoke`.",
			Validators: []validator.String{validPrompt()},
		},
		"project_id": schema.StringAttribute{
			Optional:            true,
			MarkdownDescription: projectID + " Default: the provider's `project_id`.",
			Validators:          []validator.String{check.ValidID()},
		},
	}
}

func actionBlocks(ctx context.Context) map[string]schema.Block {
	blocks := map[string]schema.Block{
		"wait": schema.SingleNestedBlock{
			MarkdownDescription: waitDescription,
			Attributes: map[string]schema.Attribute{
				"enabled": schema.BoolAttribute{
					Optional:            true,
					MarkdownDescription: "Wait until the job finishes. Default: `true`.",
				},
				"on_failure": schema.StringAttribute{
					Optional: true,
					MarkdownDescription: "When the job fails, or is archived without a link, `error` fails the action, and `warn` only warns. " +
						"Default: `error`.",
					Validators: []validator.String{stringvalidator.OneOf(onError, onWarn)},
				},
			},
		},
	}
	limits := timeouts.BlockWithOpts(ctx, timeouts.Opts{
		InvokeDescription: "Maximum time, pauses for the rate limit included. Default: `60m`.",
	})
	if block, ok := limits.(schema.SingleNestedBlock); ok {
		block.MarkdownDescription = timeoutsDescription
		limits = block
	}
	blocks["timeouts"] = limits
	return blocks
}
