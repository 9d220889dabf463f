// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// What an apply will do is decided here, from values to values: existing.decide for a job in the
// state, and the methods of plannedCreate for one that is not there. What the record of a name
// says, the journal's table has decided before.

// existing is a job in the state, with all that decides what an apply does to it.
type existing struct {
	plan, state  *jobModel
	marks        *messageMarks
	options      waitOptions
	isNewProject bool            // the configuration has another project than the state
	isUnknown    bool            // the plan does not know all that tells creates apart, beside the prompt
	isGivenUp    bool            // a person has given up the job's last request
	verdict      journal.Verdict // of the record of the name, about a message with the planned prompt
}

// effect is what an apply does with the prompt of a job in the state.
type effect int

const (
	// keepPrompt: nothing.
	keepPrompt effect = iota
	// storePrompt: the job was imported, and the state gets its prompt.
	storePrompt
	// sendMessage: the prompt is new, or not known yet. A job that is closed is sent nothing: then
	// the apply fails, unless an earlier run has sent the prompt. A prompt_wo that is not known yet
	// replaces no job, because an ephemeral value is unknown in every plan.
	sendMessage
	// replace: an argument or the project is new, a person has given up the job's last request, or
	// the job failed and on_failure is "retry".
	replace
	// replaceClosed: the prompt is new, and the job cannot accept messages.
	replaceClosed
)

// change is what an apply does to a job in the state.
type change struct {
	effect

	replacedAt  []path.Path // the attributes at which a plan asks for a replacement, beside the project
	isClosed    bool        // the job cannot accept messages: it failed, was archived, or refuses them
	isMissing   bool        // the last refresh did not find the job
	isWaited    bool        // the job has not finished, so the apply waits for it
	fails       bool        // the job counts as failed and stays, so the apply fails
	isUnnoticed bool        // the job counts as failed and stays without on_failure, so the plan warns
	// mayBeSame: the job is replaced because of a value that the plan does not know yet, and that may
	// turn out to be the one which the job has.
	mayBeSame bool
}

func (c change) replaces() bool { return c.effect == replace || c.effect == replaceClosed }

// decide compares the plan with the state.
func (e existing) decide() change {
	plan, state, options := e.plan, e.state, e.options
	hasFailed, isIgnored := state.is(agentapi.StatusFailed), plan.promptText().IsNull()
	isImported := state.comparedPrompt().IsNull() && e.marks.Prompt == "" // no prompt of it is known
	isNewPrompt := !isImported && !isIgnored && !e.marks.isLastPrompt(plan, state)
	isSent := e.verdict == journal.AlreadySent || e.verdict == journal.UnknownMessage
	c := change{
		isClosed:  hasFailed || state.is(agentapi.StatusArchived) || e.marks.IsClosed,
		isMissing: e.marks.IsMissing,
		isWaited:  options.enabled && !state.hasFinished(),
	}
	if !isImported || !state.Name.IsNull() { // else these are the first arguments of an imported job
		for _, name := range plan.differingArguments(&state.arguments) {
			c.replacedAt = append(c.replacedAt, path.Root(name))
		}
	}
	if !state.Name.IsNull() && !plan.Name.Equal(state.Name) {
		c.replacedAt = append(c.replacedAt, path.Root("name"))
	}
	switch {
	case e.isGivenUp, options.onFailure == onRetry && hasFailed:
		c.effect, c.replacedAt = replace, append(c.replacedAt, path.Root("status"))
	case isNewPrompt && c.isClosed && !isSent && !plan.PromptWO.IsUnknown():
		at := path.Root("prompt")
		if plan.Prompt.IsNull() { // no plan shows a write-only attribute (T7)
			at = path.Root("status")
		}
		c.effect, c.replacedAt = replaceClosed, append(c.replacedAt, at)
	case e.isNewProject, len(c.replacedAt) > 0:
		c.effect = replace
	case isNewPrompt:
		c.effect = sendMessage
	case isImported && !isIgnored:
		c.effect = storePrompt
	}
	c.mayBeSame = c.effect == replaceClosed && plan.promptText().IsUnknown() || c.effect == replace && e.isUnknown
	stays := (c.effect == keepPrompt || c.effect == storePrompt) && e.marks.hasFailed(&state.shownJob)
	c.fails = stays && options.failsRuns()
	c.isUnnoticed = stays && options.onFailure == ""
	return c
}

// setValues sets the planned values. It promises no value that the service may change, nor one that
// the journal decides: another run may write there before the apply.
func (c change) setValues(ctx context.Context, plan, state *jobModel) {
	plan.shownJob = state.shownJob
	if !plan.Prompt.IsNull() && plan.comparedPrompt().Equal(state.comparedPrompt()) {
		plan.Prompt = state.Prompt // else a plan would show a change that nobody can see
	}
	plan.Messages = state.Messages
	switch {
	case c.effect != sendMessage:
	case c.isMissing, plan.promptText().IsUnknown():
		plan.Messages = types.Int64Unknown()
	default:
		plan.Messages = types.Int64Value(state.Messages.ValueInt64() + 1)
	}
	switch {
	case c.replaces(), c.effect == sendMessage, c.isWaited:
		// Of a replacement, this only has to differ from the state: the second planning call sets what the
		// plan shows (T2).
		plan.markRunUnknown(ctx)
	case c.effect == storePrompt && plan.Prompt.IsNull(), c.fails:
		// A write-only prompt to store, or a failed job, changes no value that a plan shows, and without a
		// change Terraform calls no Update (T9).
		plan.Status = types.StringUnknown()
	}
}

// plannedCreate is what an apply does with a create, as far as a plan knows.
type plannedCreate struct {
	request  send.Request
	replaced string // the job in the state that it replaces; empty without one, or if that is tainted
	verdict  journal.Verdict
	record   *journal.Record // of the name; nil if there is none, or if that is not known
}

// hasReplaced reports whether the name has the job that the apply replaces, so that its Delete
// releases the name first.
func (c *plannedCreate) hasReplaced() bool {
	return c.record != nil && c.record.Job != "" && c.record.Job == c.replaced
}

// sends reports whether the apply sends something.
func (c *plannedCreate) sends() bool {
	return c.verdict == journal.Send || c.verdict == journal.Continue || c.hasReplaced()
}

// mayKeepJob reports whether the apply may adopt the job that the name has, or send it the prompt,
// as far as the plan knows.
func (c *plannedCreate) mayKeepJob() bool {
	return c.record == nil || c.record.IsFree() || c.verdict == journal.Adopt || c.verdict == journal.Continue
}

// adopted is the job that the apply adopts for sure; empty without one.
func (c *plannedCreate) adopted() string {
	if c.verdict != journal.Adopt || c.replaced != "" || c.request.IsPromptUnknown || c.request.RetryFailed {
		return ""
	}
	return c.record.Job
}

// warning says what a plan's symbols do not show: why the apply will fail, or that it starts a job
// beside another one. With neither, isNeeded is false.
func (c *plannedCreate) warning() (text wording.Diagnostic, isNeeded bool) {
	switch r := c.record; {
	case r == nil, c.hasReplaced(), c.verdict == journal.Adopt, c.verdict == journal.Continue:
		return text, false
	case c.verdict != journal.Send:
		return wording.WillStop(c.verdict, c.request, r), true
	case r.IsFree(), r.Broken, r.IsUnknownCreate(), r.Last.Arguments == journal.Hash(c.request.Arguments):
		return text, false
	default:
		return wording.BesideAnother(c.request, r), true
	}
}
