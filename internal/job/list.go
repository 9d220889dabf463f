// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

var _ list.ListResourceWithConfigure = (*jobList)(nil)

type jobList struct{ jobResource }

// NewList returns the list resource agent_job.
func NewList() list.ListResource { return &jobList{jobResource{provider: unconfigured()}} }

func (l *jobList) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse) {
	resp.Schema = schema.Schema{MarkdownDescription: "Lists the jobs that earlier runs have started and no later plan has read in the " +
		"state, as the journal shows them. Creates whose outcome is unknown are warnings. Nothing is sent."}
}

func (l *jobList) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var diags diag.Diagnostics
	var jobs []*journal.Earlier
	if l.provider.usable(&diags) {
		ctx = l.provider.Mask(ctx)
		jobs = l.find(ctx, &diags)
	}
	stream.Results = func(push func(list.ListResult) bool) {
		// First, because the CLI stops at its limit.
		for more := len(diags) == 0 || push(list.ListResult{Diagnostics: diags}); more && len(jobs) > 0; jobs = jobs[1:] {
			more = push(l.result(ctx, req, jobs[0]))
		}
	}
}

// find returns the jobs to list, and warns once of all requests without a known outcome: the CLI groups equal warnings.
func (l *jobList) find(ctx context.Context, diags *diag.Diagnostics) (jobs []*journal.Earlier) {
	j := l.provider.Sender.Journal
	if !j.Keeps() {
		addError(diags, wording.NotListed.Of(wording.Job{}, nil))
	}
	found, err := j.Unseen(ctx)
	if err != nil {
		addError(diags, wording.JournalUnusable(err))
	}
	var unknown, pending []*journal.Earlier
	for _, e := range found {
		switch e.Status {
		case store.Accepted:
			jobs = append(jobs, e)
		case store.Unknown:
			unknown = append(unknown, e)
		case store.Pending:
			pending = append(pending, e)
		}
	}
	if len(pending) > 0 {
		addWarning(diags, wording.ListedPending(pending))
	}
	if len(unknown) > 0 {
		addWarning(diags, wording.ListedUnknown(unknown))
	}
	if len(jobs) > 0 {
		addWarning(diags, wording.ListedJobs(len(jobs)))
	}
	return jobs
}

// result is a job as the journal has it and, if requested, as the service shows it now.
func (l *jobList) result(ctx context.Context, req list.ListRequest, e *journal.Earlier) list.ListResult {
	result := req.NewListResult(ctx)
	result.DisplayName = wording.ListedName(e)
	var job jobModel
	result.Diagnostics.Append(result.Resource.SetAttribute(ctx, path.Root("id"), e.JobID)...)
	result.Diagnostics.Append(result.Resource.Get(ctx, &job)...)
	job.ProjectID = types.StringValue(e.Project)
	if e.JobName != "" { // generated configuration then has it
		job.Name = types.StringValue(e.JobName)
	}
	result.Diagnostics.Append(result.Identity.Set(ctx, jobIdentity{job.ProjectID, job.ID})...)
	if !req.IncludeResource {
		return result
	}
	if record, err := l.provider.Sender.Client.ReadJob(ctx, e.Project, e.JobID); err == nil {
		result.Diagnostics.Append(job.apply(record)...)
	} else {
		addWarning(&result.Diagnostics, wording.ListedWithoutRecord.Of(job.facts(), err))
	}
	result.Diagnostics.Append(result.Resource.Set(ctx, &job)...)
	return result
}
