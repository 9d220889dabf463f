// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/attr"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
)

// newJob is the body of the POST that creates the job.
func (m *jobModel) newJob() agentapi.NewJob {
	return agentapi.NewJob{Prompt: m.promptText().ValueString()}
}

// replacing are the arguments of which another value starts another job, beside the prompt and the project.
func (m *jobModel) replacing() []attr.Value { return []attr.Value{m.Triggers} }

// arguments tell one create from another, beside the prompt.
func (m *jobModel) arguments() []attr.Value { return append(m.replacing(), m.ProjectID, m.Name) }

// areArgumentsKnown reports whether a plan knows all that the record of a name is compared with, but for the prompt.
func (m *jobModel) areArgumentsKnown(ctx context.Context) bool {
	for _, argument := range m.arguments() {
		value, err := argument.ToTerraformValue(ctx)
		if err != nil || !value.IsFullyKnown() {
			return false
		}
	}
	return !m.promptText().IsNull()
}

// request is what the job wants for its name: a message to the job that it has, if jobID is not empty, or else a create.
func (m *jobModel) request(ctx context.Context, jobID string) send.Request {
	triggers := map[string]*string{}
	_ = m.Triggers.ElementsAs(ctx, &triggers, true)
	sorted, _ := json.Marshal(triggers)
	body := m.newJob()
	others := body
	others.Prompt = ""
	sent, _ := json.Marshal(others)
	return send.Request{
		Wanted: journal.Wanted{
			Project: m.ProjectID.ValueString(), Name: m.Name.ValueString(), Job: jobID, Arguments: string(sorted) + string(sent),
			Prompt: m.comparedPrompt().ValueString(), IsPromptUnknown: m.comparedPrompt().IsUnknown(),
		},
		Body: body,
	}
}

// fingerprint tells two new resources with one name apart. It is empty while that is not known.
func (m *jobModel) fingerprint(ctx context.Context) string {
	if !m.areArgumentsKnown(ctx) || m.promptText().IsUnknown() {
		return ""
	}
	wanted := m.request(ctx, "").Wanted
	return store.Hash(wanted.Arguments, wanted.Prompt)
}
