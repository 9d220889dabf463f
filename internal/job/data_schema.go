// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/datasource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	resourceschema "github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/agentjobs/terraform-provider-agent/internal/validate"
)

func jobDataSchema(ctx context.Context) schema.Schema {
	attributes := map[string]schema.Attribute{
		"id": schema.StringAttribute{
			Required:            true,
			MarkdownDescription: "Id of the job.",
			Validators:          []validator.String{validate.ID()},
		},
		"project_id": schema.StringAttribute{
			Optional:            true,
			Computed:            true,
			MarkdownDescription: "Project that the job belongs to. Default: the provider's `project_id`.",
			Validators:          []validator.String{validate.ID()},
		},
		"wait": schema.SingleNestedAttribute{
			Optional: true,
			MarkdownDescription: "Whether to wait for the end of the job, and what its outcome does to the run. " +
				"Without a wait the job is read once, and whatever its status, reading it succeeds.",
			Attributes: map[string]schema.Attribute{
				"enabled": schema.BoolAttribute{
					Optional: true,
					MarkdownDescription: "Wait until the job has ended. Default: `false`, because data sources are read while Terraform plans: " +
						"the wait for a job that is known by then holds up the plan, and every later one while the job is active.",
				},
				"on_failure": schema.StringAttribute{
					Optional: true,
					MarkdownDescription: "What a job that ends as `failed` does: `error` fails the plan or apply, each time until the job is another one; " +
						"`warn` goes on. Only with `enabled`. Default: `error`.",
					Validators: []validator.String{stringvalidator.OneOf(onError, onWarn)},
				},
				"on_timeout": schema.StringAttribute{
					Optional: true,
					MarkdownDescription: "What a wait does that ends before its job, because of `timeouts`, the key, or a service that cannot be reached: " +
						"`error` fails the plan or apply; `warn` goes on with the job as it was last seen, if it was. Only with `enabled`. Default: `error`.",
					Validators: []validator.String{stringvalidator.OneOf(onError, onWarn)},
				},
			},
		},
		"timeouts": timeouts.AttributesWithOpts(ctx, timeouts.Opts{
			ReadDescription: "Longest time to read the job and, with `wait`, to wait for its end. Default: `60m` with `wait`, `60s` without.",
		}),
	}
	// The record is that of the resource, in the same words.
	for name, attribute := range jobSchema(ctx).Attributes {
		if _, own := attributes[name]; own || !attribute.IsComputed() {
			continue
		}
		attributes[name] = computed(attribute)
	}
	return schema.Schema{
		MarkdownDescription: "Reads a job of the agent, whoever started it, and waits for its end when asked to.\n\n" +
			"With `wait = { enabled = false }` on the resource `agent_job` and a wait here, a run has two steps: the resource ends once the service has taken the prompt, " +
			"and the wait follows.",
		Attributes: attributes,
	}
}

// computed makes an attribute that the service gives one of a data source.
func computed(attribute resourceschema.Attribute) schema.Attribute {
	object, ok := attribute.(resourceschema.SingleNestedAttribute)
	if !ok {
		return schema.StringAttribute{Computed: true, MarkdownDescription: attribute.GetMarkdownDescription()}
	}
	inner := map[string]schema.Attribute{}
	for name, attribute := range object.Attributes {
		inner[name] = computed(attribute)
	}
	return schema.SingleNestedAttribute{Computed: true, MarkdownDescription: object.MarkdownDescription, Attributes: inner}
}
