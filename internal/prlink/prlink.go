// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

// Package prlink is the function parse_pr_link, which takes the link of a pull
// request apart.
package prlink

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/agentjobs/terraform-provider-agent/internal/urlpath"
	"github.com/agentjobs/terraform-provider-agent/internal/wording"
)

// pullRequest is a pull request, taken from its link.
type pullRequest struct {
	host, owner, repository string
	number                  int64
}

// parse reads the links of GitHub, GitLab, Bitbucket and Azure DevOps.
// They are distinguished by their paths, because any of them may be self-hosted.
// What follows the number (a tab, a title, a query, a fragment) is ignored.
func parse(text string) (pullRequest, error) {
	parsed, err := url.Parse(text)
	switch {
	case err != nil:
		return pullRequest{}, errors.New("the link is not a valid URL")
	case parsed.Scheme != "https" && parsed.Scheme != "http" || parsed.Hostname() == "":
		return pullRequest{}, fmt.Errorf("%s is not an absolute URL that starts with https:// or http://", wording.Quote(text))
	case parsed.User != nil:
		return pullRequest{}, errors.New("the link must not contain a user name or password")
	}
	segments, ok := urlpath.Segments(parsed)
	if !ok {
		return pullRequest{}, notPRLink(text)
	}
	host := strings.ToLower(parsed.Host)
	for _, readForm := range []func(string, []string) (pullRequest, bool){azureLink, gitlabLink, bitbucketServerLink, cloudLink} {
		if link, ok := readForm(host, segments); ok {
			link.host = host
			return link, nil
		}
	}
	return pullRequest{}, notPRLink(text)
}

func notPRLink(text string) error {
	return fmt.Errorf("%s is not the link of a pull request on GitHub, GitLab, Bitbucket or Azure DevOps, "+
		"such as https://github.com/OWNER/REPOSITORY/pull/12", wording.Quote(text))
}

// newPullRequest builds a pull request from the names before the marker and the number after it.
func newPullRequest(owner []string, repository, number string) (pullRequest, bool) {
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 || len(owner) == 0 || strconv.FormatInt(n, 10) != number {
		return pullRequest{}, false
	}
	return pullRequest{owner: strings.Join(owner, "/"), repository: repository, number: n}, true
}

// azureLink: ORGANIZATION/PROJECT/_git/REPOSITORY/pullrequest/N; the project is
// omitted when the repository has its name, and the organization is part of the
// host at visualstudio.com. A self-hosted server has a collection instead.
func azureLink(host string, s []string) (pullRequest, bool) {
	i := slices.Index(s, "_git")
	if i < 0 || len(s) < i+4 || s[i+2] != "pullrequest" {
		return pullRequest{}, false
	}
	owner, repository := slices.Clone(s[:i]), s[i+1]
	organization, _ := strings.CutSuffix(host, ".visualstudio.com")
	legacyHost := organization != host && organization != ""
	if legacyHost {
		if len(owner) > 0 && strings.EqualFold(owner[0], "DefaultCollection") {
			owner = owner[1:]
		}
		owner = append([]string{organization}, owner...)
	}
	if (legacyHost || host == "dev.azure.com") && len(owner) == 1 {
		owner = append(owner, repository)
	}
	return newPullRequest(owner, repository, s[i+3])
}

// gitlabLink: GROUP[/SUBGROUP…]/PROJECT/-/merge_requests/N, before GitLab 12 without the dash.
func gitlabLink(_ string, s []string) (pullRequest, bool) {
	for i := 2; i < len(s)-1; i++ {
		if s[i] != "merge_requests" {
			continue
		}
		names := s[:i]
		if names[i-1] == "-" {
			names = names[:i-1]
		}
		return newPullRequest(names[:len(names)-1], names[len(names)-1], s[i+1])
	}
	return pullRequest{}, false
}

// bitbucketServerLink: [CONTEXT/…]projects/KEY/repos/REPOSITORY/pull-requests/N, or users/NAME/….
func bitbucketServerLink(_ string, s []string) (pullRequest, bool) {
	for i := 0; i+5 < len(s); i++ {
		if s[i] != "projects" && s[i] != "users" || s[i+2] != "repos" || s[i+4] != "pull-requests" {
			continue
		}
		owner := s[i+1]
		if s[i] == "users" {
			owner = "~" + owner
		}
		return newPullRequest([]string{owner}, s[i+3], s[i+5])
	}
	return pullRequest{}, false
}

// cloudLink: OWNER/REPOSITORY/pull/N at GitHub, WORKSPACE/REPOSITORY/pull-requests/N at Bitbucket Cloud.
func cloudLink(_ string, s []string) (pullRequest, bool) {
	if len(s) < 4 || s[2] != "pull" && s[2] != "pull-requests" {
		return pullRequest{}, false
	}
	return newPullRequest(s[:1], s[1], s[3])
}
