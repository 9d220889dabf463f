// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package prlink

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
)

// prLinks are links and what they say; a link that says nothing is an error.
func prLinks() map[string]pullRequest {
	return map[string]pullRequest{
		"https://github.com/example/docs/pull/12":                  {"github.com", "example", "docs", 12},
		"https://GitHub.com/Example/Docs.io/pull/12/files?w=1#d-3": {"github.com", "Example", "Docs.io", 12},
		"http://github.example.com:8443/example/docs/pull/1/":      {"github.example.com:8443", "example", "docs", 1},

		"https://gitlab.com/example/docs/-/merge_requests/3":             {"gitlab.com", "example", "docs", 3},
		"https://gitlab.example.com/a/b/c/docs/-/merge_requests/3/diffs": {"gitlab.example.com", "a/b/c", "docs", 3},
		"https://gitlab.example.com/a/docs/merge_requests/3":             {"gitlab.example.com", "a", "docs", 3},
		"https://gitlab.example.com/a/b/pull/5/-/merge_requests/3":       {"gitlab.example.com", "a/b/pull", "5", 3},

		"https://bitbucket.org/example/docs/pull-requests/5/add-a-page":                           {"bitbucket.org", "example", "docs", 5},
		"https://bitbucket.example.com/projects/DOC/repos/docs/pull-requests/5/overview":          {"bitbucket.example.com", "DOC", "docs", 5},
		"https://example.com/bitbucket/projects/DOC/repos/docs/pull-requests/5":                   {"example.com", "DOC", "docs", 5},
		"https://bitbucket.example.com/projects/~ann/repos/docs/pull-requests/5":                  {"bitbucket.example.com", "~ann", "docs", 5},
		"https://bitbucket.example.com/users/ann/repos/docs/pull-requests/5":                      {"bitbucket.example.com", "~ann", "docs", 5},
		"https://dev.azure.com/example/My%20Project/_git/docs/pullrequest/9?_a=files":             {"dev.azure.com", "example/My Project", "docs", 9},
		"https://dev.azure.com/example/_git/docs/pullrequest/9":                                   {"dev.azure.com", "example/docs", "docs", 9},
		"https://example.visualstudio.com/My%20Project/_git/docs/pullrequest/9":                   {"example.visualstudio.com", "example/My Project", "docs", 9},
		"https://example.visualstudio.com/DefaultCollection/My%20Project/_git/docs/pullrequest/9": {"example.visualstudio.com", "example/My Project", "docs", 9},
		"https://example.visualstudio.com/defaultcollection/_git/docs/pullrequest/9":              {"example.visualstudio.com", "example/docs", "docs", 9},
		"https://example.visualstudio.com/_git/docs/pullrequest/9":                                {"example.visualstudio.com", "example/docs", "docs", 9},
		"https://azure.example.com/tfs/Collection/Project/_git/docs/pullrequest/9":                {"azure.example.com", "tfs/Collection/Project", "docs", 9},

		"":                                                                    {},
		"docs/pull/12":                                                        {},
		"ssh://github.com/example/docs/pull/12":                               {},
		"https://:443/example/docs/pull/12":                                   {},
		"https://github.com/example/docs":                                     {},
		"https://github.com/example/docs/pull/":                               {},
		"https://github.com/example/docs/pull/0":                              {},
		"https://github.com/example/docs/pull/+1":                             {},
		"https://github.com/example/docs/pull/01":                             {},
		"https://github.com/example/docs/pull/1a":                             {},
		"https://github.com/example/docs/pull/9223372036854775808":            {},
		"https://github.com/example/docs/issues/12":                           {},
		"https://github.com/example//docs/pull/12":                            {},
		"https://github.com/a%2Fb/docs/pull/12":                               {},
		"https://gitlab.com/docs/-/merge_requests/3":                          {},
		"https://gitlab.com/a/docs/-/merge_requests":                          {},
		"https://bitbucket.example.com/projects/DOC/repos/docs/pull-requests": {},
		"https://.visualstudio.com/_git/docs/pullrequest/9":                   {},
		"https://dev.azure.com/_git/docs/pullrequest/9":                       {},
		"https://dev.azure.com/example/project/_git/docs/pullrequest":         {},
		"https://user:pa55@github.com/example/docs/pull/12":                   {},
	}
}

func TestParsePRLink(t *testing.T) {
	for text, want := range prLinks() {
		got, err := parse(text)
		if got != want || (err != nil) != (want == pullRequest{}) || err != nil && strings.Contains(err.Error(), "pa55") {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
}

// FuzzParsePRLink: what is read is whole, and the same again when it is written
// as a GitLab link, the form that can say all of it; errors are safe to show.
func FuzzParsePRLink(f *testing.F) {
	for text := range prLinks() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		link, err := parse(text)
		if err != nil {
			if strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }) || link != (pullRequest{}) {
				t.Errorf("%q gives %+v and an error that is perhaps not safe to show: %q", text, link, err)
			}
			return
		}
		if link.host == "" || link.owner == "" || link.repository == "" || link.number <= 0 ||
			strings.Contains(link.repository, "/") || link.host != strings.ToLower(link.host) {
			t.Errorf("%q: %+v", text, link)
		}
		if strings.ContainsFunc(link.owner+link.repository, func(r rune) bool { return (r < 'a' || r > 'z') && r != '/' }) {
			return // would have to be escaped
		}
		link.host = "example.com"
		again, err := parse(fmt.Sprintf("https://example.com/%s/%s/-/merge_requests/%d", link.owner, link.repository, link.number))
		if err != nil || again != link {
			t.Errorf("%q: %+v, then %+v (%v)", text, link, again, err)
		}
	})
}
