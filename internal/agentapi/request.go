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

// request is one call to the service before it is written.
type request struct {
	op               Op
	projectID, jobID string
	body             []byte      // of a POST
	recorder         Recorder    // of a POST
	isPaused         func() bool // of a POST
	status           int         // of the response to an earlier attempt; 0: none
}

func (r request) fail(class error, err error) *Error {
	return &Error{Op: r.op, Class: class, StatusCode: r.status, Err: err}
}

var errBadID = errors.New("a project or job id contains a character that is not allowed")

func (r request) checkIDs() *Error {
	if !ValidID(r.projectID) || r.jobID != "" && !ValidID(r.jobID) || r.op != OpCreate && r.jobID == "" {
		return r.fail(ErrNotSent, errBadID)
	}
	return nil
}

func (r request) method() string {
	if r.op == OpGet {
		return http.MethodGet
	}
	return http.MethodPost
}

// url returns one of the service's three URLs. The ids have passed ValidID; they
// are escaped all the same, so that no id can leave its segment.
func (r request) url(base *url.URL) string {
	text := strings.TrimRight(base.String(), "/") + "/v2/agent/" + url.PathEscape(r.projectID) + "/job"
	if r.op != OpCreate {
		text += "/" + url.PathEscape(r.jobID)
	}
	if r.op == OpMessage {
		text += "/message"
	}
	return text
}
