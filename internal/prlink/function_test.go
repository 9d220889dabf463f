// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package prlink_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
)

func TestParsePRLinkFunction(t *testing.T) {
	c := fakecli.Unconfigured(t)
	result, failure := c.Call("parse_pr_link", tftypes.NewValue(tftypes.String, "https://github.com/example/docs/pull/12"))
	want := fakecli.Object(result.Type().(tftypes.Object), fakecli.Attrs{"host": "github.com", "owner": "example", "repository": "docs", "number": 12})
	if failure != nil || !result.Equal(want) {
		t.Errorf("%s, %v; want %s", result, failure, want)
	}
	if result, failure := c.Call("parse_pr_link", tftypes.NewValue(tftypes.String, nil)); failure != nil || !result.IsNull() {
		t.Errorf("null: %v, %v", result, failure)
	}
	// As OpenTofu sends a null.
	resp, err := c.Server.CallFunction(t.Context(), &tfprotov6.CallFunctionRequest{Name: "parse_pr_link", Arguments: []*tfprotov6.DynamicValue{{}}})
	if err != nil || resp.Error != nil {
		t.Errorf("an argument without data: %v, %v", resp, err)
	}
	_, failure = c.Call("parse_pr_link", tftypes.NewValue(tftypes.String, "https://example.com/\x1b[2J"))
	if failure == nil || failure.FunctionArgument == nil || *failure.FunctionArgument != 0 {
		t.Fatalf("no error about the argument: %v", failure)
	}
	// The CLI shows it as: Invalid value for "url" parameter: TEXT.
	if strings.HasSuffix(failure.Text, ".") {
		t.Errorf("two periods would end %q", failure.Text)
	}
}
