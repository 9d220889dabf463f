// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/validate"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// promptText is the prompt from whichever attribute is set.
func (m *jobModel) promptText() types.String {
	if m.Prompt.IsNull() {
		return m.PromptWO
	}
	return m.Prompt
}

// promptPath is the attribute that sets the prompt.
func (m *jobModel) promptPath() path.Path {
	if m.Prompt.IsNull() {
		return path.Root("prompt_wo")
	}
	return path.Root("prompt")
}

// keepPrompt leaves a prompt with ignore_changes as it was sent: the CLI hides a
// write-only argument's new value from the plan, but not from the apply.
func (m *jobModel) keepPrompt(before *jobModel) {
	m.PromptWO = types.StringNull()
	if m.Prompt.IsNull() {
		m.PromptWO = before.Prompt
	}
}

// checkPrompts checks at apply what validation could not: a prompt that the plan
// did not know.
func (m *jobModel) checkPrompts(diags *diag.Diagnostics) (ok bool) {
	err := checkPrompt(m.promptText().ValueString())
	if !m.Prompt.IsNull() && !m.PromptWO.IsNull() {
		err = errors.New("both prompt and prompt_wo have a value: set only one of them")
	}
	if err != nil {
		validate.ErrorAt(diags, m.promptPath())(
			wording.InvalidPrompt.Because(err, "It was not sent to project "+m.ProjectID.ValueString()+"."))
	}
	return err == nil
}

// recordedPrompt is what the state contains about the last prompt sent to a job: its
// text, or the hash of a write-only one. An imported job has neither.
type recordedPrompt struct {
	text        types.String
	jobID, hash string
}

// missing reports that the job was imported.
func (r recordedPrompt) missing() bool { return r.text.IsNull() && r.hash == "" }

// is reports whether the job was last sent this text.
func (r recordedPrompt) is(text types.String) bool {
	if r.text.IsNull() && !text.IsUnknown() {
		return r.hash == promptHash(r.jobID, text.ValueString())
	}
	return r.text.Equal(text)
}

// promptHash is salted with the job's id: equal prompts have different hashes.
func promptHash(jobID, text string) string {
	sum := sha256.Sum256([]byte(jobID + "\n" + text))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// validPrompt refuses what the service could not use as an instruction.
func validPrompt() validator.String {
	return validate.Rule{
		Summary: wording.InvalidPrompt,
		Accepts: "not empty or only white space, valid UTF-8 without NUL",
		Check:   checkPrompt,
	}
}

func checkPrompt(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return errors.New("the prompt is empty or only white space")
	case strings.ContainsRune(text, 0):
		return errors.New("the prompt contains a NUL character")
	case !utf8.ValidString(text):
		return errors.New("the prompt is not valid UTF-8")
	}
	return nil
}
