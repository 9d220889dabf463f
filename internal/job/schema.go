// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/validate"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// What a job that fails, or a wait that ends early, does to the run.
const (
	onError = "error"
	onWarn  = "warn"
)

func jobSchema(ctx context.Context) schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A job of the agent: a prompt is sent to the service, which works on it in the background and opens a " +
			"pull request when files were changed. Terraform waits for the end.\n\n" +
			"The service cannot cancel or delete a job: destroying the resource forgets it.",
		Attributes: map[string]schema.Attribute{
			"prompt": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Instructions for the agent; either this or `prompt_wo` is required. A change is sent as a follow-up message to the same job. " +
					"A job that failed or was archived cannot accept messages, so a new job is started, which does not see the earlier prompts. " +
					"After an import the text is recorded without sending anything.",
				Validators: []validator.String{validPrompt()},
			},
			"prompt_wo": schema.StringAttribute{
				Optional:  true,
				WriteOnly: true,
				MarkdownDescription: "Instructions for the agent, as in `prompt`, but in no state: for prompts that are long or confidential. " +
					"The value may be ephemeral. It is in no plan file either if it comes from `file()` or an ephemeral value. " +
					"The provider detects a change by a salted hash; moving a text from `prompt` to `prompt_wo`, or back, sends nothing. " +
					"The value must be the same while planning and applying. If it is not known while planning, it is sent only if it turns out to be new, " +
					"and apply fails if the job cannot accept messages. Requires Terraform or OpenTofu 1.11.",
				Validators: []validator.String{validPrompt()},
			},
			"triggers": schema.MapAttribute{
				Optional:    true,
				ElementType: types.StringType,
				MarkdownDescription: "Any values; when one of them changes, a new job is started with the prompt, " +
					"for example `{ spec = filesha256(\"openapi.json\") }`.",
			},
			"project_id": schema.StringAttribute{
				Optional: true,
				Computed: true,
				MarkdownDescription: "Project that the job belongs to. Default: the provider's `project_id` when the job is created. " +
					"Changing it here starts a new job there; a changed default leaves existing jobs where they are.",
				Validators: []validator.String{validate.ID()},
			},
			"wait": schema.SingleNestedAttribute{
				Optional:            true,
				MarkdownDescription: "Whether to wait for the end of the job, and what its outcome does to the run.",
				Attributes: map[string]schema.Attribute{
					"enabled": schema.BoolAttribute{
						Optional: true,
						MarkdownDescription: "Wait until the job has ended. Default: `true`. " +
							"With `false` the attributes show the job as it was last seen; a later plan refreshes them.",
					},
					"on_failure": schema.StringAttribute{
						Optional: true,
						MarkdownDescription: "What a job that ends as `failed` does: `error` fails the run, and when the job was just created " +
							"the next apply starts a new one; `warn` keeps it. Default: `error`.",
						Validators: []validator.String{stringvalidator.OneOf(onError, onWarn)},
					},
					"on_timeout": schema.StringAttribute{
						Optional: true,
						MarkdownDescription: "What a wait does that ends before its job, because of `timeouts`, the key, or a service that cannot be reached: " +
							"`warn` keeps the job, and the next apply waits on; `error` fails the run, and when the job was just created " +
							"Terraform taints it, so that **the next apply starts a second job**. " +
							"Default: `warn` on create, `error` on update, where it taints nothing.",
						Validators: []validator.String{stringvalidator.OneOf(onError, onWarn)},
					},
				},
			},
			"timeouts": timeouts.Attributes(ctx, timeouts.Opts{
				Create:            true,
				Update:            true,
				CreateDescription: "Longest time to start a job and wait for its end, pauses for the service's rate limit included. Default: `60m`.",
				UpdateDescription: "Longest time to send a follow-up message and wait for the end of the job, or to wait on after an earlier run. Default: `60m`.",
			}),
			"id": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "Id of the job, given by the service.",
			},
			"status": schema.StringAttribute{
				Computed: true,
				MarkdownDescription: "Status of the job: `active` while the agent works, `completed`, `archived` or `failed` at the end. " +
					"Other values are shown as the service sends them and count as not ended.",
			},
			"source": schema.SingleNestedAttribute{
				Computed:            true,
				MarkdownDescription: "Where the agent works. Null when the service does not say.",
				Attributes: map[string]schema.Attribute{
					"repository": schema.StringAttribute{Computed: true, MarkdownDescription: "Repository that the agent edits."},
					"ref":        schema.StringAttribute{Computed: true, MarkdownDescription: "Git reference, for example a branch; null when there is none."},
				},
			},
			"model": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "AI model that works on the job. Null when the service does not say.",
			},
			"pr_link": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "URL of the pull request. Null while the job is active, and when it changed no files.",
			},
			"created_at": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "When the job was created, as the service sent it (ISO 8601).",
			},
			"archived_at": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "When the job was archived, as the service sent it (ISO 8601); null when it was not.",
			},
		},
	}
}

func jobIdentitySchema() identityschema.Schema {
	return identityschema.Schema{
		Attributes: map[string]identityschema.Attribute{
			"project_id": identityschema.StringAttribute{RequiredForImport: true, Description: "Project that the job belongs to."},
			"id":         identityschema.StringAttribute{RequiredForImport: true, Description: "Id of the job."},
		},
	}
}

// validPrompt refuses what the service could not use as an instruction.
func validPrompt() validator.String {
	return validate.Rule{
		Summary: "Invalid prompt",
		Accepts: "not empty or only white space, valid UTF-8 without NUL",
		Check:   func(text string) string { return wording.Sentence(checkPrompt(text)) },
	}
}

func checkPrompt(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return errors.New("the prompt is empty: say what the agent shall do")
	case strings.ContainsRune(text, 0):
		return errors.New("the prompt holds a NUL character")
	case !utf8.ValidString(text):
		return errors.New("the prompt is not valid UTF-8")
	}
	return nil
}

// checkTimeouts refuses timeouts that leave no time at all. Texts that are no
// duration are refused by the attributes themselves.
func checkTimeouts(ctx context.Context, config tfsdk.Config, diags *diag.Diagnostics, names ...string) {
	for _, name := range names {
		var text types.String
		at := path.Root("timeouts").AtName(name)
		diags.Append(config.GetAttribute(ctx, at, &text)...)
		if d, err := time.ParseDuration(text.ValueString()); err == nil && d <= 0 {
			diags.AddAttributeError(at, "Impossible timeout",
				fmt.Sprintf("%s leaves no time for anything: give a duration above zero, for example \"30m\".", wording.Quote(text.ValueString())))
		}
	}
}
