// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import (
	"strings"
	"unicode"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentjobs/terraform-provider-agent/internal/agentapi"
)

// arguments are the attributes whose change starts another job, besides name and project.
type arguments struct {
	Triggers types.Map `tfsdk:"triggers"`
}

// argument is all that is special about one of them: schema, plan and request follow from it.
type argument struct {
	name      string                   // of the attribute
	attribute schema.Attribute         // its description says what a change does
	value     attr.Value               // as it is compared
	send      func(*agentapi.PostBody) // puts a value that is set into the body; nil if the service does not get it
}

// all are the arguments with the values that they have here.
func (a *arguments) all() []argument {
	return []argument{
		{
			name:  "triggers",
			value: comparedTexts(a.Triggers),
			attribute: schema.MapAttribute{
				Optional:    true,
				ElementType: types.StringType,
				MarkdownDescription: "Arbitrary values, for example `{ release = var.release }`. " +
					"A change starts another job; so does adding or removing this argument, even with `{}`. " +
					"White space at line ends makes no difference, but in the hash of a file it does.",
			},
		},
	}
}

// comparedTexts are the values of a map as they are compared: see canonical.
func comparedTexts(m types.Map) types.Map {
	elements := m.Elements()
	for key, value := range elements {
		if text, ok := value.(types.String); ok && !text.IsNull() && !text.IsUnknown() {
			elements[key] = types.StringValue(canonical(text.ValueString()))
		}
	}
	if len(elements) == 0 { // also if it is null or unknown
		return m
	}
	return types.MapValueMust(types.StringType, elements)
}

// differingArguments returns the names of the arguments whose values differ from those in the state.
func (a *arguments) differingArguments(state *arguments) (names []string) {
	had := state.all()
	for i, argument := range a.all() {
		if !argument.value.Equal(had[i].value) {
			names = append(names, argument.name)
		}
	}
	return names
}

// canonical is the text that all texts of the same prompt have in common. What an editor, a
// checkout or a heredoc changes and nobody sees makes no other prompt: a byte order mark, and white
// space at the end of a line or of the whole.
func canonical(text string) string {
	lines := strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRightFunc(line, unicode.IsSpace)
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}
