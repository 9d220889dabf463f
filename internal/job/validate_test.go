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
func TestValidate_I01(t *testing.T) {
	durations := []any{"0s", "-5m", "5 minutes", ""}
	mistakes := map[string][]any{
		"prompt": {"", " \t\n\u00a0", "a\x00b", "a\xffb"}, "id": {"", "a/b"}, "job_id": {"", "a/b"},
		"project_id":      {"a/b", "..", "a/../b", "a?b", "a#b", "a%2fb", "a b"},
		"wait on_failure": {"", "never"},
		"timeouts create": durations, "timeouts update": durations, "timeouts invoke": durations,
	}
	c := fakecli.Unconfigured(t)
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
	for kind, test := range map[string]struct {
		required attrs
		checked  []string
	}{
		"resource":        {attrs{"prompt": "write"}, []string{"project_id", "prompt", "wait on_failure", "timeouts create", "timeouts update"}},
		"data source":     {attrs{"id": "job_1"}, []string{"project_id", "id"}},
		"agent_start_job": {attrs{"prompt": "write"}, []string{"project_id", "prompt", "wait on_failure", "timeouts invoke"}},
		"agent_send_message": {
			attrs{"prompt": "write", "job_id": "job_1"},
			[]string{"project_id", "prompt", "job_id", "wait on_failure", "timeouts invoke"},
		},
	} {
		for _, name := range test.checked {
			path := strings.Fields(name)
			for _, value := range mistakes[name] {
				t.Log(kind, name, value)
				if len(path) == 2 {
					value = attrs{path[1]: value}
				}
				fakecli.WantPath(t, validate(kind, fakecli.With(test.required, attrs{path[0]: value})), path...)
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
		{attrs{"prompt_wo": " "}, "Invalid prompt"},
	} {
		if got := fakecli.Text(c.Validate(test.config)); test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%v: want %q in:\n%s", test.config, test.want, got)
		}
	}
}
