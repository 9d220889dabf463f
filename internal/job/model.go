// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"regexp"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/check"
	"github.com/agentjobs/terraform-provider-agent/internal/escape"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// defaultJobTimeout is how long a create or update may take when timeouts is not set.
const defaultJobTimeout = 60 * time.Minute

// maxLinkLength bounds the link that is kept in the state.
const maxLinkLength = 2048

// jobModel is a job as the configuration, the plan and the state hold it.
type jobModel struct {
	Name     types.String `tfsdk:"name"`
	Prompt   types.String `tfsdk:"prompt"`
	PromptWO types.String `tfsdk:"prompt_wo"` // from the configuration; null in every plan and state
	// PromptWOHash is that of the last write-only prompt which was sent to the job, or counts as sent.
	PromptWOHash types.String   `tfsdk:"prompt_wo_hash"`
	ProjectID    types.String   `tfsdk:"project_id"`
	Wait         types.Object   `tfsdk:"wait"`
	Timeouts     timeouts.Value `tfsdk:"timeouts"`
	Messages     types.Int64    `tfsdk:"messages"` // that the resource has sent
	arguments
	shownJob
}

// readPlan reads a plan, and what only the configuration holds: the write-only prompt,
// and the project that it names.
func (m *jobModel) readPlan(ctx context.Context, plan tfsdk.Plan, config tfsdk.Config) (projectID types.String, diags diag.Diagnostics) {
	diags.Append(plan.Get(ctx, m)...)
	projectID, more := m.readConfig(ctx, config)
	diags.Append(more...)
	return projectID, diags
}

// readConfig reads what only the configuration holds: see readPlan.
func (m *jobModel) readConfig(ctx context.Context, config tfsdk.Config) (projectID types.String, diags diag.Diagnostics) {
	var prompt types.String
	diags.Append(config.GetAttribute(ctx, path.Root("prompt"), &prompt)...)
	if prompt.IsNull() && !m.Prompt.IsNull() {
		// The configuration has moved the prompt to prompt_wo, but ignore_changes keeps it in the plan.
		// Both together would be refused: see checkPrompts.
		m.PromptWO = types.StringNull()
	} else {
		diags.Append(config.GetAttribute(ctx, path.Root("prompt_wo"), &m.PromptWO)...)
	}
	diags.Append(config.GetAttribute(ctx, path.Root("project_id"), &projectID)...)
	return projectID, diags
}

// withoutWriteOnly is the job as plans and states hold it.
func (m *jobModel) withoutWriteOnly() jobModel {
	job := *m
	job.PromptWO = types.StringNull()
	return job
}

// shownJob holds the attributes that the service returns.
type shownJob struct {
	ID         types.String `tfsdk:"id"`
	Status     types.String `tfsdk:"status"`
	Source     types.Object `tfsdk:"source"`
	Model      types.String `tfsdk:"model"`
	PRLink     types.String `tfsdk:"pr_link"`
	CreatedAt  types.String `tfsdk:"created_at"`
	ArchivedAt types.String `tfsdk:"archived_at"`
}

func (m *jobModel) projectAndName() projectAndName {
	return projectAndName{m.ProjectID.ValueString(), m.Name.ValueString()}
}

// facts are what diagnostics say about the job.
func (m *jobModel) facts() wording.Job {
	return wording.Job{
		ID: m.ID.ValueString(), Project: m.ProjectID.ValueString(), Status: m.Status.ValueString(), PRLink: m.PRLink.ValueString(),
	}
}

// jobIdentity names a job for Terraform's identity of the resource.
type jobIdentity struct {
	ProjectID types.String `tfsdk:"project_id"`
	ID        types.String `tfsdk:"id"`
}

func (r *shownJob) is(status agentapi.Status) bool { return r.Status.ValueString() == string(status) }

// hasFinished reports whether the job had finished when it was last read.
func (r *shownJob) hasFinished() bool { return agentapi.Status(r.Status.ValueString()).Terminal() }

//nolint:gochecknoglobals // never changed
var sourceTypes = map[string]attr.Type{"repository": types.StringType, "ref": types.StringType}

// set writes what a response says of the job into the model. Nothing else does that; but after a
// message, saveOutcome sets the status to active, whatever was read.
func (r *shownJob) set(job *agentapi.Job) diag.Diagnostics {
	var diags diag.Diagnostics
	r.ID = types.StringValue(job.ID)
	switch {
	case job.Status != "":
		r.Status = types.StringValue(escape.Printable(string(job.Status)))
	case r.Status.IsNull() || r.Status.IsUnknown():
		r.Status = types.StringValue(string(agentapi.StatusActive))
	}
	r.Source = types.ObjectNull(sourceTypes)
	if source := job.Source; source != nil {
		r.Source = types.ObjectValueMust(sourceTypes, map[string]attr.Value{
			"repository": printable(source.Repository),
			"ref":        printable(source.Ref),
		})
	}
	r.Model = printable(job.Model)
	r.PRLink = types.StringPointerValue(job.PRLink)
	if job.PRLink != nil && !webLink(*job.PRLink) {
		r.PRLink = types.StringNull()
		check.WarnAt(&diags, path.Root("pr_link"), wording.InvalidLink(job.ID, *job.PRLink))
	}
	if r.CreatedAt.IsNull() || r.CreatedAt.IsUnknown() { // it never changes, and a plan may have promised it
		r.CreatedAt = printable(job.CreatedAt)
	}
	r.ArchivedAt = printable(job.ArchivedAt)
	return diags
}

// markRunUnknown marks what a message or a resumed wait may change as unknown: all that set writes,
// but for the id and a time of creation that is known. So the apply can write what it reads.
func (r *shownJob) markRunUnknown() {
	r.Status, r.PRLink, r.Model, r.ArchivedAt = types.StringUnknown(), types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
	r.Source = types.ObjectUnknown(sourceTypes)
	if r.CreatedAt.IsNull() {
		r.CreatedAt = types.StringUnknown()
	}
}

// printable makes a text of the service safe to show: the CLI prints one with line breaks as it is.
func printable(text *string) types.String {
	if text == nil {
		return types.StringNull()
	}
	return types.StringValue(escape.Printable(*text))
}

// webLink reports whether a link is safe to show, to open, and to write into Markdown and scripts,
// as pipelines do: who reads it sees the host that it leads to, and nothing in it ends a link or a
// word. So it has no user, and only the characters that pull requests of GitHub, GitLab, Bitbucket
// and Azure DevOps need, which spell others as xn-- and %.
func webLink(link string) bool { return len(link) <= maxLinkLength && webURL.MatchString(link) }

var webURL = regexp.MustCompile(`^(?i:https?)://[\w.-]+(?::\d+)?(?:[/?#](?:[\w.~/?#+=-]|%[\dA-Fa-f]{2})*)?$`)
