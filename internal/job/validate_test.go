// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentjobs/terraform-provider-agent/internal/job"
	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
)

// validated are the paths of the attributes of a schema that have validators.
func validated(schema any, path string) (paths []string) {
	parts := reflect.ValueOf(schema)
	for _, field := range []string{"Attributes", "Blocks"} {
		if nested := parts.FieldByName(field); nested.IsValid() {
			for _, name := range nested.MapKeys() {
				paths = append(paths, validated(nested.MapIndex(name).Interface(), strings.TrimSpace(path+" "+name.String()))...)
			}
		}
	}
	if validators := parts.FieldByName("Validators"); validators.IsValid() && validators.Len() > 0 {
		paths = append(paths, path)
	}
	return paths
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
	var ofResource resource.SchemaResponse
	var ofData datasource.SchemaResponse
	var ofStart, ofMessage action.SchemaResponse
	job.NewResource().Schema(t.Context(), resource.SchemaRequest{}, &ofResource)
	job.NewDataSource().Schema(t.Context(), datasource.SchemaRequest{}, &ofData)
	job.NewStartJobAction().Schema(t.Context(), action.SchemaRequest{}, &ofStart)
	job.NewSendMessageAction().Schema(t.Context(), action.SchemaRequest{}, &ofMessage)
	for kind, test := range map[string]struct {
		schema   any
		required attrs
	}{
		"resource":           {ofResource.Schema, attrs{"prompt": "write"}},
		"data source":        {ofData.Schema, attrs{"id": "job_1"}},
		"agent_start_job":    {ofStart.Schema, attrs{"prompt": "write"}},
		"agent_send_message": {ofMessage.Schema, attrs{"prompt": "write", "job_id": "job_1"}},
	} {
		names := validated(test.schema, "")
		for name := range examples {
			if kind == "resource" && len(refused[name]) > 0 && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		for _, name := range names {
			if len(refused[name]) == 0 {
				t.Errorf("%s has validators: what do they refuse? Examples of an argument are in arguments_test.go, others here", name)
			}
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
