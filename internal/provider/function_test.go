// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/agentjobs/terraform-provider-agent/internal/test/fakecli"
)

// The calls go through the protocol's server. Red without: CallFunction in internal/plugin, for the null of OpenTofu.
func TestPullRequest(t *testing.T) {
	c := fakecli.Unconfigured(t)
	text := func(link any) *tfprotov6.DynamicValue { return c.Dynamic(tftypes.NewValue(tftypes.String, link)) }
	is := func(host, repository string, number int64) attrs {
		return attrs{"host": host, "repository": repository, "number": number}
	}
	wants := map[string]attrs{
		"https://GitHub.com/Example/.github/pull/12/files?w=1#d-3":                       is("github.com", "Example/.github", 12),
		"http://github.example.com:8443/example/docs.io/pull/1/":                         is("github.example.com:8443", "example/docs.io", 1),
		"https://github.com/example/docs/pull/9223372036854775807":                       is("github.com", "example/docs", 9223372036854775807),
		"https://gitlab.example.com/a/repos/c/-/merge_requests/3#n":                      is("gitlab.example.com", "a/repos/c", 3),
		"https://gitlab.example.com/a/b/pull/5/-/merge_requests/3":                       is("gitlab.example.com", "a/b/pull/5", 3),
		"https://bitbucket.org/example/docs/pull-requests/5/a-title":                     is("bitbucket.org", "example/docs", 5),
		"https://bitbucket.example.com/projects/DOC/repos/docs/pull-requests/5/overview": is("bitbucket.example.com", "DOC/docs", 5),
		"https://example.com/bitbucket/projects/~ann/repos/docs/pull-requests/5":         is("example.com", "~ann/docs", 5),
	}
	for _, none := range []string{
		"", "ssh://github.com/example/docs/pull/12", "https:///example/docs/pull/12",
		"https://github.com@example.com/example/docs/pull/12", "https://github.com/example/docs/pull/0",
		"https://github.com/example/docs/pull/01", "https://github.com/example/docs/pull/1a",
		"https://github.com/example/docs/pull/9223372036854775808", "https://github.com/example/docs/pull/12\n",
		"https://github.com/example/docs/issues/12", "https://github.com/example//docs/pull/12", "https://github.com/../docs/pull/12",
		"https://github.com/a%2Fb/docs/pull/12", "https://github.com/docs/pull/12", "https://gitlab.com/docs/-/merge_requests/3",
	} {
		wants[none] = nil
	}
	for link, want := range wants {
		got, failure := c.Call("pull_request", text(link))
		if want == nil && !got.IsNull() || want != nil && !got.Equal(fakecli.Object(got.Type().(tftypes.Object), want)) || failure != nil {
			t.Errorf("%s: %s, %v; want %v", link, got, failure, want)
		}
	}
	for name, null := range map[string]*tfprotov6.DynamicValue{"Terraform": text(nil), "OpenTofu": {}} {
		if got, failure := c.Call("pull_request", null); !got.IsNull() || failure != nil {
			t.Errorf("null, as %s sends it: %s, %v", name, got, failure)
		}
	}
}
