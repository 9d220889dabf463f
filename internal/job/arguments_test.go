// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
)

// examples are of each argument that requests may differ in.
var examples = map[string]struct {
	field    string // that the service gets, with the same value as JSON; empty if there is none
	accepted [3]any // of an optional one: what is nothing in Go, such as 0, another value, and nil
	refused  []any  // by its validators; empty without any
}{
	"prompt":     {field: "prompt", accepted: [3]any{"A", "B", "C"}, refused: badPrompts},
	"prompt_wo":  {field: "prompt", accepted: [3]any{"A", "B", "C"}, refused: badPrompts},
	"project_id": {accepted: [3]any{"proj_1", "proj_2", "proj_3"}, refused: []any{"a/b", "..", "a/../b", "a?b", "a#b", "a%2fb", "a b"}},
	"triggers":   {accepted: [3]any{attrs{}, attrs{"v": "1"}, nil}},
}

var badPrompts = []any{"", " \t\n\u00a0", "a\x00b", "a\xffb"}

// While a plan does not know an argument, nothing is announced: TestAdoption_everyArgument tries what another value does.
//
// Red without: any value in isComparable.
func TestArguments_notKnown(t *testing.T) {
	tests := map[string][]step{}
	for _, a := range argumentSchemas(t) {
		name := a.Name
		if strings.HasPrefix(name, "prompt") || name == "wait" || name == "timeouts" {
			continue
		}
		planned := []object{{Address: "docs", Config: fakecli.With(attrs{"name": "docs", "prompt": "A"}, attrs{name: unknown{}})}}
		tests[name] = []step{
			{objects: []object{named("docs", "A")}, creates: 1},
			{before: lost, objects: planned, planOnly: true, creates: 1},
		}
	}
	play(t, tests)
}

// argumentSchemas are those of what a configuration sets.
func argumentSchemas(t *testing.T) []*tfprotov6.SchemaAttribute {
	t.Helper()
	all := fakecli.Unconfigured(t).Schemas().ResourceSchemas["agent_job"].Block.Attributes
	return slices.DeleteFunc(slices.Clone(all), func(a *tfprotov6.SchemaAttribute) bool { return !a.Optional && !a.Required })
}
