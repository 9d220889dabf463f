// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/validate"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// effect is what an apply does with the prompt of a job in the state.
type effect int

const (
	// keepPrompt: nothing.
	keepPrompt effect = iota
	// storePrompt: the job was imported, and the state gets its prompt.
	storePrompt
	// reopen: the prompt is the last one that the job accepted, and it has refused another one since, which no longer counts.
	reopen
	// sendMessage: the prompt is new, or unknown. Of a job that is closed, an earlier run has sent it.
	sendMessage
	// messageIfSent: the prompt is unknown, and the job is closed. The apply sends nothing, and fails unless an earlier run has sent the
	// prompt. It is not replaced, because an ephemeral prompt may be unknown in every plan: that must not cost a job.
	messageIfSent
	// replace: an argument or the project is new.
	replace
	// replaceClosed: the prompt is new, and the job cannot accept messages.
	replaceClosed
	// replaceFailed: the job failed, and on_failure = "retry" asks for another one.
	replaceFailed
)

func (e effect) replaces() bool { return e == replace || e == replaceClosed || e == replaceFailed }

// change is what an apply does to a job in the state.
type change struct {
	effect

	differs  []string // arguments that have another value, but for the first ones of an imported job
	isClosed bool     // the job cannot accept messages: it failed, was archived, or refuses them
	isWaited bool     // the job has not finished, so the apply waits for it
}

// decideApply is decide in an apply. A CLI refuses one that replaces what its plan did not; of a closed job, the request says that only a
// message counts that an earlier run has sent.
func decideApply(plan, state *jobModel, m *messageMarks, options waitOptions) change {
	return decide(plan, state, m, options, false, func() bool { return true })
}

// decide compares a plan with the state. isSent reports whether an earlier run has sent the prompt to the job, which the state does not
// show; it is called if the job is closed.
func decide(plan, state *jobModel, m *messageMarks, options waitOptions, isNewProject bool, isSent func() bool) change {
	last := m.lastPrompt(state)
	isImported, isIgnored := last.isMissing(), plan.promptText().IsNull()
	isNewPrompt := !isImported && !isIgnored && !last.is(plan)
	c := change{
		effect:   keepPrompt,
		isClosed: state.is(agentapi.StatusFailed) || state.is(agentapi.StatusArchived) || m.RefusesMessages,
		isWaited: options.enabled && !state.ended(),
	}
	switch {
	case options.onFailure == onRetry && state.is(agentapi.StatusFailed):
		c.effect = replaceFailed
	case isNewPrompt && c.isClosed && !isSent():
		c.effect = replaceClosed
		if plan.PromptWO.IsUnknown() {
			c.effect = messageIfSent
		}
	case isNewPrompt:
		c.effect = sendMessage
	case isImported && !isIgnored:
		c.effect = storePrompt
	case !isImported && !isIgnored && (m.RefusesMessages || m.RefusedPrompt != ""):
		c.effect = reopen
	}
	if !isImported || !state.Name.IsNull() { // the state has the first arguments
		c.differs = plan.differingArguments(&state.arguments)
	}
	if !c.replaces() && (isNewProject || len(c.differs) > 0) {
		c.effect = replace
	}
	return c
}

// setValues sets the planned values. It promises no value that the service may change.
func (c change) setValues(plan, state *jobModel) {
	plan.shownJob = state.shownJob
	if !plan.Prompt.IsNull() && plan.comparedPrompt().Equal(state.comparedPrompt()) {
		plan.Prompt = state.Prompt // else a plan would show a change that nobody can see
	}
	switch {
	case c.replaces(), c.effect == sendMessage, c.effect == messageIfSent, c.isWaited:
		plan.markComputedUnknown()
	case c.effect == storePrompt && plan.Prompt.IsNull(), c.effect == reopen: // nothing else makes Terraform call Update
		plan.Status = types.StringUnknown()
	}
}

// replacedAt are the attributes at which a plan asks for a replacement, beside the project. Terraform ignores one that does not differ,
// and a write-only prompt is in no plan.
func (c change) replacedAt(plan *jobModel) (at []path.Path) {
	for _, name := range c.differs {
		at = append(at, path.Root(name))
	}
	switch {
	case c.effect == replaceClosed && !plan.Prompt.IsNull():
		at = append(at, path.Root("prompt"))
	case c.effect == replaceClosed, c.effect == replaceFailed:
		at = append(at, path.Root("status"))
	}
	return at
}

// say warns of what the plan's symbols do not show.
func (c change) say(plan, state *jobModel, m *messageMarks, diags *diag.Diagnostics) {
	job := state.facts()
	job.RefusedMessage = m.RefusesMessages
	warn := func(at path.Path, text wording.Text) { validate.WarnAt(diags, at, text.Of(job, nil)) }
	prompt, status := plan.promptPath(), path.Root("status")
	switch {
	case c.effect == replaceFailed:
		warn(status, wording.RetriesFailed)
	case c.effect == replaceClosed:
		warn(prompt, wording.NewJob)
	case c.effect == replace && !state.ended():
		warn(status, wording.ActiveReplaced)
	case c.effect == replace:
	case c.effect == messageIfSent:
		warn(prompt, wording.PromptNotKnownClosed)
	case c.effect == sendMessage && plan.promptText().IsUnknown():
		warn(prompt, wording.PromptNotKnown)
	case c.effect == sendMessage:
		warn(prompt, wording.FollowUp)
	case c.isWaited:
		warn(status, wording.Unfinished)
	case c.effect == storePrompt:
		warn(prompt, wording.PromptStored)
	case c.effect == reopen:
		warn(prompt, wording.PromptRestored)
	case state.is(agentapi.StatusFailed):
		warn(status, wording.FailedEarlier)
	}
	if m.Unconfirmed && !c.replaces() && c.effect != sendMessage {
		warn(prompt, wording.Unconfirmed)
	}
}
