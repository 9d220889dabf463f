// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
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
	resp.Schema = schema.Schema{MarkdownDescription: "Lists the jobs that earlier runs have started and no later plan has read in the state, " +
		"as the journal shows them. Creates whose outcome is unknown are warnings. Nothing is sent."}
}

func (l *jobList) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var diags diag.Diagnostics
	var jobs []*journal.Earlier
	if l.provider.usable(&diags) {
		ctx = l.provider.Mask(ctx)
		jobs = l.find(ctx, &diags)
	}
	stream.Results = func(push func(list.ListResult) bool) {
		if len(diags) > 0 && !push(list.ListResult{Diagnostics: diags}) { // first: the CLI stops at its limit
			return
		}
		for _, e := range jobs {
			if !push(l.result(ctx, req, e)) {
				return
			}
		}
	}
}

// find returns the jobs to list. The CLI groups equal warnings, so there is one of each kind.
func (l *jobList) find(ctx context.Context, diags *diag.Diagnostics) (jobs []*journal.Earlier) {
	kept := l.provider.Sender.Journal
	found, err := kept.Unseen(ctx)
	switch {
	case kept.Location == store.Location{}:
		diags.AddError("Agent jobs not listed", "The journal is turned off, so nothing shows what earlier runs have started. "+
			"Turn it on in the provider block: only runs that kept it are listed.")
		return nil
	case err != nil:
		diags.AddError(journalUnusable(err, kept.Named()))
		return nil
	}
	var unknown []*journal.Earlier
	var sent, pending []string
	for _, e := range found {
		switch request := fmt.Sprintf("\n  in project %s at %s", escape.Printable(e.Project), e.SentAt.UTC().Format(time.RFC3339)); {
		case e.JobID != "":
			jobs = append(jobs, e)
		case e.Unknown:
			unknown, sent = append(unknown, e), append(sent, request+", entry "+e.ID)
		default:
			pending = append(pending, request)
		}
	}
	if len(pending) > 0 {
		diags.AddWarning("Outcome of an earlier request unknown", fmt.Sprintf("Other runs sent a prompt and did not record the outcome:%s\n"+
			"The response can still arrive. Query again in a few minutes.", strings.Join(pending, "")))
	}
	if len(unknown) > 0 {
		diags.AddWarning("Outcome of agent job create unknown", wording.Paragraphs(fmt.Sprintf("Earlier runs sent a prompt, and no response "+
			"shows whether a job was started:%s", strings.Join(sent, "")), waysOut("PROJECT_ID", unknown...)))
	}
	if len(jobs) > 0 {
		diags.AddWarning("Listed agent jobs may be in the state", wording.Paragraphs(
			fmt.Sprintf("The journal has %d jobs that no plan has read in the state. A query does not read it, so the list contains the "+
				"jobs that the last apply has stored.", len(jobs)),
			"Before you import any of them, run a plan, and then this query again. Do not import a job that the plan announces: "+
				"the apply takes it over. If jobs are missing, set limit in the list block."))
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
		next := ""
		if errors.Is(err, agentapi.ErrNotFound) {
			next = "If the job no longer exists, " + giveUp(e) + "."
		}
		result.Diagnostics.AddWarning("Failed to read agent job", wording.Paragraphs(
			fmt.Sprintf("Job %s is listed without its record. A query sends no prompt.", escape.Printable(job.name())), cause(err), next))
	}
	result.Diagnostics.Append(result.Resource.Set(ctx, &job)...)
	return result
}
