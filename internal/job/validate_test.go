// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job_test

import (
	"maps"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
)

// Mistakes are errors of "validate" and "plan" that point at the attribute.
func TestMistakesAreFoundBeforeApply(t *testing.T) {
	at := tftypes.NewAttributePath
	timeout := func(name string) *tftypes.AttributePath {
		return at().WithAttributeName("timeouts").WithAttributeName(name)
	}
	for name, test := range map[string]struct {
		config attrs // besides a good prompt
		path   *tftypes.AttributePath
	}{
		"empty prompt":          {attrs{"prompt": ""}, at().WithAttributeName("prompt")},
		"prompt of white space": {attrs{"prompt": " \t\n\u00a0"}, at().WithAttributeName("prompt")},
		"prompt with NUL":       {attrs{"prompt": "a\x00b"}, at().WithAttributeName("prompt")},
		"slash in project":      {attrs{"project_id": "a/b"}, at().WithAttributeName("project_id")},
		"dots in project":       {attrs{"project_id": ".."}, at().WithAttributeName("project_id")},
		"no create timeout":     {attrs{"timeouts": attrs{"create": "0s"}}, timeout("create")},
		"negative create":       {attrs{"timeouts": attrs{"create": "-5m"}}, timeout("create")},
		"unreadable create":     {attrs{"timeouts": attrs{"create": "5 minutes"}}, timeout("create")},
		"no update timeout":     {attrs{"timeouts": attrs{"update": "0h"}}, timeout("update")},
		"unreadable update":     {attrs{"timeouts": attrs{"update": ""}}, timeout("update")},
		"odd on_failure":        {attrs{"wait": attrs{"on_failure": "retry"}}, at().WithAttributeName("wait").WithAttributeName("on_failure")},
		"odd on_timeout":        {attrs{"wait": attrs{"on_timeout": ""}}, at().WithAttributeName("wait").WithAttributeName("on_timeout")},
	} {
		t.Run(name, func(t *testing.T) {
			config := attrs{"prompt": "write"}
			maps.Copy(config, test.config)
			fakecli.WantPath(t, fakecli.Unconfigured(t).Validate(config), test.path)
		})
	}
	for name, config := range map[string]attrs{
		"good":          {"prompt": "write", "project_id": "proj_1", "timeouts": attrs{"create": "90s", "update": "1h30m"}},
		"not known yet": {"prompt": unknown{}, "project_id": unknown{}, "timeouts": attrs{"create": unknown{}}, "wait": unknown{}},
		"no timeouts":   {"prompt": "write", "timeouts": unknown{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diags := fakecli.Unconfigured(t).Validate(config); len(diags) > 0 {
				t.Error(fakecli.Text(diags))
			}
		})
	}
}

// Those of the data source too.
func TestMistakesInTheDataSource(t *testing.T) {
	at := tftypes.NewAttributePath
	for name, test := range map[string]struct {
		config attrs
		path   *tftypes.AttributePath
	}{
		"slash in id":       {attrs{"id": "a/b"}, at().WithAttributeName("id")},
		"empty id":          {attrs{"id": ""}, at().WithAttributeName("id")},
		"slash in project":  {attrs{"id": "job_1", "project_id": "a/b"}, at().WithAttributeName("project_id")},
		"no read timeout":   {attrs{"id": "job_1", "timeouts": attrs{"read": "-1s"}}, at().WithAttributeName("timeouts").WithAttributeName("read")},
		"unreadable":        {attrs{"id": "job_1", "timeouts": attrs{"read": "soon"}}, at().WithAttributeName("timeouts").WithAttributeName("read")},
		"odd on_failure":    {attrs{"id": "job_1", "wait": attrs{"on_failure": "retry"}}, at().WithAttributeName("wait").WithAttributeName("on_failure")},
		"on_timeout of old": {attrs{"id": "job_1", "wait": attrs{"on_timeout": "keep"}}, at().WithAttributeName("wait").WithAttributeName("on_timeout")},
	} {
		t.Run(name, func(t *testing.T) {
			_, diags := fakecli.Unconfigured(t).Data(t.Context(), test.config)
			fakecli.WantPath(t, diags, test.path)
		})
	}
}
