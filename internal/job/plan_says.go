// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/check"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// phase is when a resource is planned. What a plan and its apply both know is reported once.
type phase int

const (
	// planOnly: a plan of another command than "terraform apply". A person reads it, and may apply it later.
	planOnly phase = iota
	// beforeApply: a plan of "terraform apply", in either of its processes (T3), before the first Create,
	// Update or Delete. These say what they do because of a record, so the plan does not.
	beforeApply
	// inApply: a Create, Update or Delete has begun. From then on, no plan reports an error of names,
	// limits or the journal, because it would leave an old object deposed (T4).
	inApply
)

// phase returns the current phase. It is asked where something is reported, because an apply may begin
// while a plan waits for the journal.
func (p planner) phase() phase {
	switch {
	case p.run.isApplying.Load():
		return inApply
	case p.Command == "apply":
		return beforeApply
	}
	return planOnly
}

// reportNeeds reports the settings that the apply needs and does not have.
func (p planner) reportNeeds(c change) {
	switch {
	case c.usesService():
		p.reportMissing(p.Missing.Service, p.diags)
	case c.effect == storePrompt:
		p.reportMissing(p.Missing.Journal, p.diags)
	}
}

// sayPrompt says what the apply does with the prompt of a job in the state, or with its name.
func (p planner) sayPrompt(ctx context.Context, c change, e existing) {
	job := e.state.facts()
	job.RefusedMessage = e.marks.RefusesMessages
	warn := func(at path.Path, text wording.Text) { check.WarnAt(p.diags, at, text.Of(job, nil)) }
	switch c.effect {
	case storePrompt: // an unknown create needs no warning, because the import settles it
		if e.foreseen.Result == send.OtherJob && !e.foreseen.Record.IsUnknownCreate() {
			check.WarnAt(p.diags, path.Root("name"), wording.NameFromOther(job, e.foreseen.Record))
		}
	case sendMessage:
		p.planMessage(ctx, e)
	case replaceClosed:
		warn(e.plan.promptPath(), wording.PromptStartsJob)
	case replace:
		if !c.mayBeSame && !e.state.hasFinished() {
			warn(path.Root("status"), wording.ActiveReplaced)
		}
	}
	if e.marks.Unconfirmed && !c.makesRequest() {
		warn(e.plan.promptPath(), wording.Unconfirmed)
	}
	if e.isGivenUp && !e.isRead {
		warn(path.Root("status"), wording.GivenUpLate)
	}
}

// planMessage counts a message within the limit, or says why the record of the name stops it.
func (p planner) planMessage(ctx context.Context, e existing) {
	request, result := e.plan.request(ctx, e.state.ID.ValueString()), e.foreseen.Result
	switch {
	case e.plan.Name.IsNull():
		checkName(request, p.diags)
	case result == send.MaySend:
		p.count(request, false)
	case result == send.OtherJob, result == send.Waiting:
		p.warnOfRecord(e.foreseen, request)
	}
}

// sayFailure says that a job in the state counts as failed, and what the apply does about it.
func (p planner) sayFailure(ctx context.Context, c change, e existing) {
	job, status := e.state.facts(), path.Root("status")
	switch {
	case c.failsApply:
		check.WarnAt(p.diags, status, wording.FailedEarlier(job, e.state.lastRequest(ctx, p.Sender.Journal)))
	case c.failedUnwaited && e.state.is(agentapi.StatusArchived):
		check.WarnAt(p.diags, status, wording.ArchivedUnnoticed.Of(job, nil))
	case c.failedUnwaited:
		check.WarnAt(p.diags, status, wording.FailedUnnoticed.Of(job, nil))
	}
}

// warnOfRecord says what an apply does because of the record of a name, and no planned value shows.
// An apply that waits for another run says nothing, so each plan does.
func (p planner) warnOfRecord(foreseen send.Outcome, request send.Request) {
	switch p.phase() {
	case inApply:
		return
	case beforeApply:
		if foreseen.Result != send.Waiting {
			return
		}
	}
	at := path.Root("name")
	if text, isNeeded := wording.Foreseen(foreseen, request); isNeeded {
		check.WarnAt(p.diags, at, text)
	}
	if foreseen.Beside != nil {
		check.WarnAt(p.diags, at, wording.BesideAnother(request, foreseen.Beside))
	}
}

// count counts a request that the apply sends. If the plan is sure that the requests exceed a limit, it
// fails; otherwise it warns. No plan is sure of a message, because Terraform may replace its resource
// (-replace). In an apply, Create and Update refuse a request beyond the limit.
func (p planner) count(request send.Request, isSure bool) {
	if p.phase() == inApply {
		return
	}
	if p.phase() == planOnly {
		p.warnOfPlace(p.diags)
	}
	switch err := p.Sender.Limits.Plan(request, isSure); {
	case err == nil:
	case err.IsSure:
		addError(p.diags, wording.BeyondLimit(err, request))
	default:
		addWarning(p.diags, wording.BeyondLimit(err, request))
	}
}

// checkOwner makes sure that no other resource has the name. In an apply, beginCreate stops the second
// create instead.
func (p planner) checkOwner(plan *jobModel, o owner) {
	if plan.Name.ValueString() == "" || plan.ProjectID.IsUnknown() {
		return // it is not known yet, or ignore_changes hides that of an imported job
	}
	if other, isOnly := p.run.register(plan.projectAndName(), o); !isOnly && p.phase() != inApply {
		check.ErrorAt(p.diags, path.Root("name"), wording.DuplicateName(plan.Name.ValueString(), plan.ProjectID.ValueString(), o.job, other.job))
	}
}
