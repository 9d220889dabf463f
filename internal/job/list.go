// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/escape"
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
	kept := l.provider.Sender.Journal
	if kept.Location == (store.Location{}) {
		diags.AddError("Agent jobs not listed", "The journal is turned off, so nothing shows what earlier runs have started. "+
			"A query sends nothing. Check the journal block in the provider block.")
	}
	found, err := kept.Unseen(ctx)
	if err != nil {
		diags.AddError(journalUnusable(err, kept.Named()))
	}
	var unknown []*journal.Earlier
	var sent, pending string
	for _, e := range found {
		switch request := fmt.Sprintf("\n  in project %s at %s", escape.Printable(e.Project), e.SentAt.UTC().Format(time.RFC3339)); {
		case e.JobID != "":
			jobs = append(jobs, e)
		case e.Unknown:
			unknown, sent = append(unknown, e), sent+request+", entry "+e.ID
		default:
			pending += request
		}
	}
	if pending != "" {
		diags.AddWarning("Outcome of an earlier request unknown", "Other runs sent a prompt and did not record the outcome:"+pending+
			"\nThe response can still arrive. Run the query again in a few minutes.")
	}
	if sent != "" {
		diags.AddWarning("Outcome of agent job create unknown", wording.Paragraphs(
			"Earlier runs sent a prompt, and no response shows whether a job was started:"+sent, waysOut("PROJECT_ID", unknown...)))
	}
	if len(jobs) > 0 {
		diags.AddWarning("Listed agent jobs may be in the state", wording.Paragraphs(
			fmt.Sprintf("The journal has jobs that no plan has read in the state: %d. A query reads no state and sends nothing, so the jobs of "+
				"the last apply are among them.", len(jobs)),
			"Before you import any of them, run a plan, and then this query again. Do not import a job that the plan announces: "+
				"the apply takes it over. If fewer are listed, raise limit in the list block."))
	}
	return jobs
}

// result is a job as the journal has it and, if requested, as the service shows it now.
func (l *jobList) result(ctx context.Context, req list.ListRequest, e *journal.Earlier) list.ListResult {
	result := req.NewListResult(ctx)
	result.DisplayName = escape.Printable(fmt.Sprintf("%s, started at %s by run %s", e.JobID, e.SentAt.UTC().Format(time.RFC3339), e.Run()))
	var job jobModel
	result.Diagnostics.Append(result.Resource.SetAttribute(ctx, path.Root("id"), e.JobID)...)
	result.Diagnostics.Append(result.Resource.Get(ctx, &job)...)
	job.ProjectID = types.StringValue(e.Project)
	result.Diagnostics.Append(result.Identity.Set(ctx, jobIdentity{job.ProjectID, job.ID})...)
	if !req.IncludeResource {
		return result
	}
	if record, err := l.provider.Sender.Client.ReadJob(ctx, e.Project, e.JobID); err == nil {
		result.Diagnostics.Append(job.apply(record)...)
	} else {
		result.Diagnostics.AddWarning("Failed to read agent job", wording.Paragraphs(
			fmt.Sprintf("Job %s is listed without its record. A query sends no prompt.", escape.Printable(job.name())), cause(err),
			"If the job no longer exists, delete "+escape.Printable(e.Where)+"."))
	}
	result.Diagnostics.Append(result.Resource.Set(ctx, &job)...)
	return result
}
