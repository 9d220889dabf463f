// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/agentjobs/terraform-provider-agent/internal/validate"
)

func providerSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "Runs jobs of an automated documentation agent: posts a prompt, waits for the end, and gives you the link of the pull request.",
		Attributes: map[string]schema.Attribute{
			"base_url": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "URL of the agent service, for example `https://api.example.com`; a path prefix is fine. " +
					"Required here or in the environment variable `AGENT_BASE_URL`: there is no default, because the key is sent there. " +
					"`http://` is accepted for loopback addresses only.",
				Validators: []validator.String{validBaseURL()},
			},
			"admin_key": schema.StringAttribute{
				Optional:  true,
				Sensitive: true,
				MarkdownDescription: "Admin API key of the agent service. Required here or in the environment variable `AGENT_ADMIN_KEY`. " +
					"It is sent to `base_url` only, and never stored in the state; an ephemeral value keeps it out of saved plans too.",
				Validators: []validator.String{validKey()},
			},
			"project_id": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Project for every job that names none of its own. Also from the environment variable `AGENT_PROJECT_ID`. " +
					"Changing it affects new jobs only; existing ones stay in their project.",
				Validators: []validator.String{validate.ID()},
			},
			"request_timeout": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Longest duration of one HTTP request, answer included, for example `30s`. Default: `60s`. " +
					"After an interrupt the answer to a create or message under way is awaited for as long.",
				Validators: []validator.String{validDuration(shortestRequestTimeout)},
			},
			"poll": schema.SingleNestedAttribute{
				Optional: true,
				MarkdownDescription: "How often a job is looked at while Terraform waits for its end. " +
					"The interval is a tenth of the time waited so far, within these bounds.",
				Attributes: map[string]schema.Attribute{
					"min_interval": schema.StringAttribute{
						Optional:            true,
						MarkdownDescription: "Shortest interval, at least `10ms`; the first is twice as long. Default: `800ms`.",
						Validators:          []validator.String{validDuration(shortestPollInterval)},
					},
					"max_interval": schema.StringAttribute{
						Optional:            true,
						MarkdownDescription: "Longest interval, at least `min_interval`. Default: `10s`.",
						Validators:          []validator.String{validDuration(shortestPollInterval)},
					},
					"max_per_second": schema.Int64Attribute{
						Optional:            true,
						MarkdownDescription: "Polls per second of all waits together, at least 1. With more jobs the intervals stretch. Default: `100`.",
						Validators:          []validator.Int64{int64validator.AtLeast(1)},
					},
				},
			},
			"journal": schema.SingleNestedAttribute{
				Optional: true,
				MarkdownDescription: "Record of the requests that were sent, kept until a later run has seen their outcome in the state. " +
					"It lets the next apply take over a job or message that the state does not show, instead of sending it again. It holds hashes, ids and times, never a prompt or a key.",
				Attributes: map[string]schema.Attribute{
					"enabled": schema.BoolAttribute{
						Optional:            true,
						MarkdownDescription: "Keep a journal. Default: `true`.",
					},
					"url": schema.StringAttribute{
						Optional: true,
						MarkdownDescription: "Where to keep the journal: an absolute path, or a bucket of an S3-compatible store such as `s3://ci-state/agent-journal?region=eu-central-1`; " +
							"`endpoint=https://…` names a store other than AWS. Use one path or prefix for each state. " +
							"Also from the environment variable `AGENT_JOURNAL_URL`. Default: the folder `agent` in Terraform's data folder (`.terraform`), " +
							"which a run that ends cleanly empties. A journal named here outlives the disk and the end of the run, and one that cannot be used fails creates and messages before they are sent. " +
							"See the [reliability guide](https://registry.terraform.io/providers/agentjobs/agent/latest/docs/guides/reliability).",
					},
				},
			},
			"max_new_jobs": schema.Int64Attribute{
				Optional: true,
				MarkdownDescription: "Maximum number of jobs that one plan or apply may start with this provider configuration; `0` allows none. Default: no limit. " +
					"A plan with more new jobs fails. An apply refuses each job beyond the limit before its prompt is sent, those of actions included. " +
					"Also from the environment variable `AGENT_MAX_NEW_JOBS`; if both are set, the lower one counts. " +
					"See [Limit what one run may start](https://registry.terraform.io/providers/agentjobs/agent/latest/docs/guides/fleets-and-limits#limit-what-one-run-may-start).",
				Validators: []validator.Int64{int64validator.AtLeast(0)},
			},
			"max_messages": schema.Int64Attribute{
				Optional: true,
				MarkdownDescription: "Maximum number of messages that one plan or apply may send to existing jobs with this provider configuration; `0` allows none. Default: no limit. " +
					"It is enforced like `max_new_jobs`. Also from the environment variable `AGENT_MAX_MESSAGES`; if both are set, the lower one counts.",
				Validators: []validator.Int64{int64validator.AtLeast(0)},
			},
			"ca_certificates_pem": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Certificates, in PEM form, of authorities to trust besides those of the system, " +
					"for a service behind a private one: `file(\"ca.pem\")`.",
			},
		},
	}
}
