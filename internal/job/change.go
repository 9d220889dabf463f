// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
)

// effect is what an apply does with the prompt of a job in the state.
type effect int

const (
	// keepPrompt: nothing.
	keepPrompt effect = iota
	// storePrompt: the job was imported, and the state gets its prompt.
	storePrompt
	// sendMessage: the prompt is new, or unknown. Of a job that is closed, an earlier run has sent it.
	sendMessage
	// messageIfSent: the prompt is unknown, and the job is closed. The apply sends nothing, and fails unless an earlier run has sent the
	// prompt. It is not replaced, because an ephemeral prompt may be unknown in every plan: that must not cost a job.
	messageIfSent
	// replace: an argument or the project is new.
	replace
	// replaceClosed: the prompt is new, and the job cannot accept messages.
	replaceClosed
	// replaceGivenUp: a person has given up the job's last request, or the job failed, and on_failure = "retry" asks for another one.
	replaceGivenUp
)

// isKept reports whether the job stays, and is sent nothing.
func (e effect) isKept() bool { return e == keepPrompt || e == storePrompt }

func (e effect) replaces() bool { return e == replace || e == replaceClosed || e == replaceGivenUp }

// change is what an apply does to a job in the state.
type change struct {
	effect

	differs     []string // arguments that have another value, but for the first ones of an imported job
	isClosed    bool     // the job cannot accept messages: it failed, was archived, or refuses them
	isMissing   bool     // the last refresh did not find the job
	isWaited    bool     // the job has not finished, so the apply waits for it
	fails       bool     // the job failed and stays, so the apply fails
	isUndecided bool     // nobody waits for the job, and nothing says what its failure means
}

// decideApply is decide in an apply. A CLI refuses one that replaces what its plan did not; of a closed job, the request says that only a
// message counts that an earlier run has sent.
func decideApply(plan, state *jobModel, m *messageMarks, options waitOptions) change {
	return decide(plan, state, m, options, false, false, func() bool { return true })
}

// decide compares a plan with the state. isSent reports whether an earlier run has sent the prompt to the job, which the state does not
// show; it is called if the job is closed.
func decide(
	plan, state *jobModel, m *messageMarks, options waitOptions, isNewProject, isGivenUp bool, isSent func() bool,
) change {
	last := m.lastPrompt(state)
	isImported, isIgnored := last.isMissing(), plan.promptText().IsNull()
	isNewPrompt := !isImported && !isIgnored && !last.is(plan)
	c := change{
		effect:    keepPrompt,
		isClosed:  state.is(agentapi.StatusFailed) || state.is(agentapi.StatusArchived) || m.RefusesMessages,
		isMissing: m.IsMissing,
		isWaited:  options.enabled && !state.ended(),
	}
	switch {
	case isGivenUp, options.onFailure == onRetry && state.is(agentapi.StatusFailed):
		c.effect = replaceGivenUp
	case isNewPrompt && c.isClosed && !isSent():
		c.effect = replaceClosed
		if plan.PromptWO.IsUnknown() {
			c.effect = messageIfSent
		}
	case isNewPrompt:
		c.effect = sendMessage
	case isImported && !isIgnored:
		c.effect = storePrompt
	}
	if !isImported || !state.Name.IsNull() { // the state has the first arguments
		c.differs = plan.differingArguments(&state.arguments)
	}
	if !state.Name.IsNull() && !plan.Name.Equal(state.Name) {
		c.differs = append(c.differs, "name")
	}
	if !c.replaces() && (isNewProject || len(c.differs) > 0) {
		c.effect = replace
	}
	c.fails = c.isKept() && options.onFailure == onError && state.is(agentapi.StatusFailed)
	c.isUndecided = options.onFailure == ""
	return c
}

// setValues sets the planned values. It promises no value that the service may change, nor one that the journal decides: another run may
// write there before the apply.
func (c change) setValues(plan, state *jobModel) {
	plan.shownJob = state.shownJob
	if !plan.Prompt.IsNull() && plan.comparedPrompt().Equal(state.comparedPrompt()) {
		plan.Prompt = state.Prompt // else a plan would show a change that nobody can see
	}
	plan.Messages = state.Messages
	isMessage := c.effect == sendMessage || c.effect == messageIfSent
	switch {
	case isMessage && (c.isMissing || plan.promptText().IsUnknown()):
		plan.Messages = types.Int64Unknown()
	case isMessage:
		plan.Messages = types.Int64Value(state.Messages.ValueInt64() + 1)
	}
	switch {
	case c.replaces():
		plan.markComputedUnknown()
	case isMessage, c.isWaited:
		plan.markRunUnknown()
	case c.effect == storePrompt && plan.Prompt.IsNull(), c.fails: // nothing else makes Terraform call Update
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
	case c.effect == replaceClosed, c.effect == replaceGivenUp:
		at = append(at, path.Root("status"))
	}
	return at
}
