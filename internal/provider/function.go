// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// pullRequestFunction takes the link of a pull request apart.
type pullRequestFunction struct{}

//nolint:gochecknoglobals // never changed
var pullRequestTypes = map[string]attr.Type{
	"host": types.StringType, "repository": types.StringType, "number": types.Int64Type,
}

func newPullRequestFunction() function.Function { return pullRequestFunction{} }

func (pullRequestFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "pull_request"
}

func (pullRequestFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Host, repository and number of a pull request.",
		MarkdownDescription: "Returns `host`, `repository` and `number` of the pull request that a link leads to, on GitHub, GitLab or " +
			"Bitbucket, self-managed or not. `host` includes a port. `repository` is `OWNER/NAME`; on GitLab it has all groups, and on " +
			"Bitbucket Data Center it is `KEY/NAME`.\n\n" +
			"Returns null for null and any other link: read an attribute with `try(….number, null)`.",
		Parameters: []function.Parameter{function.StringParameter{
			Name:                "link",
			AllowNullValue:      true,
			MarkdownDescription: "`pr_link` of a job, for example `https://github.com/example/docs/pull/1`.",
		}},
		Return: function.ObjectReturn{AttributeTypes: pullRequestTypes},
	}
}

func (pullRequestFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var link types.String
	if resp.Error = req.Arguments.Get(ctx, &link); resp.Error != nil {
		return
	}
	resp.Error = resp.Result.Set(ctx, pullRequest(link.ValueString())) // "" for null
}

// The services are told apart by their paths, because any host may be somebody's own. What follows
// the number (a tab, a title, a query) is ignored. A name has the characters that the services
// allow, and is neither "." nor "..".
const (
	linkHost = `^(?i:https?)://([\w.-]+(?::\d+)?)`
	linkName = `\.?[\w~-][\w.~+-]*`
	linkEnd  = `/([1-9]\d*)(?:[/?#].*)?$`
)

// Each form has the host, the repository in one or more parts, and the number. GitLab's is the
// first, because its projects can have names that end like the others' links; the second is of
// GitHub and Bitbucket Cloud, the third of Bitbucket Data Center.
//
//nolint:gochecknoglobals // never changed
var pullRequestLinks = []*regexp.Regexp{
	regexp.MustCompile(linkHost + `/(` + linkName + `(?:/` + linkName + `)+)/-/merge_requests` + linkEnd),
	regexp.MustCompile(linkHost + `/(` + linkName + `/` + linkName + `)/(?:pull|pull-requests)` + linkEnd),
	regexp.MustCompile(linkHost + `(?:/` + linkName + `)*/projects/(` + linkName + `)/repos/(` + linkName + `)/pull-requests` + linkEnd),
}

// pullRequest is null if the link is not that of a pull request.
func pullRequest(link string) types.Object {
	for _, form := range pullRequestLinks {
		found := form.FindStringSubmatch(link)
		if found == nil {
			continue
		}
		last := len(found) - 1
		if number, err := strconv.ParseInt(found[last], 10, 64); err == nil {
			return types.ObjectValueMust(pullRequestTypes, map[string]attr.Value{
				"host":       types.StringValue(strings.ToLower(found[1])),
				"repository": types.StringValue(strings.Join(found[2:last], "/")),
				"number":     types.Int64Value(number),
			})
		}
	}
	return types.ObjectNull(pullRequestTypes)
}
