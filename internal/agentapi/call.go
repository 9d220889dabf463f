// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package agentapi

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// maxIDLength bounds what is stored in the state and used in a path.
const maxIDLength = 256

// idPunctuation are the characters besides letters and digits that an id may have.
const idPunctuation = "-._"

// ValidID reports whether text can be the id of a project or a job: 1 to 256 letters, digits, dots,
// hyphens and underscores, without "..". So it stays one segment of a path however a proxy
// normalizes it, and diagnostics can have it in a command to paste: no shell, URL or Markdown reads
// anything else in it.
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

// apiCall is one call to the service before it is written.
type apiCall struct {
	op               Op
	projectID, jobID string
	body             []byte      // of a POST
	recorder         Recorder    // of a POST
	isPaused         func() bool // of a POST: whether the rate limit holds it back now
	status           int         // of the response to an earlier attempt; 0: none
}

func (a apiCall) fail(class error, err error) *Error {
	return &Error{Op: a.op, Class: class, StatusCode: a.status, Err: err}
}

var errBadID = errors.New("a project or job id contains a character that is not allowed")

func (a apiCall) checkIDs() *Error {
	if !ValidID(a.projectID) || a.jobID != "" && !ValidID(a.jobID) || a.op != OpCreate && a.jobID == "" {
		return a.fail(ErrNotSent, errBadID)
	}
	return nil
}

func (a apiCall) method() string {
	if a.op == OpGet {
		return http.MethodGet
	}
	return http.MethodPost
}

// url returns one of the service's three URLs. The ids have passed ValidID; they
// are escaped all the same, so that no id can leave its segment.
func (a apiCall) url(base *url.URL) string {
	text := strings.TrimRight(base.String(), "/") + "/v2/agent/" + url.PathEscape(a.projectID) + "/job"
	if a.op != OpCreate {
		text += "/" + url.PathEscape(a.jobID)
	}
	if a.op == OpMessage {
		text += "/message"
	}
	return text
}
