// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
	"github.com/agentjobs/terraform-provider-agent/internal/journal"
	"github.com/agentjobs/terraform-provider-agent/internal/journal/store"
	"github.com/agentjobs/terraform-provider-agent/internal/send"
)

// arguments are those of which another value starts another job, beside prompt and project.
type arguments struct {
	Triggers types.Map `tfsdk:"triggers"`
}

// argumentAttributes are the attributes of the arguments.
func argumentAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"triggers": schema.MapAttribute{
			Optional:    true,
			ElementType: types.StringType,
			MarkdownDescription: "Arbitrary values, for example `{ spec = filesha256(\"openapi.json\") }`. " +
				"A change starts a new job; so does adding or removing this argument, even with `{}`.",
		},
	}
}

// argumentValues are the arguments by the names of their attributes.
func (a *arguments) argumentValues() map[string]attr.Value {
	return map[string]attr.Value{"triggers": a.Triggers}
}

// newJob is the body of the POST that creates the job.
func (m *jobModel) newJob() agentapi.NewJob {
	return agentapi.NewJob{Prompt: m.promptText().ValueString()}
}

// differingArguments are the names of those that have another value than in the state.
func (a *arguments) differingArguments(state *arguments) (names []string) {
	had := state.argumentValues()
	for name, value := range a.argumentValues() {
		if !value.Equal(had[name]) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// areArgumentsKnown reports whether a plan knows all that the record of a name is compared with, but for the prompt.
func (m *jobModel) areArgumentsKnown(ctx context.Context) bool {
	known := append(slices.Collect(maps.Values(m.argumentValues())), m.ProjectID, m.Name)
	for _, value := range known {
		value, err := value.ToTerraformValue(ctx)
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
