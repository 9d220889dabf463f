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

// jobList lists what the journal has and no plan has read in a state. A query reads no
// state, so it must lead nobody to import what the state has already.
type jobList struct{ jobResource }

// NewList returns the list resource agent_job.
func NewList() list.ListResource { return &jobList{jobResource{provider: unconfigured()}} }

func (l *jobList) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse) {
	resp.Schema = schema.Schema{MarkdownDescription: "Lists the jobs in the journal: what earlier runs have started and no plan has read " +
		"in the state since. Creates whose outcome is unknown are warnings. It sends nothing."}
}

func (l *jobList) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var diags diag.Diagnostics
	var jobs []*journal.Earlier
	if l.provider.usable(&diags) {
		ctx = l.provider.Mask(ctx)
		jobs = l.find(ctx, req.Limit, &diags)
	}
	stream.Results = func(push func(list.ListResult) bool) {
		if len(diags) > 0 && !push(list.ListResult{Diagnostics: diags}) {
			return
		}
		for _, e := range jobs {
			if !push(l.result(ctx, req, e)) {
				return
			}
		}
	}
}

// find returns the jobs to list, and explains them and what has no known outcome.
func (l *jobList) find(ctx context.Context, limit int64, diags *diag.Diagnostics) (jobs []*journal.Earlier) {
	kept := l.provider.Sender.Journal
	if kept.Location == (store.Location{}) {
		diags.AddError("Agent jobs not listed", "The journal is turned off, so nothing shows which jobs earlier runs have started. "+
			"Enable it in the provider block, and query again if an earlier run kept one.")
		return nil
	}
	found, err := kept.Unseen(ctx)
	if err != nil {
		diags.AddError(journalUnusable(err, kept.Named()))
		return nil
	}
	var unknown []*journal.Earlier
	var sent, waiting []string
	for _, e := range found {
		switch request := fmt.Sprintf("in project %s at %s", escape.Printable(e.Project), e.SentAt.UTC().Format(time.RFC3339)); {
		case e.JobID != "":
			jobs = append(jobs, e)
		case e.Unknown:
			unknown, sent = append(unknown, e), append(sent, request+": "+escape.Printable(e.Where))
		default:
			waiting = append(waiting, request)
		}
	}
	if len(waiting) > 0 {
		diags.AddWarning("Outcome of an earlier request unknown", "Other runs have sent a prompt and have not recorded the outcome yet:\n  "+
			strings.Join(waiting, "\n  ")+"\nTheir responses may still arrive. Query again later.")
	}
	if len(unknown) > 0 {
		diags.AddWarning("Outcome of agent job create unknown", wording.Paragraphs("Earlier runs have sent a prompt, and no response shows "+
			"whether a job was started:\n  "+strings.Join(sent, "\n  "), waysOut("PROJECT_ID", unknown...)))
	}
	if len(jobs) > 0 {
		more := ""
		if total := int64(len(jobs)); limit > 0 && limit < total {
			jobs = jobs[:limit]
			more = fmt.Sprintf("The first %d of %d jobs are listed. For all of them, set limit in the list block.", limit, total)
		}
		diags.AddWarning("Listed agent jobs may be in the state", wording.Paragraphs(
			"A query does not read the state, so jobs that the last apply has stored are listed too, until a plan has read them.",
			"Before you import any of them: run terraform (or tofu) plan, and then query again. "+
				"Do not import a job that the plan announces: the apply takes it over.", more))
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
