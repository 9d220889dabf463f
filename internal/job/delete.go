// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// Delete removes the job from the state, and does with its name what the plan of a replacement says
// (replacement.fate). Nothing is sent: the service cannot cancel a job.
func (r *jobResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var job jobModel
	resp.Diagnostics.Append(req.State.Get(ctx, &job)...)
	defer recoverAsError(ctx, "removing job "+job.facts().String()+" from the state", "A destroy sends no prompt.", &resp.Diagnostics)
	r.provider.run.isApplying.Store(true)

	// Read what the plan has left (T6). A replacement needs what its create needs.
	marks := readMarks(ctx, req.Private)
	isReplaced, needed := marks.replacement.isFollowed(), r.provider.Missing.Journal
	if isReplaced {
		needed = r.provider.Missing.Service
	}
	if addMissing(needed, &resp.Diagnostics) {
		return
	}

	// Do with the name what the plan says.
	isInUse, err := r.settleName(ctx, &job, marks)

	// An error keeps the object in the state.
	switch {
	case errors.Is(err, context.Canceled):
		addError(&resp.Diagnostics, wording.NotRemoved.Of(job.facts(), nil))
		return
	case err != nil && isReplaced: // the create that follows would fail, with the old job out of the state
		addError(&resp.Diagnostics, wording.NotReplaced.Of(job.facts(), err))
		return
	}
	r.provider.reportJournalError(err, &resp.Diagnostics)
	if !resp.Diagnostics.HasError() && !isInUse && !job.hasFinished() {
		addWarning(&resp.Diagnostics, wording.ActiveRemoved.Of(job.facts(), nil))
	}
}

// settleName frees the name of a job that is removed, or keeps it for the create that follows. isInUse:
// another object has the job, or may get it. With an unusable journal, a replacement must not begin.
func (r *jobResource) settleName(ctx context.Context, job *jobModel, marks *marks) (isInUse bool, err error) {
	records := r.provider.Sender.Journal
	if err := records.Misconfigured(); err != nil && marks.replacement.isFollowed() {
		return false, err
	}
	object := journal.Object{
		Project: job.ProjectID.ValueString(), Name: job.Name.ValueString(), JobID: job.ID.ValueString(),
		Arguments: job.request(ctx, "").Arguments, PromptHash: job.hashOfPrompt(), Holder: marks.holder,
	}
	fate := marks.replacement.fate(job.projectAndName())
	if fate == journal.Leave && r.provider.Command == "test" {
		fate = journal.Release // the runs of a test share a process, and none adopts what an earlier one destroyed
	}
	return records.Remove(ctx, object, fate)
}

// fate decides, for the old object's project and name. Leave: no object follows, or one with another
// project or name. Keep: the old one is tainted, or may turn out to be what the configuration wants.
// Release: a new object of the same name replaces the job for sure.
func (r replacement) fate(of projectAndName) journal.Fate {
	isOther := func(next, own string) bool { return next != "" && next != own }
	switch {
	case !r.isFollowed(), isOther(r.Next.Project, of.Project), isOther(r.Next.Name, of.Name):
		return journal.Leave
	case r.isOfTainted(), r.MayBeSame:
		return journal.Keep
	}
	return journal.Release
}
