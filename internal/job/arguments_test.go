// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"fmt"
	"maps"
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

// What validators refuse is an error of "validate" and "plan" that points at the attribute.
func TestValidate_I01(t *testing.T) {
	durations := []any{"0s", "-5m", "5 minutes", ""}
	refused := map[string][]any{
		"name": {"", strings.Repeat("n", 257)}, "id": {"", "a/b"}, "job_id": {"", "a/b"}, "wait on_failure": {"", "never"},
		"timeouts create": durations, "timeouts update": durations, "timeouts invoke": durations,
	}
	c := fakecli.Unconfigured(t)
	for name, example := range examples {
		refused[name] = example.refused
		for _, value := range example.accepted {
			config := attrs{"prompt": "write", name: value}
			if name == "prompt_wo" {
				delete(config, "prompt")
			}
			if diags := c.Validate(config); fakecli.Failed(diags) {
				t.Errorf("%s = %v is refused: %s", name, value, fakecli.Text(diags))
			}
		}
	}
	validate := func(kind string, config attrs) (diags []*tfprotov6.Diagnostic) {
		switch kind {
		case "resource":
			return c.Validate(config)
		case "data source":
			_, diags = c.Data(t.Context(), config)
		default:
			_, diags = c.PlanAction(t.Context(), kind, config)
		}
		return diags
	}
	ofActions := []string{"project_id", "prompt", "prompt_wo", "wait on_failure", "timeouts invoke"}
	ofResources := []string{"name", "wait on_failure", "timeouts create", "timeouts update"}
	for kind, test := range map[string]struct {
		required attrs
		names    []string
	}{
		"resource":           {attrs{"prompt": "write"}, append(slices.Collect(maps.Keys(examples)), ofResources...)},
		"data source":        {attrs{"id": "job_1"}, []string{"id", "project_id"}},
		"agent_start_job":    {attrs{"prompt": "write"}, ofActions},
		"agent_send_message": {attrs{"prompt": "write", "job_id": "job_1"}, append(ofActions, "job_id")},
	} {
		for _, name := range test.names {
			path := strings.Fields(name)
			for _, value := range refused[name] {
				t.Run(fmt.Sprintf("%s, %s %.20q", kind, name, value), func(t *testing.T) {
					if len(path) == 2 {
						value = attrs{path[1]: value}
					}
					config := fakecli.With(test.required, attrs{path[0]: value})
					if name == "prompt_wo" {
						delete(config, "prompt")
					}
					fakecli.WantPath(t, validate(kind, config), path...)
				})
			}
		}
	}
	if got := fakecli.Text(c.Validate(attrs{"prompt": "write", "wait": attrs{"on_failure": "retry"}})); got != "" {
		t.Error(got)
	}
	fakecli.WantPath(t, validate("agent_start_job", attrs{"prompt": "write", "wait": attrs{"on_failure": "retry"}}), "wait", "on_failure")
	for _, test := range []struct {
		config attrs
		want   string // empty: nothing is said
	}{
		{attrs{"prompt": "write", "project_id": "proj_1", "timeouts": attrs{"create": "90s", "update": "1h30m"}}, ""},
		{attrs{"prompt": unknown{}, "project_id": unknown{}, "timeouts": attrs{"create": unknown{}}, "wait": unknown{}}, ""},
		{attrs{"prompt": "write", "prompt_wo": unknown{}, "timeouts": unknown{}}, ""},
		{attrs{"prompt_wo": unknown{}}, ""},
		{attrs{}, "Missing Attribute Configuration"},
		{attrs{"prompt": "write", "prompt_wo": "write"}, "Invalid Attribute Combination"},
	} {
		if got := fakecli.Text(c.Validate(test.config)); test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%v: want %q in:\n%s", test.config, test.want, got)
		}
	}
}

// What an editor, a checkout or a heredoc changes and nobody sees starts no job and sends no message, neither
// from the state nor from the journal, and the plan is empty: the state keeps the spelling that it has.
//
// Red without: comparedPrompt in request, promptHash, setPromptHash, hasPromptOf and setValues; comparedTexts in all and request; the
// spelling of the arguments in setValues. The edits: TestCanonical.
func TestSamePrompt_I02(t *testing.T) {
	lives := map[string][]step{}
	in := func(attribute, text string) []object {
		return []object{{Address: "docs", Config: attrs{"name": "docs", attribute: text}}}
	}
	for _, name := range []string{"prompt", "prompt_wo"} {
		of := func(text string) []object { return in(name, text) }
		stores := func(attribute, text string) func(*life) {
			return func(l *life) {
				got, sent := l.state["docs"].Get("prompt"), l.s.OnlyJob(l.t).Prompts[0]
				if attribute == "prompt" && got != text || attribute != "prompt" && got != nil || strings.Contains(sent, "\r\n") {
					l.t.Errorf("%q was sent, and the prompt in the state is %q, want %q", sent, got, text)
				}
			}
		}
		for change, steps := range map[string][]step{
			"to LF":      {{objects: of("a\r\n\r\nb"), creates: 1}, {objects: of("a\n\nb"), creates: 1, after: stores(name, "a\r\n\r\nb")}},
			"to heredoc": {{objects: of("a\nb"), creates: 1}, {objects: of("a\nb\n"), creates: 1, after: stores(name, "a\nb")}},
			"of a lost create": {
				{objects: of("a\r\nb"), creates: 1}, {before: lost, objects: of("\ufeffa \nb\n"), says: []string{adopted}, creates: 1},
			},
			"of a lost message": {
				{objects: of("a"), creates: 1}, {objects: of("a\nb"), creates: 1, messages: 1},
				{before: asBefore(1), objects: of("\ufeffa \r\nb\n"), says: []string{countsAsSent}, creates: 1, messages: 1},
			},
			"and attribute": {
				{objects: of("a\r\nb"), creates: 1}, {objects: in("prompt", "a\nb\n"), creates: 1},
				{objects: in("prompt_wo", "a \nb"), creates: 1, after: stores("prompt_wo", "")}, {objects: of("\ufeffa\nb"), creates: 1},
			},
			"and triggers": {
				{objects: of("a"), creates: 1}, {objects: []object{of("a\n")[0].with(attrs{"triggers": attrs{}})}, creates: 2},
			},
		} {
			lives[name+", "+change] = steps
		}
	}
	spec := func(text string) []object {
		return []object{named("docs", "A").with(attrs{"triggers": attrs{"spec": text, "none": nil}})}
	}
	kept := func(l *life) {
		if got := fmt.Sprint(l.state["docs"].Get("triggers")); !strings.Contains(got, "\"a\r\nb\"") {
			l.t.Errorf("the state has %v", got)
		}
	}
	for change, steps := range map[string][]step{
		"in the state":     {{objects: spec("a\r\nb"), creates: 1}, {objects: spec("\ufeffa \nb\n"), creates: 1, after: kept}},
		"of a lost create": {{objects: spec("a\r\nb"), creates: 1}, {before: lost, objects: spec("a\nb\n"), says: []string{adopted}, creates: 1}},
		"another text":     {{objects: spec("a\r\nb"), creates: 1}, {objects: spec("a\r\n b"), creates: 2}},
	} {
		lives["triggers, "+change] = steps
	}
	play(t, lives)
}
