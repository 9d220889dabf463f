// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
)

// Mistakes are errors of "validate" and "plan" that point at the attribute.
func TestValidate(t *testing.T) {
	durations := []any{"0s", "-5m", "5 minutes", ""}
	mistakes := map[string][]any{
		"prompt": {"", " \t\n\u00a0", "a\x00b"}, "id": {"", "a/b"}, "job_id": {"", "a/b"}, "project_id": {"a/b", ".."},
		"wait on_failure": {"", "retry"},
		"timeouts create": durations, "timeouts update": durations, "timeouts invoke": durations,
	}
	c := fakecli.Unconfigured(t)
	action := func(name string) func(attrs) []*tfprotov6.Diagnostic {
		return func(config attrs) []*tfprotov6.Diagnostic {
			_, diags := c.PlanAction(t.Context(), name, config)
			return diags
		}
	}
	data := func(config attrs) []*tfprotov6.Diagnostic {
		_, diags := c.Data(t.Context(), config)
		return diags
	}
	for _, kind := range []struct {
		validate func(attrs) []*tfprotov6.Diagnostic
		required attrs
		checked  []string
	}{
		{c.Validate, attrs{"prompt": "write"}, []string{"project_id", "prompt", "wait on_failure", "timeouts create", "timeouts update"}},
		{data, attrs{"id": "job_1"}, []string{"project_id", "id"}},
		{action("agent_start_job"), attrs{"prompt": "write"}, []string{"project_id", "prompt", "wait on_failure", "timeouts invoke"}},
		{
			action("agent_send_message"), attrs{"prompt": "write", "job_id": "job_1"},
			[]string{"project_id", "prompt", "job_id", "wait on_failure", "timeouts invoke"},
		},
	} {
		for _, name := range kind.checked {
			path := strings.Fields(name)
			for _, value := range mistakes[name] {
				t.Log(kind.required, name, value)
				if len(path) == 2 {
					value = attrs{path[1]: value}
				}
				fakecli.WantPath(t, kind.validate(fakecli.With(kind.required, attrs{path[0]: value})), path...)
			}
		}
	}
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
		{attrs{"prompt_wo": " "}, "Invalid prompt"},
	} {
		if got := fakecli.Text(c.Validate(test.config)); test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%v: want %q in:\n%s", test.config, test.want, got)
		}
	}
}
