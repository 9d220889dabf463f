// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"fmt"
	"strings"
	"testing"
)

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
