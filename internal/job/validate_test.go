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
	action := func(name string) func(*fakecli.CLI, attrs) []*tfprotov6.Diagnostic {
		return func(c *fakecli.CLI, config attrs) []*tfprotov6.Diagnostic {
			_, diags := c.PlanAction(t.Context(), name, config)
			return diags
		}
	}
	data := func(c *fakecli.CLI, config attrs) []*tfprotov6.Diagnostic {
		_, diags := c.Data(t.Context(), config)
		return diags
	}
	c := fakecli.Unconfigured(t)
	for _, kind := range []struct {
		name     string
		validate func(*fakecli.CLI, attrs) []*tfprotov6.Diagnostic
		required attrs
		more     []string // besides those of every kind
	}{
		{"resource", (*fakecli.CLI).Validate, attrs{"prompt": "write"}, []string{"prompt", "wait on_failure", "timeouts create", "timeouts update"}},
		{"data source", data, attrs{"id": "job_1"}, []string{"id"}},
		{"start", action("agent_start_job"), attrs{"prompt": "write"}, []string{"prompt", "wait on_failure", "timeouts invoke"}},
		{"message", action("agent_send_message"), attrs{"prompt": "write", "job_id": "job_1"}, []string{"prompt", "job_id", "wait on_failure", "timeouts invoke"}},
	} {
		for _, name := range append(kind.more, "project_id") {
			path := strings.Fields(name)
			for _, value := range mistakes[name] {
				t.Log(kind.name, name, value)
				if len(path) == 2 {
					value = attrs{path[1]: value}
				}
				fakecli.WantPath(t, kind.validate(c, fakecli.With(kind.required, attrs{path[0]: value})), path...)
			}
		}
	}
	for _, test := range []struct {
		config attrs
		want   string // empty: nothing is said
	}{
		{attrs{"prompt": "write", "project_id": "proj_1", "timeouts": attrs{"create": "90s", "update": "1h30m"}}, ""},
		{attrs{"prompt": unknown{}, "project_id": unknown{}, "timeouts": attrs{"create": unknown{}}, "wait": unknown{}}, ""},
		{attrs{"prompt": "write", "timeouts": unknown{}}, ""},
		{attrs{"prompt_wo": "write"}, ""},
		{attrs{"prompt_wo": unknown{}}, ""},
		{attrs{"prompt": "write", "prompt_wo": unknown{}}, ""},
		{attrs{}, "Missing Attribute Configuration"},
		{attrs{"prompt": "write", "prompt_wo": "write"}, "Invalid Attribute Combination"},
		{attrs{"prompt_wo": " "}, "Invalid prompt"},
	} {
		if got := fakecli.Text(c.Validate(test.config)); test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%v: want %q in:\n%s", test.config, test.want, got)
		}
	}
}
