// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
)

// Mistakes are errors of "validate" and "plan" that point at the attribute.
func TestValidate(t *testing.T) {
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
	mistakes := map[string][]any{
		"prompt":     {"", " \t\n\u00a0", "a\x00b"},
		"id":         {"", "a/b"},
		"project_id": {"a/b", ".."},
		"timeouts":   {"0s", "-5m", "5 minutes", ""},
		"on_failure": {"retry"},
		"on_timeout": {"", "keep"},
	}
	for _, kind := range []struct {
		name     string
		validate func(*fakecli.CLI, attrs) []*tfprotov6.Diagnostic
		required attrs
		timeouts []string
	}{
		{"resource", (*fakecli.CLI).Validate, attrs{"prompt": "write"}, []string{"create", "update"}},
		{"data source", data, attrs{"id": "job_1"}, []string{"read"}},
		{"start", action("agent_start_job"), attrs{"prompt": "write"}, []string{"invoke"}},
		{"message", action("agent_send_message"), attrs{"prompt": "write", "id": "job_1"}, []string{"invoke"}},
	} {
		paths := [][]string{{"project_id"}, {"wait", "on_failure"}, {"wait", "on_timeout"}}
		for name := range kind.required {
			paths = append(paths, []string{name})
		}
		for _, name := range kind.timeouts {
			paths = append(paths, []string{"timeouts", name})
		}
		for _, path := range paths {
			values, ok := mistakes[path[len(path)-1]]
			if !ok {
				values = mistakes[path[0]]
			}
			for _, value := range values {
				t.Run(fmt.Sprint(kind.name, path, value), func(t *testing.T) {
					at := tftypes.NewAttributePath()
					for _, name := range path {
						at = at.WithAttributeName(name)
					}
					if len(path) == 2 {
						value = attrs{path[1]: value}
					}
					c := fakecli.Unconfigured(t)
					fakecli.WantPath(t, kind.validate(c, fakecli.With(kind.required, attrs{path[0]: value})), at)
				})
			}
		}
	}
	for name, test := range map[string]struct {
		config attrs
		want   string // empty: nothing is said
	}{
		"good":               {attrs{"prompt": "write", "project_id": "proj_1", "timeouts": attrs{"create": "90s", "update": "1h30m"}}, ""},
		"not known yet":      {attrs{"prompt": unknown{}, "project_id": unknown{}, "timeouts": attrs{"create": unknown{}}, "wait": unknown{}}, ""},
		"no timeouts":        {attrs{"prompt": "write", "timeouts": unknown{}}, ""},
		"prompt_wo":          {attrs{"prompt_wo": "write"}, ""},
		"prompt_wo unknown":  {attrs{"prompt_wo": unknown{}}, ""},
		"one of two unknown": {attrs{"prompt": "write", "prompt_wo": unknown{}}, ""},
		"no prompt":          {attrs{}, "Missing Attribute Configuration"},
		"both prompts":       {attrs{"prompt": "write", "prompt_wo": "write"}, "Invalid Attribute Combination"},
		"empty prompt_wo":    {attrs{"prompt_wo": " "}, "Invalid prompt"},
	} {
		t.Run(name, func(t *testing.T) {
			diags := fakecli.Unconfigured(t).Validate(test.config)
			if got := fakecli.Text(diags); test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("want %q in:\n%s", test.want, got)
			}
		})
	}
}
