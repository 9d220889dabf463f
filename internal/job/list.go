// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

var _ list.ListResourceWithConfigure = (*jobList)(nil)

type jobList struct{ jobResource }

// NewList returns the list resource agent_job.
func NewList() list.ListResource { return &jobList{jobResource{provider: unconfigured()}} }

func (l *jobList) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse) {
	resp.Schema = schema.Schema{MarkdownDescription: "Lists the jobs of the state's journal with their names: " +
		"the last one of each name, also if its resource is gone. " +
		"Creates whose outcome is unknown are warnings. Nothing is sent."}
}

func (l *jobList) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var diags diag.Diagnostics
	var jobs []listed
	if l.provider.usable(&diags) {
		ctx = l.provider.Mask(ctx)
		jobs = l.find(ctx, &diags)
	}
	stream.Results = func(push func(list.ListResult) bool) {
		// First, because the CLI stops at its limit.
		if len(diags) > 0 && !push(list.ListResult{Diagnostics: diags}) {
			return
		}
		for _, job := range jobs {
			if !push(l.result(ctx, req, job)) {
				return
			}
		}
	}
}

// listed is a job as the journal has it.
type listed struct {
	project, name, id string
	started           time.Time
}

// find returns the jobs to list, and warns once of all requests without a known outcome: the CLI groups equal warnings.
func (l *jobList) find(ctx context.Context, diags *diag.Diagnostics) (jobs []listed) {
	j := l.provider.Sender.Journal
	if !j.Keeps() {
		addError(diags, wording.NotListed.Of(wording.Job{}, nil))
	}
	records, err := j.All(ctx)
	if err != nil {
		addError(diags, wording.JournalUnusable(err))
	}
	var unknown, pending []wording.Unanswered
	for _, r := range records {
		if r.Job != "" {
			jobs = append(jobs, listed{r.Project, r.Name, r.Job, r.Started})
		}
		if r.Claim != nil {
			pending = append(pending, wording.Unanswered{Project: r.Project, Name: r.Name, Request: r.Claim.ID, SentAt: r.Claim.SentAt})
		}
		if r.IsUnknownCreate() {
			unknown = append(unknown, wording.Unanswered{Project: r.Project, Name: r.Name, Request: r.Last.ID, SentAt: r.Last.SentAt})
		}
	}
	if len(pending) > 0 {
		addWarning(diags, wording.ListedPending(pending))
	}
	if len(unknown) > 0 {
		addWarning(diags, wording.ListedUnknown(unknown))
	}
	return jobs
}

// result is a job as the journal has it and, if requested, as the service shows it now.
func (l *jobList) result(ctx context.Context, req list.ListRequest, from listed) list.ListResult {
	result := req.NewListResult(ctx)
	result.DisplayName = wording.ListedName(from.name, from.id, from.started)
	var job jobModel
	result.Diagnostics.Append(result.Resource.SetAttribute(ctx, path.Root("id"), from.id)...)
	result.Diagnostics.Append(result.Resource.Get(ctx, &job)...)
	job.ProjectID, job.Name = types.StringValue(from.project), types.StringValue(from.name)
	result.Diagnostics.Append(result.Identity.Set(ctx, jobIdentity{job.ProjectID, job.ID})...)
	if !req.IncludeResource {
		return result
	}
	if shown, err := l.provider.Sender.Client.ReadJob(ctx, from.project, from.id); err == nil {
		result.Diagnostics.Append(job.set(shown)...)
	} else {
		addWarning(&result.Diagnostics, wording.ListedWithoutRecord.Of(job.facts(), err))
	}
	result.Diagnostics.Append(result.Resource.Set(ctx, &job)...)
	return result
}
