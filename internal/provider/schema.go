// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/check"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/place"
)

func providerSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "Runs jobs of a documentation agent, and returns the links of their pull requests.",
		Attributes: map[string]schema.Attribute{
			"base_url": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "URL of the agent service, such as `https://api.example.com`. " +
					"Required here or as `AGENT_BASE_URL`. If both are set, they must be the same, unless `admin_key` is set too. " +
					"`http://` is for loopback addresses only.",
				Validators: []validator.String{validBaseURL()},
			},
			"admin_key": schema.StringAttribute{
				Optional:  true,
				Sensitive: true,
				MarkdownDescription: "Admin API key of the agent service. Required here or as `AGENT_ADMIN_KEY`. " +
					"Sent to `base_url` only and never stored in the state.",
				Validators: []validator.String{validKey()},
			},
			"project_id": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Project where none is named. Default: `AGENT_PROJECT_ID`. Jobs in the state keep their project.",
				Validators:          []validator.String{check.ValidID()},
			},
			"request_timeout": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Maximum duration of an HTTP request, at least `1s`. Default: `60s`.",
				Validators:          []validator.String{validDuration(shortestRequestTimeout)},
			},
			"max_new_jobs": schema.Int64Attribute{
				Optional: true,
				MarkdownDescription: "Maximum number of jobs that one run may start with this provider block. " +
					"Default: `AGENT_MAX_NEW_JOBS`, or else `20`. Of both, the lower one applies.",
				Validators: []validator.Int64{int64validator.AtLeast(0)},
			},
			"max_messages": schema.Int64Attribute{
				Optional:            true,
				MarkdownDescription: "Like `max_new_jobs`, for follow-up messages. Default: `AGENT_MAX_MESSAGES`, or else `20`.",
				Validators:          []validator.Int64{int64validator.AtLeast(0)},
			},
			"ca_certificates_pem": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Additional trusted CA certificates, such as `file(\"ca.pem\")`.",
				Validators:          []validator.String{validCertificates()},
			},
		},
		Blocks: map[string]schema.Block{
			"poll": schema.SingleNestedBlock{
				MarkdownDescription: "The interval of polls is a tenth of the time waited so far, within these bounds.",
				Attributes: map[string]schema.Attribute{
					"min_interval": schema.StringAttribute{
						Optional:            true,
						MarkdownDescription: "Minimum interval, at least `10ms`. Default: `800ms`.",
						Validators:          []validator.String{validDuration(shortestPollInterval)},
					},
					"max_interval": schema.StringAttribute{
						Optional:            true,
						MarkdownDescription: "Maximum interval, at least `min_interval`. Default: `10s`.",
						Validators:          []validator.String{validDuration(shortestPollInterval)},
					},
					"max_per_second": schema.Int64Attribute{
						Optional: true,
						MarkdownDescription: "Maximum polls per second for all jobs together, at least 1. " +
							"Default: `100`.",
						Validators: []validator.Int64{int64validator.AtLeast(1)},
					},
				},
			},
			"journal": schema.SingleNestedBlock{
				MarkdownDescription: "The records by which an apply finds jobs that the state does not have.",
				Attributes: map[string]schema.Attribute{
					"enabled": schema.BoolAttribute{
						Optional:            true,
						MarkdownDescription: "Default: `true`. Without a journal, the apply after a broken run or a lost state may send all prompts again.",
					},
					"url": schema.StringAttribute{
						Optional: true,
						MarkdownDescription: "[Where to keep it]" +
							"(https://github.com/agentjobs/terraform-provider-agent/blob/main/docs/guides/journal.md#name-another-place): " +
							"the absolute path of an existing folder, or a URL such as `" + strings.Join(place.Examples(), "`, `") + "`. " +
							"Default: `AGENT_JOURNAL_URL`, or else beside the state, or in the working directory.",
					},
					"forget": schema.ListAttribute{
						Optional:    true,
						ElementType: types.StringType,
						Validators:  []validator.List{listvalidator.NoNullValues(), listvalidator.ValueStringsAre(validRequestID())},
						MarkdownDescription: "Ids of requests to give up, as errors show them: an apply **sends these prompts again**. " +
							"`AGENT_JOURNAL_FORGET` adds ids, separated by commas.",
					},
				},
			},
		},
	}
}
