// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/check"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// postBody is the body of the POST that creates the job.
func (m *jobModel) postBody() agentapi.PostBody {
	body := agentapi.PostBody{Prompt: m.promptText().ValueString()}
	for _, a := range m.all() {
		if a.send != nil && !a.value.IsNull() && !a.value.IsUnknown() {
			a.send(&body)
		}
	}
	return body
}

// isComparable reports whether a plan knows all that is compared with the record of the name. A prompt that
// it does not know is compared as such, but there must be one: ignore_changes may hide that of an
// imported job.
func (m *jobModel) isComparable(ctx context.Context) bool {
	compared := []attr.Value{m.ProjectID, m.Name}
	for _, a := range m.all() {
		compared = append(compared, a.value)
	}
	for _, value := range compared {
		value, err := value.ToTerraformValue(ctx)
		if err != nil || !value.IsFullyKnown() {
			return false
		}
	}
	return !m.promptText().IsNull()
}

// request is what the job wants for its name: a message to the job that it has, if jobID is not
// empty, or else a create.
func (m *jobModel) request(ctx context.Context, jobID string) send.Request {
	triggers := map[string]*string{}
	_ = comparedTexts(m.Triggers).ElementsAs(ctx, &triggers, true)
	sorted, _ := json.Marshal(triggers)
	body := m.postBody()
	others := body
	others.Prompt = ""
	sent, _ := json.Marshal(others)
	return send.Request{
		Wanted: journal.Wanted{
			Project: m.ProjectID.ValueString(), Name: m.Name.ValueString(), Recipient: jobID, Arguments: string(sorted) + string(sent),
			Prompt: m.comparedPrompt().ValueString(), IsPromptUnknown: m.comparedPrompt().IsUnknown(),
		},
		Body: body,
	}
}

// fingerprint is a hash that tells two creates of one name apart; empty if not all is known yet.
func (m *jobModel) fingerprint(ctx context.Context) string {
	if !m.isComparable(ctx) || m.promptText().IsUnknown() {
		return ""
	}
	wanted := m.request(ctx, "").Wanted
	return journal.Hash(wanted.Arguments, wanted.Prompt)
}

// lastRequest is the id of the last request for the job, by which a person can give it up. It is
// empty if the journal does not show one.
func (m *jobModel) lastRequest(ctx context.Context, j *journal.Journal) (id string) {
	id, _ = j.LastRequest(ctx, m.ProjectID.ValueString(), m.Name.ValueString(), m.ID.ValueString())
	return id
}

// checkName checks that a request has a name, without which it would not be recorded. An imported
// job has none yet, and ignore_changes can keep it so.
func checkName(request send.Request, diags *diag.Diagnostics) (ok bool) {
	if request.Name == "" {
		check.ErrorAt(diags, path.Root("name"), wording.NameMissing(request))
	}
	return request.Name != ""
}
