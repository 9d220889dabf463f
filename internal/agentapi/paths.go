// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"net/url"
	"strings"
)

// maxIDLength bounds what is stored in the state and used in a path.
const maxIDLength = 256

// idPunctuation are the characters besides letters and digits that need no escaping
// in a path segment (RFC 3986, pchar without percent-encoding).
const idPunctuation = "-._~!$&'()*+,;=:@"

// ValidID reports whether text can be the id of a project or a job: 1 to 256
// letters, digits and the punctuation -._~!$&'()*+,;=:@ without "..", so that it
// stays one segment of a path however a proxy normalizes it.
func ValidID(text string) bool {
	if text == "" || text == "." || len(text) > maxIDLength || strings.Contains(text, "..") {
		return false
	}
	for _, r := range text {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		if !letter && !strings.ContainsRune(idPunctuation, r) {
			return false
		}
	}
	return true
}

// paths builds the service's three URLs. The ids have passed ValidID; they are
// escaped all the same, so that no id can leave its segment.
type paths struct{ base string }

func newPaths(base *url.URL) paths {
	return paths{base: strings.TrimRight(base.String(), "/") + "/v2/agent/"}
}

func (p paths) jobs(projectID string) string {
	return p.base + url.PathEscape(projectID) + "/job"
}

func (p paths) job(projectID, jobID string) string {
	return p.jobs(projectID) + "/" + url.PathEscape(jobID)
}

func (p paths) message(projectID, jobID string) string {
	return p.job(projectID, jobID) + "/message"
}
