// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/check"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// These are shared by resource and actions.
const (
	waitDescription     = "How to wait for the job."
	timeoutsDescription = "How long to wait, such as `90m`. Then the run fails, and the job keeps running."
)

// jobSchema has no RequiresReplace: decide asks for each replacement, because none follows from one value
// alone. Texts are compared without trailing white space, an imported job gets its first name and
// triggers without a replacement, a new prompt replaces a closed job only, and Delete has to know the
// reason.
func jobSchema(ctx context.Context) schema.Schema {
	s := schema.Schema{
		MarkdownDescription: "Sends a prompt to the agent service as a job, and waits until it finishes.\n\n" +
			"The service cannot cancel a job: a destroy removes it from the state, and frees its name.",
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "Name of the job, unique in a project of a state, and not sent. A change starts another job.",
				Validators:          []validator.String{stringvalidator.UTF8LengthBetween(1, 256)},
			},
			"prompt": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Instructions for the agent. Set either this or `prompt_wo`. A change is a message to the same job; a failed " +
					"or archived job is replaced. If a finished job refuses it, that apply fails, and the next starts another. " +
					"Line ends, a byte order mark and trailing white space make no difference.",
				Validators: []validator.String{validPrompt()},
			},
			"prompt_wo": schema.StringAttribute{
				Optional:  true,
				WriteOnly: true,
				MarkdownDescription: "Like `prompt`, but not in the state, nor in the plan if it comes from `file()` or an ephemeral value. " +
					"What is sent is the value in the apply, even if the plan had another one.",
				Validators: []validator.String{validPrompt()},
			},
			"prompt_wo_hash": schema.StringAttribute{
				Computed: true,
				MarkdownDescription: "Hash of the last `prompt_wo` that was sent to the job, salted with the job's id, or null. " +
					"In a plan, it changes if `prompt_wo` does.",
			},
			"project_id": schema.StringAttribute{
				Optional: true,
				Computed: true,
				MarkdownDescription: "Project of the job. Default: the provider's `project_id` at creation. " +
					"A change here starts another job; a change in the provider block does not.",
				Validators: []validator.String{check.ValidID()},
			},
			"id": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "Id of the job.",
			},
			"status": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "`completed`, `failed` or `archived`. Anything else, such as `active`, is unfinished.",
			},
			"source": schema.SingleNestedAttribute{
				Computed:            true,
				MarkdownDescription: "Where the agent works, or null.",
				Attributes: map[string]schema.Attribute{
					"repository": schema.StringAttribute{Computed: true, MarkdownDescription: "URL of the repository that the agent edits."},
					"ref":        schema.StringAttribute{Computed: true, MarkdownDescription: "Git reference, such as a branch, or null."},
				},
			},
			"model": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "AI model of the job, or null.",
			},
			"pr_link": schema.StringAttribute{
				Computed: true,
				MarkdownDescription: "URL of the pull request. Null if the job is active or opened none, or if the link is no plain URL. " +
					"During a message it may still be the earlier link.",
			},
			"created_at": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "When the job was created (ISO 8601).",
			},
			"archived_at": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "When the job was archived, or null.",
			},
			"messages": schema.Int64Attribute{
				Computed: true,
				MarkdownDescription: "Number of messages that this resource has sent to the job. " +
					"A plan shows the one that its apply sends or finds sent: `0 -> 1`.",
			},
		},
		Blocks: map[string]schema.Block{
			"wait": schema.SingleNestedBlock{
				MarkdownDescription: waitDescription,
				Attributes: map[string]schema.Attribute{
					"enabled": schema.BoolAttribute{
						Optional: true,
						MarkdownDescription: "Wait until the job finishes. Default: `true`. With `false`, a run succeeds once the prompt is " +
							"accepted.",
					},
					"on_failure": schema.StringAttribute{
						Optional: true,
						MarkdownDescription: "When the job fails, `error` fails each apply until there is another job; `retry` fails the run, and the " +
							"next apply starts another job; `warn` keeps the failed job. A job that was archived without a link, before any run saw it " +
							"complete, counts as failed, but is not retried. Default: `error`, or with `enabled = false` a warning in each plan.",
						Validators: []validator.String{stringvalidator.OneOf(onError, onRetry, onWarn)},
					},
				},
			},
		},
	}
	limits := timeouts.Block(ctx, timeouts.Opts{
		Create:            true,
		Update:            true,
		CreateDescription: "Maximum time of a create, pauses for the rate limit included. Default: `60m`.",
		UpdateDescription: "Maximum time of a message, or of a resumed wait. Default: `60m`.",
	})
	if block, ok := limits.(schema.SingleNestedBlock); ok { // always: the library describes all but this
		block.MarkdownDescription = timeoutsDescription
		limits = block
	}
	s.Blocks["timeouts"] = limits
	for _, a := range new(arguments).all() {
		s.Attributes[a.name] = a.attribute
	}
	return s
}

func jobIdentitySchema() identityschema.Schema {
	return identityschema.Schema{
		Attributes: map[string]identityschema.Attribute{
			"project_id": identityschema.StringAttribute{
				OptionalForImport: true,
				Description:       "Project of the job. Default: the provider's project_id.",
			},
			"id": identityschema.StringAttribute{RequiredForImport: true, Description: "Id of the job."},
		},
	}
}

// checkTimeouts refuses timeouts that are zero or negative. Invalid durations are
// refused by the attributes themselves.
func checkTimeouts(ctx context.Context, config tfsdk.Config, diags *diag.Diagnostics, names ...string) {
	for _, name := range names {
		var text types.String
		at := path.Root("timeouts").AtName(name)
		diags.Append(config.GetAttribute(ctx, at, &text)...)
		if d, err := time.ParseDuration(text.ValueString()); err == nil && d <= 0 {
			check.ErrorAt(diags, at, wording.InvalidDuration.Because(fmt.Errorf(`%s must be greater than zero, for example "30m"`, d)))
		}
	}
}

// validPrompt refuses what the service could not use as an instruction.
func validPrompt() validator.String {
	return check.Rule{
		Summary: wording.InvalidPrompt,
		Accepts: "not empty or only white space, valid UTF-8 without NUL",
		Check:   checkPrompt,
	}
}
