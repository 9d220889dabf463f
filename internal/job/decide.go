// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
)

// What an apply does to a job in the state is decided here, from values to values. Of a create, the
// record of its name decides (send.Sender.Foresee).

// existing is a job in the state, with all that decides what an apply does to it.
type existing struct {
	plan, state  *jobModel
	marks        *messageMarks
	options      waitOptions
	foreseen     send.Outcome // of a message with the planned prompt
	isNewProject bool         // the configuration has another project than the state
	isGivenUp    bool         // a person has given up the job's last request
	// isRead: this process has read the job. Otherwise this may be the apply of a saved plan, and Terraform
	// refuses a replacement that the plan did not have.
	isRead bool
	// hasUnknown: the plan does not know the record, or an argument that decides whether the job is
	// replaced, so a replacement may turn out to want the same job.
	hasUnknown bool
}

// effect is what an apply does with a job in the state: nothing or something about its prompt, or a
// replacement.
type effect int

const (
	// keepPrompt: the apply sends and stores no prompt.
	keepPrompt effect = iota
	// storePrompt: the job was imported, and the state gets its prompt.
	storePrompt
	// sendMessage: the prompt is new, or not known yet. If the job is closed, another run has sent the
	// prompt, or may have done so: then Update only does what the record says.
	sendMessage
	// replace: an argument or the project is new, a person has given up the job's last request, or
	// the job failed and on_failure is "retry".
	replace
	// replaceClosed: the prompt is new, and the job cannot accept messages.
	replaceClosed
)

// change is what an apply does to a job in the state.
type change struct {
	effect         effect
	replacedAt     []path.Path // the attributes that force the replacement
	isWaited       bool        // the job has not finished, so the apply waits for it
	failsApply     bool        // the job counts as failed and stays, so the apply fails
	failedUnwaited bool        // the job counts as failed and stays without on_failure, so the plan warns
	// mayBeSame: the job is replaced because of a value that the plan does not know yet, and that may
	// turn out to be the one which the job has.
	mayBeSame bool
}

func (c change) replaces() bool { return c.effect == replace || c.effect == replaceClosed }

// promptEffect compares the prompt with that of a state: it is kept, stored, or sent.
func (m *jobModel) promptEffect(state *jobModel) effect {
	switch {
	case m.promptText().IsNull(), m.hasPromptOf(state): // there is none to compare because of ignore_changes
		return keepPrompt
	case state.isImported():
		return storePrompt
	}
	return sendMessage
}

// isImported reports whether the job was imported, and has no prompt in the state yet.
func (m *jobModel) isImported() bool { return m.Prompt.IsNull() && m.PromptWOHash.IsNull() }

// makesRequest reports whether the apply has a request for the name: a message, or the create of a
// replacement.
func (c change) makesRequest() bool { return c.effect == sendMessage || c.replaces() }

// usesService reports whether the apply sends or reads something.
func (c change) usesService() bool { return c.makesRequest() || c.isWaited }

// decide compares the plan with the state.
func (e existing) decide() change {
	state, options := e.state, e.options
	c := change{
		effect:     e.plan.promptEffect(state),
		replacedAt: e.newArguments(),
		isWaited:   options.enabled && !state.hasFinished(),
		mayBeSame:  e.hasUnknown,
	}
	isMessage, isFailed := c.effect == sendMessage, state.is(agentapi.StatusFailed)
	mayBeSent := isMessage && e.foreseen.Result.MayBeSent() // by another run, for sure or perhaps
	replaceAt := func(with effect, attribute string) {
		c.effect, c.replacedAt = with, append(c.replacedAt, path.Root(attribute))
	}
	switch {
	case e.isGivenUp && e.isRead, isFailed && options.onFailure == onRetry && !mayBeSent:
		replaceAt(replace, "status")
	case isMessage && e.marks.isClosed(&state.shownJob) && !mayBeSent:
		replaceAt(replaceClosed, e.comparedPromptAttribute())
		c.mayBeSame = c.mayBeSame || e.plan.promptText().IsUnknown()
	case len(c.replacedAt) > 0:
		c.effect = replace
	case isFailed && options.isUnknown:
		replaceAt(replace, "status")
		c.mayBeSame = true
	}
	c.mayBeSame = c.mayBeSame && c.replaces()
	stays := !c.makesRequest() && e.marks.countsAsFailed(&state.shownJob)
	c.failsApply = stays && options.failsRuns()
	c.failedUnwaited = stays && options.onFailure == ""
	return c
}

// comparedPromptAttribute is the attribute at which a plan shows a new prompt: prompt_wo is null in every
// plan, and a replacement needs a value that differs.
func (e existing) comparedPromptAttribute() string {
	if e.plan.Prompt.IsNull() {
		return "prompt_wo_hash"
	}
	return "prompt"
}

// newArguments are the attributes, beside the prompt, whose change starts another job. An imported job
// without a name gets its arguments now: there is nothing to compare them with.
func (e existing) newArguments() (at []path.Path) {
	if e.isNewProject {
		at = append(at, path.Root("project_id"))
	}
	if e.state.isImported() && e.state.Name.IsNull() {
		return at
	}
	for _, name := range e.plan.differingArguments(&e.state.arguments) {
		at = append(at, path.Root(name))
	}
	if !e.state.Name.IsNull() && !e.plan.Name.Equal(e.state.Name) {
		at = append(at, path.Root("name"))
	}
	return at
}

// setValues sets the planned values. It promises no value that the service may change, nor one that
// the journal decides: another run may write there before the apply.
func (c change) setValues(plan, state *jobModel) {
	plan.shownJob = state.shownJob
	if !plan.Prompt.IsNull() && plan.comparedPrompt().Equal(state.comparedPrompt()) {
		plan.Prompt = state.Prompt // else a plan would show a change that nobody can see
	}
	switch hasPrompt := plan.hasPromptOf(state); {
	case !plan.Prompt.IsNull() && plan.PromptWO.IsNull():
		plan.PromptWOHash = types.StringNull()
	case c.replaces(), !plan.PromptWO.IsNull() && (!hasPrompt || state.PromptWOHash.IsNull()):
		plan.PromptWOHash = types.StringUnknown()
	default:
		plan.PromptWOHash = state.PromptWOHash
	}
	if len(plan.differingArguments(&state.arguments)) == 0 {
		plan.arguments = state.arguments
	}
	plan.Messages = state.Messages
	switch {
	case c.effect != sendMessage:
	case plan.promptText().IsUnknown():
		plan.Messages = types.Int64Unknown()
	default:
		plan.Messages = types.Int64Value(state.Messages.ValueInt64() + 1)
	}
	switch {
	case c.usesService():
		// Of a replacement, this only has to differ from the state: the second planning call sets what the
		// plan shows (T2).
		plan.markRunUnknown()
	case c.failsApply:
		// A failed job changes no value that a plan shows, and without a change Terraform calls no Update
		// (T8).
		plan.Status = types.StringUnknown()
	}
}
