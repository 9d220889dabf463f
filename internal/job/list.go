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
	var records []*journal.Record
	if l.isReady(req, &diags) {
		ctx = l.provider.Mask(ctx)
		records = l.find(ctx, &diags)
	}
	stream.Results = func(push func(list.ListResult) bool) {
		// Errors and warnings come first, because the CLI stops reading at its limit of results.
		if len(diags) > 0 && !push(list.ListResult{Diagnostics: diags}) {
			return
		}
		for _, r := range records {
			if !push(l.result(ctx, req, r)) {
				return
			}
		}
	}
}

// isReady reports whether the provider has what the query needs: names and ids are in the journal.
func (l *jobList) isReady(req list.ListRequest, diags *diag.Diagnostics) bool {
	if req.IncludeResource || l.provider.Mask == nil {
		return l.provider.checkService(diags)
	}
	return !addMissing(l.provider.Missing.Journal, diags)
}

// find returns the records of the jobs to list, and warns once of all requests without a known
// outcome: the CLI groups equal warnings.
func (l *jobList) find(ctx context.Context, diags *diag.Diagnostics) (found []*journal.Record) {
	j := l.provider.Sender.Journal
	if !j.IsDurable() {
		addError(diags, wording.NotListed.Of(wording.Job{}, nil))
	}
	records, err := j.All(ctx)
	if err != nil {
		addError(diags, wording.JournalUnusable(err))
	}
	var unknown, pending []*journal.Record
	for _, r := range records {
		if r.JobID != "" {
			found = append(found, r)
		}
		if r.Claim != nil {
			pending = append(pending, r)
		}
		if r.IsUnknownCreate() {
			unknown = append(unknown, r)
		}
	}
	if len(pending) > 0 {
		addWarning(diags, wording.ListedPending(pending))
	}
	if len(unknown) > 0 {
		addWarning(diags, wording.ListedUnknown(unknown))
	}
	return found
}

// result is a job as the journal has it and, if requested, as the service shows it now.
func (l *jobList) result(ctx context.Context, req list.ListRequest, r *journal.Record) list.ListResult {
	result := req.NewListResult(ctx)
	result.DisplayName = wording.ListedName(r)
	var job jobModel
	result.Diagnostics.Append(result.Resource.SetAttribute(ctx, path.Root("id"), r.JobID)...)
	result.Diagnostics.Append(result.Resource.Get(ctx, &job)...)
	job.ProjectID, job.Name = types.StringValue(r.Project), types.StringValue(r.Name)
	result.Diagnostics.Append(result.Identity.Set(ctx, jobIdentity{job.ProjectID, job.ID})...)
	if !req.IncludeResource {
		return result
	}
	if shown, err := l.provider.Sender.Client.ReadJob(ctx, r.Project, r.JobID); err == nil {
		result.Diagnostics.Append(job.set(shown)...)
	} else {
		addWarning(&result.Diagnostics, wording.ListedUnread.Of(job.facts(), err))
	}
	result.Diagnostics.Append(result.Resource.Set(ctx, &job)...)
	return result
}
