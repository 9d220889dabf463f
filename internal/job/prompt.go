// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/check"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// promptText is the prompt from whichever attribute is set, as it is sent: as it was written, but
// for the line ends that Git gives heredocs and files on some machines. Nothing makes a CR alone,
// so that stays.
func (m *jobModel) promptText() types.String {
	prompt := m.Prompt
	if prompt.IsNull() {
		prompt = m.PromptWO
	}
	if prompt.IsNull() || prompt.IsUnknown() {
		return prompt
	}
	return types.StringValue(strings.ReplaceAll(prompt.ValueString(), "\r\n", "\n"))
}

// comparedPrompt is the prompt as it is compared and hashed: see canonical.
func (m *jobModel) comparedPrompt() types.String {
	prompt := m.promptText()
	if prompt.IsNull() || prompt.IsUnknown() {
		return prompt
	}
	return types.StringValue(canonical(prompt.ValueString()))
}

// hasPromptOf reports whether a plan has the prompt that the job of a state was last sent.
func (m *jobModel) hasPromptOf(state *jobModel) bool {
	had, prompt := state.comparedPrompt(), m.comparedPrompt()
	if had.IsNull() && !prompt.IsUnknown() {
		return state.PromptWOHash.Equal(promptHash(state.ID, prompt))
	}
	return had.Equal(prompt)
}

func promptHash(jobID, prompt types.String) types.String {
	return types.StringValue(journal.PromptHash(jobID.ValueString(), prompt.ValueString()))
}

// hashOfPrompt is the hash of the last prompt that the job was sent; empty if the state knows none.
func (m *jobModel) hashOfPrompt() string {
	if prompt := m.comparedPrompt(); !prompt.IsNull() {
		return promptHash(m.ID, prompt).ValueString()
	}
	return m.PromptWOHash.ValueString()
}

// promptPath is the attribute that sets the prompt.
func (m *jobModel) promptPath() path.Path {
	if m.Prompt.IsNull() {
		return path.Root("prompt_wo")
	}
	return path.Root("prompt")
}

// checkPrompts checks at apply what validation could not: a prompt that the plan
// did not know.
func (m *jobModel) checkPrompts(diags *diag.Diagnostics) (ok bool) {
	err := checkPrompt(m.promptText().ValueString())
	if !m.Prompt.IsNull() && !m.PromptWO.IsNull() {
		err = errors.New("both prompt and prompt_wo have a value: set only one of them")
	}
	if err != nil {
		check.ErrorAt(diags, m.promptPath(), wording.InvalidPrompt.Because(err, "It was not sent to project "+m.ProjectID.ValueString()+"."))
	}
	return err == nil
}

func checkPrompt(text string) error {
	switch {
	case canonical(text) == "":
		return errors.New("the prompt is empty or only white space")
	case strings.ContainsRune(text, 0):
		return errors.New("the prompt contains a NUL character")
	case !utf8.ValidString(text):
		return errors.New("the prompt is not valid UTF-8")
	}
	return nil
}

// setPromptHash sets the hash of the write-only prompt, once the job has it. A refresh, and an update
// whose prompt is ignored, do not see the prompt, and keep the hash.
func (m *jobModel) setPromptHash() {
	switch {
	case !m.PromptWO.IsNull():
		m.PromptWOHash = promptHash(m.ID, m.comparedPrompt())
	case !m.Prompt.IsNull():
		m.PromptWOHash = types.StringNull()
	}
}
