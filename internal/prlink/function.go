// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package prlink

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

var _ function.Function = (*prLinkFunction)(nil)

type prLinkFunction struct{}

// NewFunction returns the function parse_pr_link.
func NewFunction() function.Function { return &prLinkFunction{} }

//nolint:gochecknoglobals // never changed
var prLinkTypes = map[string]attr.Type{
	"host": types.StringType, "owner": types.StringType, "repository": types.StringType, "number": types.Int64Type,
}

func (f *prLinkFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "parse_pr_link"
}

func (f *prLinkFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Parses the link of a pull request",
		MarkdownDescription: "Parses the link of a pull or merge request on GitHub, GitLab, Bitbucket or Azure DevOps, " +
			"including self-hosted ones. " +
			"Requires Terraform 1.8, OpenTofu 1.10 or later.\n\n" +
			"Returns an object with `host` (including the port, if any), `owner`, `repository` and `number`. " +
			"The `owner` includes the subgroups of a GitLab project (`group/subgroup`). For Azure DevOps it is `organization/project`, " +
			"for Bitbucket Data Center the project key or `~user`.\n\n" +
			"Returns null for null, such as the `pr_link` of a job without a pull request: read attributes with `try(….number, null)`. " +
			"Any other text is an error.",
		Parameters: []function.Parameter{function.StringParameter{
			Name:                "url",
			AllowNullValue:      true,
			MarkdownDescription: "Link of a pull request, for example `https://github.com/example/docs/pull/12`.",
		}},
		Return: function.ObjectReturn{AttributeTypes: prLinkTypes},
	}
}

func (f *prLinkFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var text types.String
	if resp.Error = req.Arguments.Get(ctx, &text); resp.Error != nil {
		return
	}
	if text.IsNull() {
		resp.Error = resp.Result.Set(ctx, types.ObjectNull(prLinkTypes))
		return
	}
	link, err := parse(text.ValueString())
	if err != nil {
		resp.Error = function.NewArgumentFuncError(0, err.Error()) // the CLI adds the period
		return
	}
	resp.Error = resp.Result.Set(ctx, types.ObjectValueMust(prLinkTypes, map[string]attr.Value{
		"host":       types.StringValue(link.host),
		"owner":      types.StringValue(link.owner),
		"repository": types.StringValue(link.repository),
		"number":     types.Int64Value(link.number),
	}))
}
